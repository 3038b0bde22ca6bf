#pragma once

#include <atomic>
#include <concepts>
#include <utility>

namespace plait {

class stop_source;

namespace detail {

class stop_callback_base {
protected:
    explicit stop_callback_base(void (*call)(stop_callback_base&) noexcept) noexcept
        : call_(call)
    {
    }
    stop_callback_base(stop_callback_base const&) = delete;
    stop_callback_base& operator=(stop_callback_base const&) = delete;
    ~stop_callback_base() = default;

    /// Links this into the source, or calls it now if the stop was requested already.
    void link(stop_source const* source) noexcept;
    /// After this the callback doesn't run and isn't running on another thread.
    void unlink() noexcept;

private:
    friend stop_source;

    void (*call_)(stop_callback_base&) noexcept;
    stop_source const* source_ = nullptr;
    stop_callback_base* next_ = nullptr;
    stop_callback_base** previous_ = nullptr; ///< null when not in the source's list
    bool* removed_ = nullptr;                 ///< set while running: told when the callback destroys itself
    std::atomic<bool> done_{false};           ///< the callback has returned
};

} // namespace detail

/// Sees whether a stop was requested. A copyable pointer: the source outlives it, as it does when the token comes from
/// the awaiter of a task.
class stop_token {
public:
    /// A token of no source: never stopped.
    stop_token() noexcept = default;

    bool stop_requested() const noexcept;
    bool stop_possible() const noexcept { return source_ != nullptr; }
    friend bool operator==(stop_token, stop_token) noexcept = default;

private:
    friend stop_source;
    template<class F>
    friend class stop_callback;
    explicit stop_token(stop_source const* source) noexcept
        : source_(source)
    {
    }

    stop_source const* source_ = nullptr;
};

/// Requests a stop, once. Like std::stop_source, but it is itself the shared state: nothing is allocated, it doesn't
/// move, and it must outlive its tokens and callbacks. All of it may be used from any thread.
class stop_source {
public:
    stop_source() noexcept = default;
    stop_source(stop_source const&) = delete;
    stop_source& operator=(stop_source const&) = delete;
    ~stop_source();

    stop_token token() const noexcept { return stop_token{this}; }
    bool stop_requested() const noexcept { return (state_.load(std::memory_order_acquire) & requested) != 0; }

    /// Runs the callbacks on this thread. False if a stop was requested before.
    bool request_stop() noexcept;

private:
    friend detail::stop_callback_base;

    static constexpr unsigned requested = 1;
    static constexpr unsigned locked = 2;

    bool add(detail::stop_callback_base&) const noexcept;
    void remove(detail::stop_callback_base&) const noexcept;
    unsigned lock() const noexcept;

    /// Bit 0: a stop was requested (never cleared). Bit 1: the list below is being changed; held for a few
    /// instructions, never while a callback runs.
    mutable std::atomic<unsigned> state_{0};
    mutable detail::stop_callback_base* callbacks_ = nullptr;
    mutable void const* notifier_ = nullptr; ///< the thread inside request_stop
};

inline bool stop_token::stop_requested() const noexcept
{
    return source_ && source_->stop_requested();
}

/// Calls `f` when a stop is requested, on the thread that requests it, or at once if it was requested before. `f` only
/// enqueues: it never resumes a coroutine, takes long or throws. The destructor waits for a call in progress on
/// another thread; a callback may destroy itself.
template<class F>
class [[nodiscard]] stop_callback : private detail::stop_callback_base {
public:
    template<class G>
        requires std::constructible_from<F, G>
    stop_callback(stop_token token, G&& f)
        : stop_callback_base([](stop_callback_base& self) noexcept { static_cast<stop_callback&>(self).f_(); })
        , f_(std::forward<G>(f))
    {
        link(token.source_);
    }
    ~stop_callback() { unlink(); }

private:
    F f_;
};

template<class F>
stop_callback(stop_token, F) -> stop_callback<F>;

} // namespace plait
