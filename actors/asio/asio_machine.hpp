#pragma once

#include <plait/actors/asio/asio_clock.hpp>
#include <plait/actors/asio/asio_executor.hpp>
#include <plait/actors/runtime/machine.hpp>

#include <asio/io_context.hpp>

#include <atomic>
#include <list>
#include <optional>

namespace plait::detail {

/// The pool: each work is a handler of its own, so the threads that run the context share them.
class asio_pool final : public executor {
public:
    /// Both outlive it.
    asio_pool(asio::any_io_executor const& underlying, std::atomic<std::size_t>& handlers) noexcept;

    void post(work& w) noexcept override;
    bool serial() const noexcept override { return false; }

private:
    asio::any_io_executor const& underlying_;
    std::atomic<std::size_t>& handlers_;
};

/// A machine in an Asio context: no thread, and the context's time.
class asio_machine final : public machine {
public:
    /// Runs `context` itself where it has to wait.
    asio_machine(asio::io_context& context, plait::clock* clock);
    /// Waits for whoever runs the context of `where`.
    asio_machine(asio::any_io_executor where, plait::clock* clock);
    ~asio_machine() override;

    bool simulated() const noexcept override { return false; }
    bool has_threads() const noexcept override { return false; }
    plait::clock& clock() noexcept override { return *clock_; }
    std::uint64_t random_seed() override;
    executor& pool() noexcept override { return pool_; }
    event_loop& start_loop(loop_options const& options) override;
    void end_loop(event_loop& loop) noexcept override;
    bool owns(executor const& place) noexcept override;
    std::unique_ptr<guest> come() override;
    void wait(std::mutex& mutex, condition& changed, std::function<bool()> const& done) noexcept override;
    void end() noexcept override;

    /// Whether nothing of it waits in the context or runs there: then end() returns at once.
    bool quiet() const noexcept { return handlers_.load(std::memory_order_acquire) == 0; }
    /// Has `then` called in the context when that is so: it looks again and again, each time behind the handlers that
    /// are there. `then` may destroy this.
    void when_quiet(std::function<void()> then);

private:
    class visitor;
    struct loop;

    bool inside() noexcept;
    /// Throws where waiting would never end.
    void check_can_wait();
    bool run_context(std::function<bool()> const& done, std::exception_ptr* why);

    asio::io_context* const context_; ///< that it runs, or null
    asio::any_io_executor where_;
    std::optional<asio_clock> own_clock_;
    plait::clock* clock_;
    std::atomic<std::size_t> handlers_{0}; ///< of places, that wait in the context or run
    asio_pool pool_;
    std::mutex mutex_; ///< of the loops
    std::list<loop> loops_;
};

} // namespace plait::detail
