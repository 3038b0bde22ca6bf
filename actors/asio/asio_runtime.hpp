#pragma once

#include <plait/actors/runtime/runtime.hpp>

#include <asio/any_io_executor.hpp>
#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include <functional>
#include <memory>
#include <utility>

namespace plait {

namespace detail {
class asio_machine;
}

struct asio_runtime_options : runtime_hooks {
    /// The time that tasks see; null for the context's. Outlives the runtime.
    plait::clock* clock = nullptr;
};

/// A runtime in somebody else's Asio context, without a thread of plait's own: its pool, its loops with their devices
/// and its clock are handlers of that context. One thread may run the context or several; each loop and each actor
/// stays serial, the pool's actors share the threads. A work that blocks blocks the context, so a device has one
/// thread: the one that is there.
///
/// Where a thread must wait, in `run` and in the destructor, it must not be in a handler of the context: `run` throws
/// errc::invalid_argument there, and the destructor ends the program, unless async_end has completed. The context
/// outlives the runtime.
class asio_runtime {
public:
    /// `run` and the destructor run `context` themselves until they are done, and leave it stopped or not as they found
    /// it. So handlers of others run there too: what they refer to must still live. If other threads run it at the same
    /// time, a work guard of theirs keeps it from ending.
    ///
    /// When a handler throws, or stops the context, `run` asks its task to stop, waits for it, and throws that or
    /// errc::cancelled. In the destructor a stop waits until it is done, and an exception ends the program.
    explicit asio_runtime(asio::io_context& context, asio_runtime_options const& options = {});

    /// For a context that other threads run, such as an asio::thread_pool: `run` and the destructor wait for them. A
    /// task of `run` is on one of them, too. Nobody else may be left to wait for: an io_context that was stopped ends
    /// the program in the destructor.
    explicit asio_runtime(asio::any_io_executor where, asio_runtime_options const& options = {});

    ~asio_runtime();

    /// Until async_end completes.
    runtime& home() noexcept { return *home_; }

    /// As runtime::run.
    template<class T>
    T run(task<T> t, stop_token stop = {})
    {
        return home_->run(std::move(t), stop);
    }

    /// Ends the runtime as its destructor does, but without waiting: the way from within the context. Completes as
    /// `void()` through the handler's executor; then nothing of the runtime is left in the context, and this may be
    /// destroyed anywhere. Nothing may be started from the call on. It can't be cancelled.
    template<class Token>
    auto async_end(Token&& token)
    {
        return asio::async_initiate<Token, void()>(
            [](auto&& handler, asio_runtime* self) {
                using handler_type = std::decay_t<decltype(handler)>;
                auto guard = asio::make_work_guard(handler);
                auto kept = std::make_shared<handler_type>(std::forward<decltype(handler)>(handler));
                self->end([kept, guard]() mutable {
                    auto handler = std::move(*kept);
                    kept.reset();
                    asio::dispatch(guard.get_executor(), std::move(handler));
                });
            },
            token, this);
    }

private:
    struct ending;
    /// `then` is called by a handler of the context.
    void end(std::function<void()> then);

    asio_runtime(std::unique_ptr<detail::asio_machine> below, runtime_hooks hooks);

    detail::asio_machine* below_; ///< the runtime owns it
    std::unique_ptr<runtime> home_;
};

} // namespace plait
