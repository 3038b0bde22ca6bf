#pragma once

#include <plait/apps/bench/runtime/meter.hpp>

/// The workloads on Asio: awaitables with use_awaitable on one io_context, which runs on one thread where one is
/// enough.
namespace plait::bench::with_asio {

sample await_child(std::int64_t n);
/// A coroutine on one strand runs another on a second strand and waits for its value.
sample ask_beside(std::int64_t n);
/// The same between two contexts, each with its thread.
sample ask_asleep(std::int64_t n);
sample many_to_many(std::int64_t n);
sample many_to_many_across(std::int64_t n);
sample arm_and_cancel(std::int64_t n);
sample arm_and_fire(std::int64_t n);

} // namespace plait::bench::with_asio
