#pragma once

#include <plait/actors/actor.hpp>

#include <functional>

namespace plait::test {

/// Runs coroutines on its executor: on a loop of its own, a second thread for a test.
struct place : actor {
    task<> run(std::function<task<>()> body) { co_await body(); }
};

/// Awaits `t` under a stop token of the test's own.
template<class T>
task<result<T>> under(stop_token stop, task<T> t)
{
    task_context context = co_await detail::current_context();
    context.stop = stop;
    co_return co_await detail::result_with_context(std::move(t), context);
}

} // namespace plait::test
