#pragma once

#include <plait/actors/time/clock.hpp>

#include <optional>
#include <string>

namespace plait {

/// How runtime::new_loop makes a loop. A simulation, which has no threads, takes only the name.
struct loop_options {
    /// The thread's name; the kernel keeps 15 characters.
    std::string name = "plait";
    /// The one processor that the thread runs on, as the system numbers them. Without it the thread runs where the
    /// thread ran that made the runtime.
    std::optional<unsigned> cpu{};
    /// How long the loop goes on looking for works before it parks. A post to a loop that spins needs no system call
    /// and costs the poster as little as its receiver; it pays where both have a processor to themselves.
    duration spin{};
};

} // namespace plait
