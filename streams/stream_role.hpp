#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {

/// The streams that every gpu owns. Where a device can't run two at once, the lower enumerator goes first.
enum class stream_role : std::uint8_t {
    urgent,        ///< computation that should overtake `compute`: decode beside a long prefill
    compute,       ///< computation
    communication, ///< collectives
    copy_in,       ///< host to device, and what another stage sends
    copy_out,      ///< device to host, and what another stage gets
};
inline constexpr std::size_t stream_roles = 5;
std::string_view name(stream_role role) noexcept;

} // namespace plait
