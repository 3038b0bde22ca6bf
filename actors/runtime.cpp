#include <plait/actors/runtime.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <list>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace plait {

namespace {

void name_this_thread([[maybe_unused]] std::string const& name) noexcept
{
#if defined(__linux__)
    pthread_setname_np(pthread_self(), name.substr(0, 15).c_str()); // the kernel's limit
#endif
}

/// A loop with its thread.
struct looping_thread {
    explicit looping_thread(std::string name)
        : thread([this, name = std::move(name)] {
            name_this_thread(name);
            loop.run();
            ended.store(true, std::memory_order_release);
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
    event_loop loop;
    bool stopped = false;
    std::atomic<bool> ended{false}; ///< written by the thread as its last act: joining it takes no waiting
    std::thread thread;
};

/// Several threads that share one queue. Not serial: actors on it are, each by its own queue.
class thread_pool final : public executor {
public:
    thread_pool(unsigned count, std::string const& name)
    {
        for (unsigned i = 0; i < count; ++i) {
            threads_.emplace_back([this, label = name + "/" + std::to_string(i)] {
                name_this_thread(label);
                serve();
            });
        }
    }
    ~thread_pool() override
    {
        {
            std::lock_guard lock(mutex_);
            ending_ = true;
        }
        ready_.notify_all();
        for (auto& t : threads_) {
            t.join();
        }
    }

    void post(work& w) noexcept override
    {
        {
            std::lock_guard lock(mutex_);
            queue_.push_back(w);
        }
        ready_.notify_one();
    }

private:
    void serve()
    {
        detail::current_executor() = this;
        std::unique_lock lock(mutex_);
        for (;;) {
            ready_.wait(lock, [&] { return ending_ || !queue_.empty(); });
            auto* w = queue_.pop_front();
            if (!w) return;
            lock.unlock();
            w->run(*w);
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable ready_;
    detail::work_list queue_;
    bool ending_ = false;
    std::vector<std::thread> threads_;
};

/// Processors that the cgroup's quota allows; 0 when there is no quota.
unsigned cgroup_cpus()
{
    auto rounded = [](double quota, double period) {
        return quota > 0 && period > 0 ? static_cast<unsigned>(std::max(1L, std::lround(quota / period))) : 0U;
    };
    // Version 2: "<quota or max> <period>".
    if (std::ifstream file("/sys/fs/cgroup/cpu.max"); file) {
        std::string quota;
        double period = 0;
        file >> quota >> period;
        return rounded(quota == "max" ? 0 : std::strtod(quota.c_str(), nullptr), period);
    }
    std::ifstream quota_file("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    std::ifstream period_file("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
    double quota = 0;
    double period = 0;
    if (quota_file >> quota && period_file >> period) return rounded(quota, period);
    return 0;
}

} // namespace

struct runtime::state final : detail::actor_registry {
    state(runtime& owner, runtime_options o)
        : actor_registry(owner)
        , options(std::move(o))
    {
        auto threads = std::max(1U, options.threads);
        if (threads == 1) {
            single.emplace(options.name);
            pool = &single->loop;
        } else {
            several.emplace(threads, options.name);
            pool = &*several;
        }
    }

    void unhandled(failure const& f) noexcept override
    {
        if (options.on_unhandled) {
            options.on_unhandled(f);
            return;
        }
        runs.fail(f.exception);
    }

    runtime_options options;
    monotonic_clock machine_clock;

    detail::run_registry runs;

    event_loop& start_loop(std::string name)
    {
        std::lock_guard lock(mutex);
        // A loop may be let go of on its own thread, which can't join itself: whoever comes next does.
        loops.remove_if([](looping_thread const& l) { return l.stopped && l.ended.load(std::memory_order_acquire); });
        return loops.emplace_back(std::move(name)).loop;
    }

    /// No owner is left. The loop is gone already when the runtime has ended.
    void end_loop(event_loop& loop) noexcept
    {
        std::lock_guard lock(mutex);
        for (auto& l : loops) {
            if (&l.loop == &loop) l.stop();
        }
    }

    void end_loops() noexcept
    {
        std::list<looping_thread> all;
        std::lock_guard lock(mutex);
        all.swap(loops);
    }

    std::mutex mutex; ///< of the loops
    std::list<looping_thread> loops;
    std::optional<looping_thread> single;
    std::optional<thread_pool> several;
    executor* pool = nullptr;
};

runtime::runtime(runtime_options options)
    : state_(std::make_shared<state>(*this, std::move(options)))
{
}

runtime::~runtime()
{
    state_->runs.stop_all();
    state_->stop_all();
    state_->end_loops();
    state_->single.reset();
    state_->several.reset();
    state_->orphan_all();
}

void runtime::drive(job_base& job, stop_token stop)
{
    struct running {
        job_base& job;
        event_loop loop;
        task_context context;
    };
    struct start_work : work {
        running* self;
    };

    if (auto failure = state_->runs.take_failure()) std::rethrow_exception(failure);
    stop_source source;
    auto pass_on = [&source] { source.request_stop(); };
    detail::run_entry entry;
    entry.source = &source;
    state_->runs.add(entry);
    {
        stop_callback on_stop(stop, pass_on);
        running r{job, {}, {}};
        r.context.exec = &r.loop;
        r.context.stop = source.token();
        start_work start;
        start.self = &r;
        start.run = [](work& self) noexcept {
            auto& r = *static_cast<start_work&>(self).self;
            r.job.start(
                r.context,
                [](void* owner) noexcept {
                    auto& r = *static_cast<running*>(owner);
                    r.job.finish();
                    r.loop.stop();
                },
                &r);
        };
        r.loop.post(start);
        r.loop.run();
    }
    state_->runs.remove(entry);
    if (auto failure = state_->runs.take_failure()) std::rethrow_exception(failure);
}

std::shared_ptr<event_loop> runtime::new_loop(std::string name)
{
    auto& loop = state_->start_loop(std::move(name));
    return {&loop, [home = std::weak_ptr(state_)](event_loop* unowned) {
                if (auto state = home.lock()) state->end_loop(*unowned);
            }};
}

executor& runtime::pool() noexcept
{
    return *state_->pool;
}

plait::clock& runtime::clock() noexcept
{
    return state_->options.clock ? *state_->options.clock : state_->machine_clock;
}

std::uint64_t runtime::random_seed()
{
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
}

std::size_t runtime::actors() const noexcept
{
    return state_->living();
}

detail::run_registry& runtime::runs() noexcept
{
    return state_->runs;
}

std::shared_ptr<detail::actor_registry> runtime::registry() noexcept
{
    return state_;
}

bool runtime::owns(executor const& place) noexcept
{
    if (&place == state_->pool) return true;
    std::lock_guard lock(state_->mutex);
    return std::ranges::any_of(state_->loops, [&](looping_thread const& l) { return &l.loop == &place; });
}

unsigned runtime::available_cpus() noexcept
{
    unsigned cpus = std::thread::hardware_concurrency();
#if defined(__linux__)
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) cpus = static_cast<unsigned>(CPU_COUNT(&set));
#endif
    try {
        if (auto quota = cgroup_cpus()) cpus = std::min(cpus, quota);
    } catch (...) {
        // An unreadable quota is no quota.
    }
    return std::max(1U, cpus);
}

} // namespace plait
