#pragma once

#include <plait/actors/tasks/stop_state.hpp>

#include <concepts>
#include <utility>

namespace plait {

class stop_source;

/// Sees whether a stop was requested. A copyable pointer: the source outlives it, as it does when the token comes from
/// the awaiter of a task.
class stop_token {
public:
    /// A token of no source: never stopped.
    stop_token() noexcept = default;

    bool stop_requested() const noexcept { return state_ && state_->stop_requested(); }
    bool stop_possible() const noexcept { return state_ != nullptr; }
    friend bool operator==(stop_token, stop_token) noexcept = default;

private:
    friend stop_source;
    template<class F>
    friend class stop_callback;
    explicit stop_token(detail::stop_state<> const* state) noexcept
        : state_(state)
    {
    }

    detail::stop_state<> const* state_ = nullptr;
};

/// Requests a stop, once. Like std::stop_source, but it is itself the shared state: nothing is allocated, it doesn't
/// move, and it must outlive its tokens and callbacks. All of it may be used from any thread.
class stop_source {
public:
    stop_source() noexcept = default;

    stop_token token() const noexcept { return stop_token{&state_}; }
    bool stop_requested() const noexcept { return state_.stop_requested(); }

    /// Runs the callbacks on this thread. False if a stop was requested before.
    bool request_stop() noexcept { return state_.request_stop(); }

private:
    detail::stop_state<> state_;
};

/// Calls `f` when a stop is requested, on the thread that requests it, or at once if it was requested before. `f` only
/// enqueues: it never resumes a coroutine, takes long or throws. The destructor waits for a call in progress on
/// another thread; a callback may destroy itself.
template<class F>
class [[nodiscard]] stop_callback : private detail::stop_state<>::callback {
public:
    template<class G>
        requires std::constructible_from<F, G>
    stop_callback(stop_token token, G&& f)
        : callback([](callback& self) noexcept { static_cast<stop_callback&>(self).f_(); })
        , f_(std::forward<G>(f))
    {
        link(token.state_);
    }
    ~stop_callback() { unlink(); }

private:
    F f_;
};

template<class F>
stop_callback(stop_token, F) -> stop_callback<F>;

} // namespace plait
