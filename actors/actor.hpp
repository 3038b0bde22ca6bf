#pragma once

#include <plait/actors/actor_registry.hpp>
#include <plait/actors/ask.hpp>
#include <plait/actors/tell.hpp>

namespace plait {

/// The base of every actor: an object whose methods are called by `ask` and `tell` and never run at the same time.
///
/// Between two awaits nobody else touches it; at an await other methods may run, unless `this_actor::exclusive()` is
/// held. It is made by `runtime::spawn`, in the caller's thread, and destroyed on its own executor when it was stopped
/// or its last `ref` is gone and its methods have ended. If it has a `task<> stopping()`, that runs before, with the
/// mailbox closed and no stop reaching it: for cleaning up that awaits.
class actor {
public:
    actor(actor const&) = delete;
    actor& operator=(actor const&) = delete;

protected:
    actor();
    ~actor() = default;

    /// A handle to `self`, which is `*this`; empty once the last other handle is gone.
    template<class A>
    ref<A> self(A& self) const noexcept
    {
        return core_.try_add_strong() ? detail::ref_access::adopt(core_, self) : ref<A>();
    }

    /// The runtime that it lives in.
    runtime& home() const noexcept { return core_.home().owner; }

private:
    friend supervisor;
    detail::actor_core& core_;
};

namespace detail {

/// The last thing that an actor runs: its `stopping()`. Deletes itself.
class ending_message final : public message, public pooled {
public:
    ending_message(actor_core& core, task<> last) noexcept
        : message(core)
        , running_(std::move(last))
    {
    }

private:
    std::string_view method() const noexcept override { return "stopping"; }
    void start() noexcept override;
    void refuse(errc) noexcept override {}
    void ended() noexcept;

    task<> running_;
};

/// The control block and the object of an actor, in one allocation.
template<class A>
class actor_cell : public actor_core {
public:
    actor_cell(executor& place, std::shared_ptr<actor_registry> home, std::uint64_t bound) noexcept
        : actor_core(place, std::move(home), type_name<A>(), bound)
    {
    }
    ~actor_cell() override {}

    template<class... Args>
    A& construct(Args&&... args)
    {
        struct restore {
            actor_core* outer;
            ~restore() { constructing() = outer; }
        } outer{std::exchange(constructing(), this)};
        ::new (static_cast<void*>(&object_)) A(std::forward<Args>(args)...);
        return object_;
    }

protected:
    A& object() noexcept { return object_; }
    void destroy_object() noexcept override { object_.~A(); }
    message* last_words() override
    {
        if constexpr (requires(A& a) {
                          { a.stopping() } -> std::same_as<task<>>;
                      }) {
            return new ending_message(*this, object_.stopping());
        } else {
            return nullptr;
        }
    }

private:
    union {
        A object_;
    };
};

/// Has the core closed on its executor.
void post_stop(actor_core& core);

/// Stops the actor of `core` and waits; the handle that it was called with keeps the core.
class stop_operation {
public:
    explicit stop_operation(actor_core* core) noexcept
        : core_(core)
    {
        resumption_.core = core;
    }

    bool await_ready() const noexcept { return core_ == nullptr; }
    template<class P>
    void await_suspend(std::coroutine_handle<P> h)
    {
        check(static_cast<message const*>(h.promise().context().owner));
        resumption_.bind(h, the_end);
        begin();
    }
    void await_resume() const noexcept {}

private:
    /// Throws when it would wait for its own end: `caller` is a method of the actor, or one that such a method waits
    /// for.
    void check(message const* caller) const;
    void begin() noexcept;

    struct stop_work : work {
        stop_operation* self;
    } work_;
    static wait_kind const the_end;

    actor_core* core_;
    struct waiting : resumption {
        actor_core const* core;
    } resumption_;
};

template<class A>
class [[nodiscard]] stop_request : public stop_operation {
public:
    explicit stop_request(ref<A> target) noexcept
        : stop_operation(ref_access::core(target))
        , target_(std::move(target))
    {
    }

private:
    ref<A> target_;
};

} // namespace detail

/// `co_await stop(r)`: closes the mailbox (asks in it and later ones end with `errc::receiver_gone`), asks the running
/// methods to stop, joins them and destroys the actor on its executor. Not cancelled by the caller's stop. Throws
/// `errc::deadlock` in a method of the actor itself, or in one that such a method waits for: it would wait for its own
/// end; see `request_stop`.
template<class A>
detail::stop_request<A> stop(ref<A> target) noexcept
{
    return detail::stop_request<A>(std::move(target));
}

/// Begins to stop the actor and does not wait.
template<class A>
void request_stop(ref<A> const& target)
{
    if (auto* core = detail::ref_access::core(target)) detail::post_stop(*core);
}

namespace this_actor {

/// Held by a method of an actor: until it goes, only this method and what it awaits runs on the actor. Messages and
/// other methods wait, in their order. Destroyed by the method that took it.
class [[nodiscard]] exclusive_guard {
public:
    explicit exclusive_guard(detail::actor_core& core) noexcept
        : core_(&core)
    {
    }
    exclusive_guard(exclusive_guard&& other) noexcept
        : core_(std::exchange(other.core_, nullptr))
    {
    }
    exclusive_guard& operator=(exclusive_guard&& other) noexcept
    {
        std::swap(core_, other.core_);
        return *this;
    }
    ~exclusive_guard() { release(); }

    void release() noexcept
    {
        if (auto* core = std::exchange(core_, nullptr)) core->leave_exclusive();
    }

private:
    detail::actor_core* core_;
};

class exclusive_operation {
public:
    bool await_ready() const noexcept { return false; }
    template<class P>
    bool await_suspend(std::coroutine_handle<P> h) noexcept
    {
        owner_ = h.promise().context().owner;
        return false;
    }
    exclusive_guard await_resume() const;

private:
    void const* owner_ = nullptr;
};

/// `auto guard = co_await this_actor::exclusive();` in a method of an actor (elsewhere it throws
/// `errc::invalid_argument`). An ask of the same actor while it is held never ends, unless
/// `runtime_hooks::find_ask_cycles` ends it.
inline exclusive_operation exclusive() noexcept
{
    return {};
}

} // namespace this_actor

} // namespace plait
