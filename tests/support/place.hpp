#pragma once

#include <plait/actors/actor.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/tasks/scope.hpp>

#include <atomic>
#include <functional>
#include <thread>

namespace plait::test {

/// Runs coroutines and functions on its executor: on a loop of its own, a second thread for a test.
struct place : actor {
    task<> run(std::function<task<>()> body) { co_await body(); }
    void call(std::function<void()> f) { f(); }
    /// Answers when what was asked before has begun.
    void look() {}
};

/// Awaits `t` under a stop token of the test's own.
template<class T>
task<result<T>> under(stop_token stop, task<T> t)
{
    task_context context = co_await detail::current_context();
    context.stop = stop;
    co_return co_await detail::result_with_context(std::move(t), context);
}

/// Lets a stop race with what completes a wait: the wait is on one thread, its completion on another, the stop on the
/// test's own. The last two go off together, and who was ahead waits a little longer the next time: so they soon meet.
class stop_race {
public:
    explicit stop_race(runtime& rt)
        : waiter_(rt.spawn_on<place>(rt.new_loop("waits")))
        , completer_(rt.spawn_on<place>(rt.new_loop("completes")))
    {
    }

    /// Returns when `waits` has ended, completed or cancelled, and `completes` has returned.
    task<> run(task<> waits, std::function<void()> completes)
    {
        stop_source source;
        result<void> outcome;
        std::atomic<bool> ready{false};
        std::atomic<bool> go{false};
        std::function<task<>()> wait = [&]() -> task<> { outcome = co_await under(source.token(), std::move(waits)); };
        std::function<void()> complete = [&] {
            ready = true;
            for (int i = 0; !go; ++i) {
                if (i > 1000) std::this_thread::yield(); // the other may need this very core
            }
            dawdle(-delay_);
            completes();
        };
        task<> waiting = ask<&place::run>(waiter_, wait);
        task<> completing = ask<&place::call>(completer_, complete);
        auto body = [&](scope& s) -> task<> {
            s.start(std::move(waiting));
            co_await this_task::yield();         // it was asked,
            co_await ask<&place::look>(waiter_); // and waits
            s.start(std::move(completing));
            co_await this_task::yield();
            for (int i = 0; !ready; ++i) {
                if (i > 1000) std::this_thread::yield();
            }
            go = true;
            dawdle(delay_);
            source.request_stop();
        };
        co_await with_scope(body);
        delay_ += outcome ? -1 : 1;
        if (outcome) {
            ++completed;
        } else if (outcome.error() == errc::cancelled) {
            ++cancelled;
        }
    }

    int completed = 0;
    int cancelled = 0;

private:
    /// Eight steps are a yield, so that it also works where both share a core.
    static void dawdle(int steps)
    {
        for (int i = 1; i <= steps; ++i) {
            if (i % 8 == 0) std::this_thread::yield();
            for (std::atomic<int> left = 8; left > 0; --left) {
            }
        }
    }

    int delay_ = 0; ///< steps that the stop waits, or, below zero, the completion
    ref<place> waiter_;
    ref<place> completer_;
};

} // namespace plait::test
