#include <plait/actors/runtime/thread_pool.hpp>

#include <plait/actors/runtime/runtime_watchdog.hpp>
#include <plait/actors/runtime/thread_name.hpp>

#include <algorithm>
#include <chrono>

namespace plait::detail {

namespace {

/// Looks in which nobody came to what is queued: some ten nanoseconds each.
constexpr unsigned standing_looks = look_limit<machine_atomics>::most;

/// Works in the queue that are a lot.
constexpr std::size_t many = 16;

constexpr std::chrono::microseconds shortest_nap{100};
constexpr std::chrono::microseconds longest_nap{1000};

} // namespace

thread_pool::thread_pool(unsigned count, std::string const& name, watchdog* by)
{
    threads_.reserve(count);
    for (unsigned i = 0; i < count; ++i) {
        threads_.emplace_back([this, label = name + "/" + std::to_string(i), by] {
            name_this_thread(label);
            watchdog::guard watched(by);
            serve();
        });
    }
}

thread_pool::~thread_pool()
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

void thread_pool::post(work& w) noexcept
{
    bool const from_here = current_executor() == this;
    // Notified under the mutex: what the work does may end this as soon as it is let go of.
    std::lock_guard lock(mutex_);
    queue_.push_back(w);
    set(queued_, queued_.load(std::memory_order_relaxed) + 1);
    if (!from_here) set(help_, true);
    call_others();
}

void thread_pool::serve()
{
    current_executor() = this;
    look_limit<machine_atomics> looks;
    std::unique_lock lock(mutex_);
    for (;;) {
        if (queue_.empty()) wait(lock, looks);
        auto* const w = queue_.pop_front();
        if (!w) return; // it ends
        set(queued_, queued_.load(std::memory_order_relaxed) - 1);
        set(taken_, taken_.load(std::memory_order_relaxed) + 1);
        if (queue_.empty()) set(help_, false);
        call_others();
        lock.unlock();
        w->run(*w);
        lock.lock();
    }
}

bool thread_pool::all_hands() const noexcept
{
    auto const queued = queued_.load(std::memory_order_relaxed);
    return queued > many || (queued > 0 && help_.load(std::memory_order_relaxed));
}

/// Under the mutex: wakes somebody who takes a work, or who watches whether the one that posted it comes to it.
void thread_pool::call_others() noexcept
{
    if (asleep_ > 0 && !queue_.empty() && (all_hands() || !watched_)) ready_.notify_one();
}

/// Until there is something in the queue that this thread should take, or the pool ends.
void thread_pool::wait(std::unique_lock<std::mutex>& lock, look_limit<machine_atomics>& looks)
{
    while (!ending_ && !all_hands()) {
        if (watched_) {
            sleep(lock);
            continue;
        }
        watched_ = true;
        auto const seen = watch(lock, looks);
        watched_ = false;
        if (seen == sight::help_wanted) {
            if (queue_.empty()) continue;
            set(help_, true);
            return;
        }
        if (queue_.empty() && !ending_) sleep(lock);
    }
}

void thread_pool::sleep(std::unique_lock<std::mutex>& lock)
{
    ++asleep_;
    ready_.wait(lock);
    --asleep_;
}

/// Goes on while the others work, and nothing stays in the queue for long.
thread_pool::sight thread_pool::watch(std::unique_lock<std::mutex>& lock, look_limit<machine_atomics>& looks)
{
    lock.unlock();
    auto const seen = look(looks.value());
    lock.lock();
    looks.learn(seen != sight::nothing);
    if (seen != sight::others_work) return seen;
    for (auto nap = shortest_nap; !ending_; nap = std::min(2 * nap, longest_nap)) {
        auto const taken = taken_.load(std::memory_order_relaxed);
        auto const queued = queued_.load(std::memory_order_relaxed);
        ++asleep_;
        ready_.wait_for(lock, nap);
        --asleep_;
        if (all_hands()) return sight::help_wanted;
        auto const gone = taken_.load(std::memory_order_relaxed) - taken;
        if (!queue_.empty() && (gone == 0 || gone < queued)) return sight::help_wanted;
        if (gone == 0) break;
    }
    return sight::nothing;
}

/// Without the mutex, for some microseconds.
thread_pool::sight thread_pool::look(unsigned looks) const noexcept
{
    auto taken = taken_.load(std::memory_order_relaxed);
    auto out = sight::nothing;
    unsigned in_vain = 0;
    unsigned standing = 0;
    for (unsigned all = 0; in_vain < looks && all < 4 * standing_looks; ++all) {
        if (all_hands()) return sight::help_wanted;
        if (auto const now = taken_.load(std::memory_order_relaxed); now != taken) {
            taken = now;
            out = sight::others_work;
            standing = in_vain = 0;
        } else if (queued_.load(std::memory_order_relaxed) == 0) {
            ++in_vain;
            standing = 0;
        } else if (++standing == standing_looks) {
            return sight::help_wanted;
        }
        machine_atomics::pause();
    }
    return out;
}

} // namespace plait::detail
