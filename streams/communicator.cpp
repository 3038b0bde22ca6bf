#include <plait/streams/communicator.hpp>

namespace plait {

communicator::~communicator() = default;

std::string_view name(collective_kind kind) noexcept
{
    switch (kind) {
    case collective_kind::all_reduce:
        return "all_reduce";
    case collective_kind::all_gather:
        return "all_gather";
    case collective_kind::reduce_scatter:
        return "reduce_scatter";
    case collective_kind::all_to_all:
        return "all_to_all";
    case collective_kind::broadcast:
        return "broadcast";
    case collective_kind::send:
        return "send";
    case collective_kind::receive:
        return "receive";
    }
    return "unknown";
}

std::string_view name(element_kind kind) noexcept
{
    switch (kind) {
    case element_kind::f32:
        return "f32";
    case element_kind::i32:
        return "i32";
    case element_kind::u8:
        return "u8";
    }
    return "unknown";
}

std::int64_t bytes_of(element_kind kind) noexcept
{
    return kind == element_kind::u8 ? 1 : 4;
}

operation_info info_of(collective_call const& call, int ranks) noexcept
{
    auto const whole = call.kind == collective_kind::all_gather || call.kind == collective_kind::reduce_scatter ||
                       call.kind == collective_kind::all_to_all;
    auto const elements = call.count * (whole ? ranks : 1);
    return {name(call.kind), elements * bytes_of(call.element), 0};
}

} // namespace plait
