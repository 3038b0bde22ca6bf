#include <plait/actors/runtime/runtime_threads.hpp>

#include <plait/actors/error.hpp>
#include <plait/actors/runtime/condition.hpp>
#include <plait/actors/runtime/cpu_set.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/runtime/runtime_watchdog.hpp>
#include <plait/actors/runtime/thread_loop.hpp>
#include <plait/actors/runtime/thread_name.hpp>
#include <plait/actors/runtime/thread_pool.hpp>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace plait::detail {

namespace {

/// A loop with its thread.
struct looping_thread {
    looping_thread(loop_options const& options, watchdog* by)
        : loop(options.spin)
        , thread([this, name = options.name, by] {
            name_this_thread(name);
            watchdog::guard watched(by);
            loop.run();
            ended.store(true, std::memory_order_relaxed);
        })
    {
    }
    ~looping_thread()
    {
        stop();
        thread.join();
    }
    void stop() noexcept
    {
        if (!std::exchange(stopped, true)) loop.stop();
    }
    thread_loop loop;
    bool stopped = false;
    std::atomic<bool> ended{
        false}; ///< written by the thread near its end: joining it, which orders all else, takes no time
    std::thread thread;
};

/// The loop of a thread that is not the machine's.
class guest_thread final : public machine::guest {
public:
    executor& place() noexcept override { return loop_; }
    machine::outcome run() override
    {
        loop_.run();
        return machine::outcome::ended;
    }
    void end() noexcept override { loop_.stop(); }

private:
    thread_loop loop_;
};

/// Threads, and the machine's clock.
class thread_machine final : public machine {
public:
    explicit thread_machine(runtime_options const& options)
        : clock_(options.clock ? *options.clock : machine_clock_)
    {
        if (options.on_blocked && options.longest_turn <= duration::zero())
            throw error(errc::invalid_argument, "runtime_options::longest_turn is not positive");
        if (options.on_blocked) watchdog_.emplace(options.longest_turn, options.on_blocked);
        auto* by = watchdog_ ? &*watchdog_ : nullptr;
        auto threads = std::max(1U, options.threads);
        if (threads == 1) {
            single_.emplace(loop_options{options.name}, by);
            pool_ = &single_->loop;
        } else {
            several_.emplace(threads, options.name, by);
            pool_ = &*several_;
        }
    }

    bool simulated() const noexcept override { return false; }
    plait::clock& clock() noexcept override { return clock_; }

    std::uint64_t random_seed() override { return unpredictable_bits(); }

    executor& pool() noexcept override { return *pool_; }

    event_loop& start_loop(loop_options const& options) override
    {
        if (options.cpu && !cpus_.contains(*options.cpu))
            throw error(errc::invalid_argument, "loop_options::cpu: " + std::to_string(*options.cpu) +
                                                    ", but this process may use " + cpus_.text());
        if (options.spin < duration::zero()) throw error(errc::invalid_argument, "loop_options::spin: negative");
        // A loop may be let go of on its own thread, which can't join itself: whoever comes next does, without the
        // mutex, which the last destructors of such a thread may want.
        std::list<looping_thread> over;
        std::lock_guard lock(mutex_);
        for (auto l = loops_.begin(); l != loops_.end();) {
            auto const next = std::next(l);
            if (l->stopped && l->ended.load(std::memory_order_relaxed)) over.splice(over.end(), loops_, l);
            l = next;
        }
        auto& made = loops_.emplace_back(options, watchdog_ ? &*watchdog_ : nullptr);
        // A thread inherits the processors of the one that starts it, which may have been pinned itself.
        auto const cpus = options.cpu ? cpu_set(*options.cpu) : cpus_;
        if (!cpus.hold(made.thread.native_handle()) && options.cpu) {
            over.splice(over.end(), loops_, std::prev(loops_.end()));
            throw error(errc::invalid_argument, "loop_options::cpu: the system refuses " + cpus.text());
        }
        return made.loop;
    }

    void end_loop(event_loop& loop) noexcept override
    {
        std::lock_guard lock(mutex_);
        for (auto& l : loops_) {
            if (&l.loop == &loop) l.stop();
        }
    }

    bool owns(executor const& place) noexcept override
    {
        if (&place == pool_) return true;
        std::lock_guard lock(mutex_);
        return std::ranges::any_of(loops_, [&](looping_thread const& l) { return &l.loop == &place; });
    }

    std::unique_ptr<guest> come() override { return std::make_unique<guest_thread>(); }

    void wait(std::mutex& mutex, condition& changed, std::function<bool()> const& done) noexcept override
    {
        std::unique_lock lock(mutex);
        changed.wait(lock, done);
    }

    void end() noexcept override
    {
        std::list<looping_thread> all;
        {
            std::lock_guard lock(mutex_);
            all.swap(loops_);
        }
        all.clear();
        single_.reset();
        several_.reset();
        watchdog_.reset();
    }

private:
    cpu_set const cpus_ = cpu_set::of_this_thread();
    monotonic_clock machine_clock_;
    plait::clock& clock_;
    std::optional<watchdog> watchdog_; ///< goes after the threads that it watches
    std::mutex mutex_;                 ///< of the loops
    std::list<looping_thread> loops_;
    std::optional<looping_thread> single_;
    std::optional<thread_pool> several_;
    executor* pool_ = nullptr;
};

} // namespace

std::uint64_t unpredictable_bits()
{
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

std::unique_ptr<machine> make_thread_machine(runtime_options const& options)
{
    return std::make_unique<thread_machine>(options);
}

} // namespace plait::detail
