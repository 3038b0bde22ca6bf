#pragma once

#include <plait/actors/method.hpp>
#include <plait/actors/ref.hpp>
#include <plait/actors/sync/rendezvous.hpp>

#include <optional>

namespace plait {

namespace detail {

/// The part of an ask that does not depend on the method: who asks, and the stop that may come from there.
///
/// On the actor's executor: the asker is answered when the message has ended, and, if a stop was passed on, when that
/// work has run as well, since both live in the asker's frame.
class ask_message : public message {
public:
    ask_message(ask_message const&) = delete;
    ask_message& operator=(ask_message const&) = delete;

protected:
    explicit ask_message(actor_core& core) noexcept
        : message(core)
    {
        asker_.self = this;
        cancel_.self = this;
        cancel_.run = [](work& self) noexcept { static_cast<cancel_work&>(self).self->cancel(); };
    }
    ~ask_message() = default;

    /// Before it is sent: who asks, and whose stop reaches the message.
    template<class P>
    void bind(std::coroutine_handle<P> h)
    {
        auto& context = h.promise().context();
        sent_from_ = h.promise().where();
        asked_by_ = static_cast<message const*>(context.owner);
        asker_.bind(h, an_answer);
        stop_of_asker_ = context.stop;
    }
    /// True when the asker has to suspend; false when it was answered inside the call.
    bool send();

    /// The message has ended, with its outcome in place. Nothing of this may be touched after it.
    void answer() noexcept;

private:
    static wait_kind const an_answer;

    struct asker : resumption {
        ask_message const* self;
    } asker_;
    struct pass_on {
        ask_message* self;
        void operator()() const noexcept;
    };
    struct cancel_work : work {
        ask_message* self;
    } cancel_;

    void cancel() noexcept;

    void watch_stop()
    {
        if (stop_of_asker_.stop_possible()) on_stop_.emplace(stop_of_asker_, pass_on{this});
    }

    ask_rendezvous<> rendezvous_;
    bool direct_ = false; ///< inside send(): the asker is not suspended yet
    stop_token stop_of_asker_;
    std::optional<stop_callback<pass_on>> on_stop_; ///< goes first, with the asker: it may be running until then
};

/// An ask on its way, in the asker's frame: what its message needs is there only once it is known that it takes one.
template<auto Method, class A>
class ask_awaiter {
    using shape = method_traits<decltype(Method)>;
    using value_type = typename shape::value_type;

public:
    ask_awaiter(ref<A>&& target, typename shape::arguments&& arguments)
        : target_(std::move(target))
        , arguments_(std::move(arguments))
    {
    }
    ask_awaiter(ask_awaiter const&) = delete;
    ask_awaiter& operator=(ask_awaiter const&) = delete;

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto& core = *ref_access::core(target_);
        if (h.promise().context().stop.stop_requested()) {
            outcome_.fail(errc::cancelled, name);
            return false;
        }
        if (core.closed()) {
            outcome_.fail(errc::receiver_gone, name);
            return false;
        }
        if constexpr (!shape::is_coroutine) {
            if (core.enter_call()) {
                call();
                core.leave_call();
                return false;
            }
        }
        return message_.emplace(*this, core).send_from(h);
    }

    value_type await_resume() { return std::move(outcome_).value(); }

private:
    static constexpr char const* name = "asking an actor";

    class queued final : public ask_message {
    public:
        queued(ask_awaiter& ask, actor_core& core) noexcept
            : ask_message(core)
            , ask_(ask)
        {
        }

        template<class P>
        bool send_from(std::coroutine_handle<P> h)
        {
            bind(h);
            return send();
        }

        std::string_view method() const noexcept override { return method_name<Method>(); }

    private:
        void start() noexcept override
        {
            if constexpr (shape::is_coroutine) {
                try {
                    running_ = shape::call(Method, ask_.object(), ask_.arguments_);
                    if (!running_) throw error(errc::invalid_argument, "the method returned an empty task");
                    task_access::start(
                        running_, method_context(), [](void* self) noexcept { static_cast<queued*>(self)->ended(); },
                        this);
                    return;
                } catch (...) {
                    ask_.outcome_.fail(std::current_exception());
                }
            } else {
                ask_.call();
            }
            core().ended(*this);
            answer();
        }

