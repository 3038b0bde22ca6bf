#include <algorithm>

#include <plait/streams/device.hpp>
#include <plait/streams/stream.hpp>
#include <plait/streams/trace.hpp>

namespace plait {

std::string_view name(stream_role role) noexcept
{
    switch (role) {
    case stream_role::urgent:
        return "urgent";
    case stream_role::compute:
        return "compute";
    case stream_role::communication:
        return "communication";
    case stream_role::copy_in:
        return "copy_in";
    case stream_role::copy_out:
        return "copy_out";
    }
    return "unknown";
}

void device::driven_by(event_loop& /*home*/) noexcept {}

void device::record_in(trace_part& where)
{
    trace_ = &where;
    for (std::uint32_t i = 0; i < stream_roles; ++i) {
        auto const role = static_cast<stream_role>(i);
        where.name_track(i + 1, name(role));
        stream_of(role).record_in(where, i + 1);
    }
}

void device::abort(std::exception_ptr why) noexcept
{
    for (std::size_t role = 0; role < stream_roles; ++role)
        stream_of(static_cast<stream_role>(role)).fail(why);
    reap();
}

namespace {

bool all_over(std::span<ticket const> tickets) noexcept
{
    return std::ranges::all_of(tickets, &ticket::over);
}

} // namespace

void device::retire(std::byte* memory, std::size_t bytes, std::span<ticket const> tickets) noexcept
{
    if (all_over(tickets)) {
        deallocate(memory, bytes);
        return;
    }
    limbo_.push_back({memory, bytes, {tickets.begin(), tickets.end()}});
}

void device::reap() noexcept
{
    std::erase_if(limbo_, [this](limbo const& entry) {
        if (!all_over(entry.tickets)) return false;
        deallocate(entry.memory, entry.bytes);
        return true;
    });
}

void device::reap_all() noexcept
{
    for (auto const& entry : limbo_)
        deallocate(entry.memory, entry.bytes);
    limbo_.clear();
}

} // namespace plait
