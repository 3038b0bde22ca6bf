#pragma once

#include <caf/all.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace plait::bench::with_caf {

/// A pool of that many workers, stealing from each other; one that polls never sleeps.
struct settings : caf::actor_system_config {
    explicit settings(std::size_t threads, bool polls = false)
    {
        set("scheduler.max-threads", threads);
        if (polls) set("work-stealing.aggressive-poll-attempts", std::numeric_limits<std::int64_t>::max() / 2);
    }
};

/// Tells `who` how much to do and gives its answer, -1 if it has none.
inline std::int64_t run(caf::actor_system& system, caf::actor who, std::int64_t n)
{
    caf::scoped_actor self(system);
    std::int64_t sum = -1;
    self->request(who, caf::infinite, n).receive([&](std::int64_t got) { sum = got; }, [](caf::error const&) {});
    self->send_exit(who, caf::exit_reason::user_shutdown);
    return sum;
}

} // namespace plait::bench::with_caf