        void ended() noexcept
        {
            ask_.outcome_ = task_access::take(running_);
            // The frame goes on the actor's executor: its parameters may belong there.
            running_ = {};
            core().ended(*this);
            answer();
        }

        void refuse(errc reason) noexcept override
        {
            ask_.outcome_.fail(reason, name);
            answer();
        }

        void never_ends(std::string const& why) noexcept override
        {
            ask_.outcome_.fail(std::make_exception_ptr(error(errc::deadlock, why)));
            answer();
        }

        ask_awaiter& ask_;
        [[no_unique_address]] std::conditional_t<shape::is_coroutine, typename shape::returned, std::tuple<>> running_;
    };

    /// A method that is no coroutine, on the actor's executor.
    void call() noexcept
        requires(!shape::is_coroutine)
    {
        try {
            if constexpr (std::is_void_v<value_type>) {
                shape::call(Method, object(), arguments_);
                outcome_.emplace();
            } else {
                outcome_.emplace(shape::call(Method, object(), arguments_));
            }
        } catch (...) {
            outcome_.fail(std::current_exception());
        }
    }

    typename shape::class_type& object() const noexcept { return *ref_access::object(target_); }

    ref<A> target_;
    [[no_unique_address]] typename shape::arguments arguments_;
    result<value_type> outcome_;
    std::optional<queued> message_;
};

/// An ask that was not sent yet.
template<auto Method, class A>
class [[nodiscard]] ask_request {
    using shape = method_traits<decltype(Method)>;

public:
    template<class... Args>
    explicit ask_request(ref<A> target, Args&&... arguments)
        : target_(std::move(target))
        , arguments_(std::forward<Args>(arguments)...)
    {
    }

    ask_awaiter<Method, A> operator co_await() &&
    {
        if (!target_) throw error(errc::invalid_argument, "asked an empty ref");
        return ask_awaiter<Method, A>(std::move(target_), std::move(arguments_));
    }

    using value_type = typename shape::value_type;
    /// The same as a task, for `when_all`, `scope::start` or `as_result`.
    operator task<value_type>() && { return run(std::move(*this)); }

private:
    static task<value_type> run(ask_request request) { co_return co_await std::move(request); }

    ref<A> target_;
    typename shape::arguments arguments_;
};

} // namespace detail

/// `co_await ask<&A::method>(r, args...)`: runs the method on the actor and gives what it returns, or the value of the
/// task that it returns. Ends in exactly one of: the value; what the method threw; `errc::cancelled` after a stop
/// (a message not yet taken is withdrawn, a method that runs is asked to stop and waited for); `errc::receiver_gone`
/// when the actor stops before it takes the message; `errc::deadlock` where it could never end and somebody looks for
/// that (`runtime_hooks::find_ask_cycles`). Resumes on the caller's own executor.
///
/// The arguments are converted to the method's parameter types here and kept as values until the method has ended. An
/// ask of an idle actor on the same thread is a direct call.
template<auto Method, class A, class... Args>
auto ask(ref<A> target, Args&&... arguments)
{
    using shape = detail::method_traits<decltype(Method)>;
    static_assert(std::derived_from<A, typename shape::class_type>, "the method is not one of this actor's");
    static_assert(shape::takes_values, "an actor's method takes values or const references");
    static_assert(sizeof...(Args) == shape::arity, "wrong number of arguments");
    return detail::ask_request<Method, A>(std::move(target), std::forward<Args>(arguments)...);
}

/// The outcome of an ask as a `result`.
template<auto Method, class A>
auto as_result(detail::ask_request<Method, A> request)
{
    return as_result(task<typename detail::method_traits<decltype(Method)>::value_type>(std::move(request)));
}

} // namespace plait
