#pragma once

#include <plait/actors/runtime/machine.hpp>

#include <cstdint>
#include <memory>

namespace plait {

struct runtime_options;

namespace detail {

/// A machine of real threads, as `options` say.
std::unique_ptr<machine> make_thread_machine(runtime_options const& options);

/// From the system.
std::uint64_t unpredictable_bits();

} // namespace detail

} // namespace plait
