#pragma once

#include <plait/actors/sync/ring.hpp>
#include <plait/actors/sync/waiter.hpp>

#include <cassert>
#include <optional>

namespace plait {

/// A bounded queue between coroutines of any executors: any number send, any number receive, first come first served.
/// A capacity of 0 hands each value over directly. Nothing is allocated once it has been as full as it gets.
template<class T>
class channel {
public:
    explicit channel(std::size_t capacity)
        : capacity_(capacity)
    {
    }
    channel(channel const&) = delete;
    channel& operator=(channel const&) = delete;
    ~channel() { assert(senders_.empty() && receivers_.empty() && "a channel must outlive its waiters"); }

    class send_operation;
    class receive_operation;

    /// `co_await c.send(v)`: returns when the channel has taken the value. Throws `errc::closed` when it is closed
    /// first, and `errc::cancelled` after a stop; then the value was not sent.
    [[nodiscard]] send_operation send(T value) { return send_operation(*this, std::move(value)); }

    /// `co_await c.receive()`: the oldest value; nothing when the channel is closed and empty. Throws
    /// `errc::cancelled` after a stop; no value is lost then.
    [[nodiscard]] receive_operation receive() noexcept { return receive_operation(*this); }

    /// Sends if there is room now and nobody waits for it. Leaves `value` alone when it returns false.
    bool try_send(T&& value)
    {
        detail::waiter* ready = nullptr;
        {
            std::lock_guard lock(mutex_);
            if (closed_ || !put(value, ready)) return false;
        }
        if (ready) ready->post();
        return true;
    }
    bool try_send(T const& value)
    {
        T copy = value;
        return try_send(std::move(copy));
    }

    /// The oldest value, if there is one now.
    std::optional<T> try_receive()
    {
        detail::work_list ready;
        std::optional<T> value;
        {
            std::lock_guard lock(mutex_);
            take(value, ready);
        }
        resumption::post_all(ready);
        return value;
    }

    /// Takes nothing more: waiting senders fail with `errc::closed`. What was sent can still be received; then
    /// receivers get nothing.
    void close() noexcept
    {
        detail::waiter* senders = nullptr;
        detail::waiter* receivers = nullptr;
        {
            std::lock_guard lock(mutex_);
            closed_ = true;
            senders = senders_.pop_all();
            receivers = receivers_.pop_all();
        }
        detail::waiter_list::resume_chain(senders);
        detail::waiter_list::resume_chain(receivers);
    }

    bool closed() const noexcept
    {
        std::lock_guard lock(mutex_);
        return closed_;
    }
    /// Values that were sent and not yet received.
    std::size_t size() const noexcept
    {
        std::lock_guard lock(mutex_);
        return values_.size();
    }
    std::size_t capacity() const noexcept { return capacity_; }

private:
    struct sender : detail::waiter {
        explicit sender(T&& v)
            : value(std::move(v))
        {
        }
        T value;
        bool sent = false;
    };
    struct receiver : detail::waiter {
        std::optional<T> value;
    };

    /// Takes `value`; `ready` is the receiver that got it. False when there is no room.
    bool put(T& value, detail::waiter*& ready)
    {
        // A receiver waits only when nothing is queued, so handing over keeps the order.
        if (auto* waiting = static_cast<receiver*>(receivers_.front())) {
            waiting->value.emplace(std::move(value));
            receivers_.remove(*waiting);
            ready = waiting;
            return true;
        }
        // Nor does anybody overtake those who wait for room.
        if (!senders_.empty() || values_.size() >= capacity_) return false;
        values_.push_back(std::move(value));
        return true;
    }

