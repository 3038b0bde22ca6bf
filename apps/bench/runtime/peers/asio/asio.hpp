#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

#include <string>

/// The workloads on Asio: awaitables with use_awaitable on one io_context, which runs on one thread where one is
/// enough.
namespace plait::bench::with_asio {

/// Of Asio: "1.22.1".
std::string version();

sample await_child(std::int64_t n);
/// A coroutine on one strand runs another on a second strand and waits for its value.
sample ask_beside(std::int64_t n);
/// The same between two contexts, each with its thread on a processor of its own.
sample ask_asleep(std::int64_t n);
sample many_to_many(std::int64_t n);
sample many_to_many_across(std::int64_t n);
/// n coroutines wait for a channel's next value, a channel each: to cancel one of many that wait for the same, Asio
/// looks at all of them. A cancellation signal each, sent to all; their waits give the error, or throw it.
sample cancel_results(std::int64_t n);
sample cancel_throwing(std::int64_t n);
sample arm_and_cancel(std::int64_t n);
sample arm_and_fire(std::int64_t n);

} // namespace plait::bench::with_asio
