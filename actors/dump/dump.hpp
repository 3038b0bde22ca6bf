#pragma once

#include <plait/actors/tasks/task.hpp>
#include <plait/actors/time/clock.hpp>

#include <string>

namespace plait {

/// What goes on in `home`, for people: every actor with its state and the messages that wait, every method that it is
/// in, every task that was started from outside, and under each the chains of awaits, down to the file and line of the
/// last one and what it waits for.
///
/// Each actor and each task tells it on its own executor, so what it tells is true at one moment of its own; those that
/// have not answered within `patience` are busy, and the text says so. It reads `home`'s clock and stops nothing. The
/// caller keeps `home` until it ends.
task<std::string> dump(runtime& home, duration patience = std::chrono::milliseconds(250));

} // namespace plait