    /// Gives the oldest value; `ready` are the senders that have got room. They get it when half of it is free, so that
    /// they are woken together and not one for each value.
    void take(std::optional<T>& value, detail::work_list& ready)
    {
        if (!values_.empty()) {
            value.emplace(std::move(values_.front()));
            values_.pop_front();
        } else if (auto* waiting = first_sender()) {
            value.emplace(std::move(waiting->value));
            let_go(*waiting, ready);
        }
        if (values_.size() > capacity_ / 2) return;
        while (values_.size() < capacity_) {
            auto* waiting = first_sender();
            if (!waiting) return;
            values_.push_back(std::move(waiting->value));
            let_go(*waiting, ready);
        }
    }

    sender* first_sender() const noexcept { return static_cast<sender*>(senders_.front()); }
    void let_go(sender& waiting, detail::work_list& ready) noexcept
    {
        waiting.sent = true;
        senders_.remove(waiting);
        ready.push_back(waiting);
    }

    mutable std::mutex mutex_;
    std::size_t const capacity_;
    detail::ring<T> values_;
    detail::waiter_list senders_;
    detail::waiter_list receivers_;
    bool closed_ = false;
};

template<class T>
class channel<T>::send_operation {
public:
    send_operation(channel& c, T&& value)
        : channel_(c)
        , sender_(std::move(value))
    {
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto stop = h.promise().context().stop;
        cancelled_ = stop.stop_requested();
        if (cancelled_) return false;
        static constexpr wait_kind kind{"room in a channel"};
        sender_.bind(h, kind);
        if (!begin()) return false;
        sender_.watch(stop, channel_.mutex_, channel_.senders_);
        return true;
    }

    void await_resume() { await_result().value(); }
    result<void> await_result() noexcept
    {
        sender_.unwatch();
        result<void> outcome;
        if (sender_.sent) {
            outcome.emplace();
        } else {
            bool const stopped = cancelled_ || sender_.cancelled();
            outcome.fail(stopped ? errc::cancelled : errc::closed, "sending to a channel");
        }
        return outcome;
    }

private:
    /// True when it has to wait.
    bool begin()
    {
        detail::waiter* ready = nullptr;
        {
            std::lock_guard lock(channel_.mutex_);
            if (channel_.closed_) return false;
            if (!channel_.put(sender_.value, ready)) {
                channel_.senders_.push_back(sender_);
                return true;
            }
            sender_.sent = true;
        }
        if (ready) ready->post();
        return false;
    }

    channel& channel_;
    sender sender_;
    bool cancelled_ = false;
};

template<class T>
class channel<T>::receive_operation {
public:
    explicit receive_operation(channel& c) noexcept
        : channel_(c)
    {
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto stop = h.promise().context().stop;
        cancelled_ = stop.stop_requested();
        if (cancelled_) return false;
        static constexpr wait_kind kind{"a channel's next value"};
        receiver_.bind(h, kind);
        if (!begin()) return false;
        receiver_.watch(stop, channel_.mutex_, channel_.receivers_);
        return true;
    }

    std::optional<T> await_resume()
    {
        receiver_.unwatch();
        if (stopped()) std::rethrow_exception(detail::shared_failure(errc::cancelled, context));
        return std::move(receiver_.value);
    }
    result<std::optional<T>> await_result()
    {
        receiver_.unwatch();
        result<std::optional<T>> outcome;
        if (stopped()) {
            outcome.fail(errc::cancelled, context);
        } else {
            outcome.emplace(std::move(receiver_.value));
        }
        return outcome;
    }

private:
    static constexpr auto context = "receiving from a channel";
    bool stopped() const noexcept { return cancelled_ || receiver_.cancelled(); }

    /// True when it has to wait.
    bool begin()
    {
        detail::work_list ready;
        {
            std::lock_guard lock(channel_.mutex_);
            channel_.take(receiver_.value, ready);
            if (!receiver_.value && !channel_.closed_) {
                channel_.receivers_.push_back(receiver_);
                return true;
            }
        }
        resumption::post_all(ready);
        return false;
    }

    channel& channel_;
    receiver receiver_;
    bool cancelled_ = false;
};

} // namespace plait
