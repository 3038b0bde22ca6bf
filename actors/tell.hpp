#pragma once

#include <plait/actors/method.hpp>
#include <plait/actors/ref.hpp>
#include <plait/actors/sync/rendezvous.hpp>

#include <optional>

namespace plait {

namespace detail {

class tell_sender;

/// A told message: on its own, since its sender goes on as soon as there is room.
class tell_message_base : public message {
public:
    void admit() noexcept override;
    /// Before it is posted: `sender` waits for room.
    void wait_for_room(tell_sender& sender) noexcept;

protected:
    explicit tell_message_base(actor_core& core) noexcept
        : message(core)
    {
    }
    ~tell_message_base() = default;

    /// Passes the reason to a sender that still waits.
    void refuse_sender(errc reason) noexcept;
    /// Reports what the method threw, unless it was the actor's end that cancelled it.
    void report(site failed_at, std::exception_ptr const& exception) noexcept;

private:
    friend tell_sender;

    tell_sender* sender_ = nullptr; ///< who waits for room
};

template<auto Method, class A>
class tell_message final : public tell_message_base, public pooled {
    using shape = method_traits<decltype(Method)>;

public:
    tell_message(ref<A>&& target, typename shape::arguments&& arguments, site where)
        : tell_message_base(*ref_access::core(target))
        , object_(ref_access::object(target))
        , arguments_(std::move(arguments))
    {
        sent_from_ = where;
        ref_access::release(std::move(target)); // last: moving the arguments may throw
    }

    std::string_view method() const noexcept override { return method_name<Method>(); }

private:
    void start() noexcept override
    {
        try {
            auto& object = static_cast<typename shape::class_type&>(*object_);
            if constexpr (shape::is_coroutine) {
                running_ = shape::call(Method, object, arguments_);
                if (!running_) throw error(errc::invalid_argument, "the method returned an empty task");
                task_access::start(
                    running_, method_context(), [](void* self) noexcept { static_cast<tell_message*>(self)->ended(); },
                    this);
                return;
            } else {
                static_cast<void>(shape::call(Method, object, arguments_));
            }
        } catch (...) {
            report({}, std::current_exception());
        }
        end();
    }

    void ended() noexcept
    {
        auto outcome = task_access::take(running_);
        auto const last_await = task_access::where(running_);
        running_ = {};
        if (outcome.failure()) report(last_await, outcome.failure());
        end();
    }

    void refuse(errc reason) noexcept override
    {
        refuse_sender(reason);
        go();
    }

    void end() noexcept
    {
        core().ended(*this);
        go();
    }

    void go() noexcept
    {
        core().message_went();
        delete this;
    }

    A* object_; ///< kept by a strong handle of this message's
    [[no_unique_address]] typename shape::arguments arguments_;
    [[no_unique_address]] std::conditional_t<shape::is_coroutine, typename shape::returned, std::tuple<>> running_;
};

/// A coroutine that waits for room in a mailbox. Once it is sent, touched on the actor's executor.
class tell_sender {
public:
    explicit tell_sender(actor_core& core) noexcept;
    tell_sender(tell_sender const&) = delete;
    tell_sender& operator=(tell_sender const&) = delete;

    template<class P>
    void bind(std::coroutine_handle<P> h) noexcept
    {
        resumption_.bind(h, room);
    }
    /// Posts `m`, which is above the bound, and waits.
    void send(tell_message_base& m, stop_token stop);
    /// On the actor's executor: the wait has ended: with no error when the message was admitted.
    void end(std::optional<errc> reason) noexcept;
    std::optional<errc> reason() const noexcept { return reason_; }

private:
    struct pass_on {
        tell_sender* self;
        void operator()() const noexcept;
    };
    struct cancel_work : work {
        tell_sender* self;
    } cancel_;

    void cancel() noexcept;

    static wait_kind const room;

