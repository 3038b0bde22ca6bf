#pragma once

#include <plait/model/files/tensor_source.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

namespace plait {

/// Mixes the length and the bytes of `data` into `hash`. Tells models apart; not cryptographic.
std::uint64_t mix(std::uint64_t hash, std::span<std::byte const> data) noexcept;

/// Mixes samples (start, middle, end) of every tensor of `source` into `hash`. Errors: errc::io.
std::uint64_t mix_samples(std::uint64_t hash, tensor_source const& source);

} // namespace plait
