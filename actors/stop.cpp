#include <plait/actors/stop.hpp>

#include <cassert>
#include <thread>

namespace plait {

namespace {

/// An address that is this thread's own.
void const* this_thread_mark() noexcept
{
    static constinit thread_local char mark = 0;
    return &mark;
}

} // namespace

namespace detail {

void stop_callback_base::link(stop_source const* source) noexcept
{
    if (!source) return;
    source_ = source;
    if (!source->add(*this)) {
        source_ = nullptr;
        call_(*this);
    }
}

void stop_callback_base::unlink() noexcept
{
    if (source_) source_->remove(*this);
}

} // namespace detail

stop_source::~stop_source()
{
    assert(!callbacks_ && "a stop_source must outlive its callbacks");
}

unsigned stop_source::lock() const noexcept
{
    for (;;) {
        auto state = state_.load(std::memory_order_relaxed);
        if (!(state & locked) &&
            state_.compare_exchange_weak(state, state | locked, std::memory_order_acquire, std::memory_order_relaxed)) {
            return state;
        }
        // The holder is between two instructions; if it was preempted, let it run.
        if (state & locked) std::this_thread::yield();
    }
}

bool stop_source::request_stop() noexcept
{
    if (stop_requested()) return false;
    if (lock() & requested) {
        state_.store(requested, std::memory_order_release);
        return false;
    }
    notifier_ = this_thread_mark();
    while (callbacks_) {
        auto* callback = callbacks_;
        callbacks_ = callback->next_;
        if (callbacks_) callbacks_->previous_ = &callbacks_;
        callback->previous_ = nullptr;
        bool removed = false;
        callback->removed_ = &removed;
        state_.store(requested, std::memory_order_release);

        callback->call_(*callback);

        if (!removed) {
            callback->removed_ = nullptr;
            callback->done_.store(true, std::memory_order_release);
        }
        lock();
    }
    state_.store(requested, std::memory_order_release);
    return true;
}

bool stop_source::add(detail::stop_callback_base& callback) const noexcept
{
    if (stop_requested()) return false;
    auto state = lock();
    if (state & requested) {
        state_.store(state, std::memory_order_release);
        return false;
    }
    callback.next_ = callbacks_;
    callback.previous_ = &callbacks_;
    if (callbacks_) callbacks_->previous_ = &callback.next_;
    callbacks_ = &callback;
    state_.store(state, std::memory_order_release);
    return true;
}

void stop_source::remove(detail::stop_callback_base& callback) const noexcept
{
    auto state = lock();
    if (callback.previous_) {
        *callback.previous_ = callback.next_;
        if (callback.next_) callback.next_->previous_ = callback.previous_;
        state_.store(state, std::memory_order_release);
        return;
    }
    bool own = notifier_ == this_thread_mark();
    state_.store(state, std::memory_order_release);
    if (own) {
        // Either it is this very callback that destroys itself, or it has returned.
        if (callback.removed_) *callback.removed_ = true;
    } else {
        while (!callback.done_.load(std::memory_order_acquire)) {
            std::this_thread::yield();
        }
    }
}

} // namespace plait
