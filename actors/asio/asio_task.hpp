#pragma once

#include <plait/actors/sync/rendezvous.hpp>
#include <plait/actors/tasks/task.hpp>

#include <asio/associated_executor.hpp>
#include <asio/async_result.hpp>
#include <asio/cancellation_signal.hpp>
#include <asio/error.hpp>
#include <asio/experimental/as_tuple.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>

#include <optional>
#include <system_error>
#include <tuple>

namespace plait {

/// The completion token that makes an Asio operation awaitable by a plait task:
/// `auto n = co_await socket.async_read_some(buffer, use_task);`
///
/// The task resumes on its own executor. An error code is thrown as std::system_error, or comes as a value with
/// `asio::experimental::as_tuple(use_task)`. A stop is passed to the operation (all cancellation types) on a strand
/// over its own executor, and throws `errc::cancelled` if the operation was aborted by it. An operation whose context
/// is destroyed throws `asio::error::operation_aborted`. The initiation runs when awaited, on the task's thread. An
/// initiation that names no executor (a user's own operation may not) gets no stop.
struct use_task_t {};
inline constexpr use_task_t use_task{};

namespace detail {

/// What the arguments of a completion give: without a leading error code or exception.
template<class... Args>
struct completion_value {
    using type = std::tuple<Args...>;
    static type make(std::tuple<Args...>&& args) { return std::move(args); }
};
template<>
struct completion_value<> {
    using type = void;
    static void make(std::tuple<>&&) {}
};
template<class T>
struct completion_value<T> {
    using type = T;
    static T make(std::tuple<T>&& args) { return std::get<0>(std::move(args)); }
};

template<class... Args>
struct completion {
    using values = completion_value<Args...>;
    static auto give(std::tuple<Args...>&& args, bool) { return values::make(std::move(args)); }
};
template<class... Args>
struct completion<std::error_code, Args...> {
    using values = completion_value<Args...>;
    static auto give(std::tuple<std::error_code, Args...>&& args, bool stopped)
    {
        auto code = std::get<0>(args);
        if (stopped && code == asio::error::operation_aborted) throw error(errc::cancelled, "an Asio operation");
        if (code) throw std::system_error(code);
        return std::apply([](std::error_code, Args&... rest) { return values::make({std::move(rest)...}); }, args);
    }
};
template<class... Args>
struct completion<std::exception_ptr, Args...> {
    using values = completion_value<Args...>;
    static auto give(std::tuple<std::exception_ptr, Args...>&& args, bool stopped)
    {
        if (auto const& failure = std::get<0>(args)) {
            if (stopped && code_of(failure) == asio::error::operation_aborted)
                throw error(errc::cancelled, "an Asio operation");
            std::rethrow_exception(failure);
        }
        return std::apply([](std::exception_ptr const&, Args&... rest) { return values::make({std::move(rest)...}); },
                          args);
    }
};

/// The results as they are, error code included.
template<class... Args>
struct tuple_completion {
    using values = completion_value<std::tuple<Args...>>;
    static std::tuple<Args...> give(std::tuple<Args...>&& args, bool) { return std::move(args); }
};

/// Where an operation completes and where a stop reaches it, so that the two never overlap: a strand over the
/// operation's own executor, if the initiation names one.
template<class Initiation>
struct initiation_strand {
    static constexpr bool exists = false;
    explicit initiation_strand(Initiation const&) noexcept {}
    void release() noexcept {}
};
template<class Initiation>
    requires requires(Initiation const& i) {
        typename Initiation::executor_type;
        i.get_executor();
    }
struct initiation_strand<Initiation> {
    static constexpr bool exists = true;
    using strand_type = asio::strand<typename Initiation::executor_type>;
    explicit initiation_strand(Initiation const& i)
        : strand(strand_type(i.get_executor()))
    {
    }
    /// Before the task goes on: a strand must not outlive its context, which may be on its way out.
    void release() noexcept { strand.reset(); }
    std::optional<strand_type> strand;
};

/// Leaves the rendezvous when it goes, whether the handler was called or dropped.
template<class Awaiter>
class asio_party {
public:
    explicit asio_party(Awaiter& op) noexcept
        : op_(&op)
    {
    }
    asio_party(asio_party&& other) noexcept
        : op_(std::exchange(other.op_, nullptr))
    {
    }
    asio_party& operator=(asio_party&&) = delete;
    ~asio_party()
    {
        if (op_) op_->leave();
    }

protected:
    Awaiter* op_;
};

template<class Awaiter>
class asio_handler : public asio_party<Awaiter> {
public:
    using asio_party<Awaiter>::asio_party;

    using cancellation_slot_type = asio::cancellation_slot;
    cancellation_slot_type get_cancellation_slot() const noexcept { return this->op_->signal_.slot(); }

    template<class... Args>
    void operator()(Args&&... args)
    {
        auto* op = std::exchange(this->op_, nullptr);
        op->results_.emplace(std::forward<Args>(args)...);
        op->leave();
    }
};

template<class Awaiter, class Executor>
class asio_strand_handler : public asio_handler<Awaiter> {
public:
    using asio_handler<Awaiter>::asio_handler;

