#pragma once

#include <plait/actors/ask.hpp>
#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/runtime/serial_executor.hpp>

#include <asio/associated_allocator.hpp>
#include <asio/associated_cancellation_slot.hpp>
#include <asio/async_result.hpp>
#include <asio/defer.hpp>
#include <asio/dispatch.hpp>
#include <asio/execution/context.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/query.hpp>
#include <asio/system_executor.hpp>

#include <memory>
#include <optional>

namespace plait {

namespace detail {

template<class T>
struct start_signature {
    using type = void(std::error_code, T);
};
template<>
struct start_signature<void> {
    using type = void(std::error_code);
};

/// The completion of a started task, on its way to the handler's executor.
template<class Handler, class T>
class start_completion {
public:
    start_completion(Handler&& handler, result<T>&& outcome)
        : handler_(std::move(handler))
        , outcome_(std::move(outcome))
    {
    }

    using allocator_type = asio::associated_allocator_t<Handler>;
    allocator_type get_allocator() const noexcept { return asio::get_associated_allocator(handler_); }

    void operator()()
    {
        auto code = outcome_.error();
        if constexpr (std::is_void_v<T>) {
            std::move(handler_)(code);
        } else if (code) {
            std::move(handler_)(code, T{});
        } else {
            std::move(handler_)(code, std::move(outcome_).value());
        }
    }

private:
    Handler handler_;
    result<T> outcome_;
};

/// Whether it belongs to a context that somebody runs; those of a future and of a handler that names none don't.
template<class Executor>
constexpr bool has_context = requires(Executor const& e) { asio::query(e, asio::execution::context); };
template<>
inline constexpr bool has_context<asio::system_executor> = false;

/// A task that an Asio program has started: one allocation, from the handler's allocator, given back before the
/// handler is called.
template<class Handler, class T>
class started_task {
    using allocator =
        typename std::allocator_traits<asio::associated_allocator_t<Handler>>::template rebind_alloc<started_task>;

public:
    /// `rt` for a task on an executor of its own over the pool, or `exec` for one on that.
    static void start(Handler&& handler, task<T>&& work, runtime* rt, executor* exec)
    {
        allocator a(asio::get_associated_allocator(handler));
        auto* memory = std::allocator_traits<allocator>::allocate(a, 1);
        started_task* self = nullptr;
        try {
            self = ::new (static_cast<void*>(memory)) started_task(std::move(handler), std::move(work), rt, exec);
        } catch (...) {
            std::allocator_traits<allocator>::deallocate(a, memory, 1);
            throw;
        }
        self->context_.exec->post(self->begin_);
    }

private:
    struct begin_work : plait::work {
        started_task* self;
    };

    started_task(Handler&& handler, task<T>&& work, runtime* rt, executor* exec)
        : handler_(std::move(handler))
        , guard_(asio::make_work_guard(handler_))
        , task_(std::move(work))
        , source_(std::allocate_shared<stop_source>(asio::get_associated_allocator(handler_)))
        , runtime_(rt)
    {
        begin_.self = this;
        begin_.run = [](plait::work& w) noexcept { static_cast<begin_work&>(w).self->begin(); };
        if (rt) own_.emplace(rt->pool());
        context_.exec = rt ? static_cast<executor*>(&*own_) : exec;
        context_.stop = source_->token();
        auto slot = asio::get_associated_cancellation_slot(handler_);
        if (slot.is_connected()) {
            // The emitter may be late: the source lives as long as the slot's handler.
            slot.assign([source = source_](asio::cancellation_type) { source->request_stop(); });
        }
        if (rt) {
            entry_.source = source_.get();
            entry_.place = context_.exec;
            context_.chains = &entry_.chains;
            rt->runs().add(entry_);
        }
    }

    void begin() noexcept
    {
        task_access::start(
            task_, context_, [](void* self) noexcept { static_cast<started_task*>(self)->ended(); }, this);
    }

    void ended() noexcept
    {
        outcome_ = task_access::take(task_);
        task_ = {};
        if (runtime_) runtime_->runs().ended(entry_);
        if (own_) {
            own_->dispose_after_turn([](void* self) noexcept { static_cast<started_task*>(self)->complete(); }, this);
        } else {
            complete();
        }
    }

    void complete() noexcept
    {
        auto handler = std::move(handler_);
        auto guard = std::move(guard_);
        auto outcome = std::move(outcome_);
        // The thread that is here still belongs to the runtime, which joins it.
        if (runtime_) runtime_->runs().remove(entry_);
        allocator a(asio::get_associated_allocator(handler));
        this->~started_task();
        std::allocator_traits<allocator>::deallocate(a, this, 1);
        auto completion = start_completion<Handler, T>(std::move(handler), std::move(outcome));
        if constexpr (has_context<asio::associated_executor_t<Handler>>) {
            // Not dispatched: this may be a turn in that very context, out of which no exception gets.
            asio::defer(guard.get_executor(), std::move(completion));
        } else {
            // Not deferred: that would start threads of Asio's own.
            asio::dispatch(guard.get_executor(), std::move(completion));
        }
    }

    Handler handler_;
    asio::executor_work_guard<asio::associated_executor_t<Handler>> guard_;
    task<T> task_;
    result<T> outcome_;
    std::shared_ptr<stop_source> source_;
    runtime* runtime_;
    std::optional<serial_executor> own_;
    task_context context_;
    begin_work begin_;
    run_entry entry_;
};

template<class T, class Token>
auto start_on(runtime* rt, executor* exec, task<T> work, Token&& token)
{
    static_assert(std::is_void_v<T> || std::is_default_constructible_v<T>,
                  "a completion that failed still has a value: T must be default constructible");
    return asio::async_initiate<Token, typename start_signature<T>::type>(
        [](auto&& handler, runtime* rt, executor* exec, task<T> work) {
            using handler_type = std::decay_t<decltype(handler)>;
            started_task<handler_type, T>::start(handler_type(std::forward<decltype(handler)>(handler)),
                                                 std::move(work), rt, exec);
        },
        token, rt, exec, std::move(work));
}

template<class R>
concept startable = requires { typename R::value_type; } && std::convertible_to<R&&, task<typename R::value_type>>;

} // namespace detail

/// Starts a task from an Asio program, or from no coroutine at all, with any completion token:
/// `async_start(rt, some_task(), asio::use_awaitable)`. Completes as `void(std::error_code, T)`, or
/// `void(std::error_code)` for a task<>; an exception comes as its code (`code_of`), with a `T{}`. Takes a task, an ask
/// or a `use_task` operation.
///
/// The task runs on a serial executor of its own in the runtime's pool. The handler is called through its associated
/// executor and never inside this call; a handler without one is called on the pool's thread. Its cancellation slot
/// stops the task, and its allocator gives the memory. The runtime stops and joins it before it goes.
template<detail::startable Work, class Token>
auto async_start(runtime& rt, Work work, Token&& token)
{
    return detail::start_on<typename Work::value_type>(&rt, nullptr, std::move(work), std::forward<Token>(token));
}

/// The same on `exec`, a serial executor that outlives the task, such as an `asio_executor`.
template<detail::startable Work, class Token>
auto async_start(executor& exec, Work work, Token&& token)
{
    return detail::start_on<typename Work::value_type>(nullptr, &exec, std::move(work), std::forward<Token>(token));
}

} // namespace plait
