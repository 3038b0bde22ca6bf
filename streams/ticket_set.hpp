#pragma once

#include <array>

#include <plait/actors/error.hpp>
#include <plait/streams/stream_role.hpp>
#include <plait/streams/ticket.hpp>

namespace plait {

/// Points on the streams of one device, of each stream the last one: it covers those before it.
class ticket_set {
public:
    /// Throws error(errc::invalid_argument) beyond one stream for each role.
    void add(ticket t)
    {
        if (t.over()) return;
        for (auto& mine : tickets_)
            if (mine.where() == t.where()) {
                if (mine.value() < t.value()) mine = t;
                return;
            }
        for (auto& mine : tickets_)
            if (mine.over()) {
                mine = t;
                return;
            }
        throw error(errc::invalid_argument, "tickets of more streams than a device has");
    }

    void clear() noexcept { tickets_ = {}; }

    /// Some of them have passed.
    std::array<ticket, stream_roles> const& tickets() const noexcept { return tickets_; }

private:
    std::array<ticket, stream_roles> tickets_{};
};

} // namespace plait