    using executor_type = Executor;
    executor_type get_executor() const noexcept { return *this->op_->where_.strand; }
};

template<class Completion, class Initiation, class Arguments, class... Results>
class asio_awaiter {
    using where_type = initiation_strand<Initiation>;

public:
    asio_awaiter(Initiation&& initiation, Arguments&& arguments)
        : initiation_(std::move(initiation))
        , arguments_(std::move(arguments))
        , where_(initiation_)
    {
    }
    asio_awaiter(asio_awaiter const&) = delete;
    asio_awaiter& operator=(asio_awaiter const&) = delete;

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        stop_ = h.promise().context().stop;
        cancelled_ = stop_.stop_requested();
        if (cancelled_) return false;
        static constexpr wait_kind kind{"an Asio operation"};
        resumption_.bind(h, kind);
        try {
            std::apply(
                [this](auto&&... argument) {
                    std::move(initiation_)(make_handler(), std::forward<decltype(argument)>(argument)...);
                },
                std::move(arguments_));
        } catch (...) {
            failure_ = std::current_exception();
        }
        if constexpr (where_type::exists) {
            if (stop_.stop_possible()) on_stop_.emplace(stop_, pass_on{this});
        }
        if (!rendezvous_.leave()) return true;
        where_.release();
        return false;
    }

    auto await_resume()
    {
        on_stop_.reset();
        if (cancelled_) throw error(errc::cancelled, "an Asio operation");
        if (failure_) std::rethrow_exception(failure_);
        if (!results_) throw std::system_error(make_error_code(asio::error::operation_aborted));
        return Completion::give(std::move(*results_), stop_.stop_requested());
    }

private:
    friend asio_party<asio_awaiter>;
    friend asio_handler<asio_awaiter>;
    template<class, class>
    friend class asio_strand_handler;

    auto make_handler() noexcept
    {
        if constexpr (where_type::exists) {
            return asio_strand_handler<asio_awaiter, typename where_type::strand_type>(*this);
        } else {
            return asio_handler<asio_awaiter>(*this);
        }
    }

    struct emit : asio_party<asio_awaiter> {
        using asio_party<asio_awaiter>::asio_party;
        void operator()()
        {
            if (!this->op_->results_) this->op_->signal_.emit(asio::cancellation_type::all);
        }
    };

    struct pass_on {
        asio_awaiter* self;
        void operator()() const noexcept
        {
            if (self->rendezvous_.try_enter()) asio::post(*self->where_.strand, emit(*self));
        }
    };

    void leave() noexcept
    {
        if (!rendezvous_.leave()) return;
        where_.release();
        resumption_.post();
    }

    Initiation initiation_;
    Arguments arguments_;
    [[no_unique_address]] where_type where_;
    asio::cancellation_signal signal_;
    std::optional<std::tuple<Results...>> results_; ///< on the strand, then at await_resume
    rendezvous<> rendezvous_;
    resumption resumption_;
    stop_token stop_;
    std::optional<stop_callback<pass_on>> on_stop_;
    std::exception_ptr failure_;
    bool cancelled_ = false;
};

/// An Asio operation that was not started yet.
template<class Completion, class Initiation, class Arguments, class... Results>
class [[nodiscard]] asio_request {
public:
    asio_request(Initiation&& initiation, Arguments&& arguments)
        : initiation_(std::move(initiation))
        , arguments_(std::move(arguments))
    {
    }

    asio_awaiter<Completion, Initiation, Arguments, Results...> operator co_await() &&
    {
        return {std::move(initiation_), std::move(arguments_)};
    }

    /// The same as a task, for `when_all`, `scope::start` or `as_result`.
    using value_type = typename Completion::values::type;
    operator task<value_type>() && { return run(std::move(*this)); }

private:
    static task<value_type> run(asio_request request) { co_return co_await std::move(request); }

    Initiation initiation_;
    Arguments arguments_;
};

} // namespace detail

/// The outcome of an Asio operation as a `result`.
template<class Completion, class... Rest>
auto as_result(detail::asio_request<Completion, Rest...> request)
{
    return as_result(task<typename Completion::values::type>(std::move(request)));
}

} // namespace plait

template<class R, class... Args>
class asio::async_result<plait::use_task_t, R(Args...)> {
public:
    template<class Initiation, class... InitArgs>
    static auto initiate(Initiation initiation, plait::use_task_t, InitArgs... args)
    {
        using completion = plait::detail::completion<std::decay_t<Args>...>;
        using arguments = std::tuple<InitArgs...>;
        return plait::detail::asio_request<completion, Initiation, arguments, std::decay_t<Args>...>(
            std::move(initiation), arguments(std::move(args)...));
    }
};

/// Asio's own adapter would hide the initiation's executor.
template<class R, class... Args>
struct asio::async_result<asio::experimental::as_tuple_t<plait::use_task_t>, R(Args...)> {
    template<class Initiation, class... InitArgs>
    static auto initiate(Initiation initiation, asio::experimental::as_tuple_t<plait::use_task_t>, InitArgs... args)
    {
        using completion = plait::detail::tuple_completion<std::decay_t<Args>...>;
        using arguments = std::tuple<InitArgs...>;
        return plait::detail::asio_request<completion, Initiation, arguments, std::decay_t<Args>...>(
            std::move(initiation), arguments(std::move(args)...));
    }
};
