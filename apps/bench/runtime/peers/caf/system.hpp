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

/// Asks `who` from outside; -1 when it has no answer.
inline std::int64_t ask(caf::actor_system& system, caf::actor const& who, std::int64_t n)
{
    caf::scoped_actor self(system);
    std::int64_t out = -1;
    self->request(who, caf::infinite, n).receive([&](std::int64_t got) { out = got; }, [](caf::error const&) {});
    return out;
}

/// The same with one that is done after it.
inline std::int64_t run(caf::actor_system& system, caf::actor const& who, std::int64_t n)
{
    auto const out = ask(system, who, n);
    caf::anon_send_exit(who, caf::exit_reason::user_shutdown);
    return out;
}

} // namespace plait::bench::with_caf