    actor_core& core_;
    tell_message_base* message_ = nullptr;
    struct waiting : resumption {
        actor_core const* core;
    } resumption_;
    std::optional<errc> reason_;
    ask_rendezvous<> rendezvous_;
    std::optional<stop_callback<pass_on>> on_stop_; ///< goes first, with the sender: it may be running until then
};

template<auto Method, class A>
class tell_awaiter {
    using shape = method_traits<decltype(Method)>;

public:
    tell_awaiter(ref<A> target, typename shape::arguments&& arguments)
        : target_(std::move(target))
        , arguments_(std::move(arguments))
    {
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto& core = *ref_access::core(target_);
        auto stop = h.promise().context().stop;
        if (stop.stop_requested()) {
            not_sent_ = errc::cancelled;
            return false;
        }
        if (core.closed()) {
            not_sent_ = errc::receiver_gone;
            return false;
        }
        auto& object = *ref_access::object(target_);
        auto* m = new tell_message<Method, A>(std::move(target_), std::move(arguments_), h.promise().where());
        if (core.reserve(*m)) {
            core.post(*m);
            return false;
        }
        core.add_strong();
        target_ = ref_access::adopt(core, object); // what waits for room can be asked for what it waits
        auto& sender = sender_.emplace(core);
        sender.bind(h);
        sender.send(*m, stop);
        return true;
    }

    void await_resume()
    {
        if (auto const reason = sender_ ? sender_->reason() : not_sent_) throw error(*reason, "telling an actor");
    }

private:
    ref<A> target_; ///< empty when the message has it
    [[no_unique_address]] typename shape::arguments arguments_;
    std::optional<errc> not_sent_;
    std::optional<tell_sender> sender_; ///< once it waits for room
};

/// A tell that was not sent yet.
template<auto Method, class A>
class [[nodiscard]] tell_request {
    using shape = method_traits<decltype(Method)>;

public:
    template<class... Args>
    explicit tell_request(ref<A> target, Args&&... arguments)
        : target_(std::move(target))
        , arguments_(std::forward<Args>(arguments)...)
    {
    }

    tell_awaiter<Method, A> operator co_await() &&
    {
        if (!target_) throw error(errc::invalid_argument, "told an empty ref");
        return tell_awaiter<Method, A>(std::move(target_), std::move(arguments_));
    }

    using value_type = void;
    /// The same as a task, for `when_all`, `scope::start` or `as_result`.
    operator task<>() && { return run(std::move(*this)); }

    /// Without waiting; from any thread.
    bool try_send() &&
    {
        if (!target_) throw error(errc::invalid_argument, "told an empty ref");
        auto& core = *ref_access::core(target_);
        if (core.closed()) return false;
        auto* m = new tell_message<Method, A>(std::move(target_), std::move(arguments_), site{});
        if (!core.try_reserve(*m)) {
            delete m;
            core.drop_strong();
            return false;
        }
        core.post(*m);
        return true;
    }

    /// Without waiting and whatever the bound: for what must not be lost. False when the actor has stopped.
    bool push() &&
    {
        auto& core = *ref_access::core(target_);
        if (core.closed()) return false;
        auto* m = new tell_message<Method, A>(std::move(target_), std::move(arguments_), site{});
        core.reserve(*m);
        core.post(*m);
        return true;
    }

private:
    static task<> run(tell_request request) { co_await std::move(request); }

    ref<A> target_;
    typename shape::arguments arguments_;
};

template<auto Method, class A, class... Args>
auto make_tell(ref<A> target, Args&&... arguments)
{
    using shape = method_traits<decltype(Method)>;
    static_assert(std::derived_from<A, typename shape::class_type>, "the method is not one of this actor's");
    static_assert(shape::takes_values, "an actor's method takes values or const references");
    static_assert(sizeof...(Args) == shape::arity, "wrong number of arguments");
    return tell_request<Method, A>(std::move(target), std::forward<Args>(arguments)...);
}

} // namespace detail

/// `co_await tell<&A::method>(r, args...)`: queues the call and goes on; waits only while the mailbox is full. Throws
/// `errc::receiver_gone` when the actor has stopped, `errc::cancelled` after a stop while it waits; then the call was
/// not sent. What the method returns is dropped; what it throws is a failure that nobody waits for
/// (`runtime_options::on_unhandled`).
template<auto Method, class A, class... Args>
auto tell(ref<A> target, Args&&... arguments)
{
    return detail::make_tell<Method>(std::move(target), std::forward<Args>(arguments)...);
}

/// Whether there was room, as a `result`.
template<auto Method, class A>
auto as_result(detail::tell_request<Method, A> request)
{
    return as_result(task<>(std::move(request)));
}

/// The same without waiting, from any thread: false when the mailbox is full or the actor has stopped.
template<auto Method, class A, class... Args>
bool try_tell(ref<A> target, Args&&... arguments)
{
    return detail::make_tell<Method>(std::move(target), std::forward<Args>(arguments)...).try_send();
}

} // namespace plait
