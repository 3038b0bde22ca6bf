#pragma once

#include <plait/actors/tasks/task.hpp>

#include <optional>

namespace plait {

/// A coroutine that yields values one by one and may await between them. It runs only while somebody awaits the next
/// value, on that task's executor and under its stop token: so it never runs ahead of its reader.
///
/// Destroying it between two values ends it there; its locals are destroyed.
template<class T>
class [[nodiscard]] generator {
public:
    class promise_type;
    class next_operation;

    generator() noexcept = default;
    generator(generator&& other) noexcept
        : handle_(std::exchange(other.handle_, {}))
    {
    }
    generator& operator=(generator&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~generator()
    {
        if (handle_) handle_.destroy();
    }

    /// `co_await g.next()`: the next value, or nothing at the end. Throws what the coroutine threw, once; after that it
    /// is at its end. One call at a time.
    [[nodiscard]] next_operation next() noexcept { return next_operation(handle_); }

private:
    explicit generator(std::coroutine_handle<promise_type> h) noexcept
        : handle_(h)
    {
    }

    std::coroutine_handle<promise_type> handle_;
};

template<class T>
class generator<T>::promise_type final : public detail::frame {
public:
    generator get_return_object() noexcept
    {
        return generator(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() const noexcept { return {}; }
    final_awaiter final_suspend() const noexcept { return {}; }

    template<class U>
        requires std::convertible_to<U&&, T>
    final_awaiter yield_value(U&& value)
    {
        value_.emplace(std::forward<U>(value));
        return {};
    }
    void return_void() const noexcept {}
    void unhandled_exception() noexcept { failure_ = std::current_exception(); }

private:
    friend final_awaiter;
    friend next_operation;

    std::optional<T> value_;
    std::exception_ptr failure_;
};

template<class T>
class generator<T>::next_operation {
public:
    explicit next_operation(std::coroutine_handle<promise_type> h) noexcept
        : handle_(h)
    {
    }

    bool await_ready() const noexcept { return !handle_ || handle_.done(); }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h) noexcept
    {
        static_assert(std::derived_from<P, detail::frame>, "a generator is read inside a plait task");
        detail::frame& producer = handle_.promise();
        return producer.start_child(handle_, h.promise(), h, h.promise().context());
    }

    std::optional<T> await_resume()
    {
        if (!handle_) return std::nullopt;
        auto& p = handle_.promise();
        if (p.failure_) std::rethrow_exception(std::exchange(p.failure_, nullptr));
        return std::exchange(p.value_, std::nullopt);
    }

private:
    std::coroutine_handle<promise_type> handle_;
};

} // namespace plait
