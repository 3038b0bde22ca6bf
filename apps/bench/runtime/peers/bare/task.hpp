#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <new>
#include <utility>

namespace plait::bench::bare {

/// Frames of one thread: a list for each size, in steps of 64 bytes.
class frames {
public:
    static void* take(std::size_t size)
    {
        auto& list = lists()[size / step];
        if (!list) return ::operator new(size / step * step + step);
        return std::exchange(list, list->next);
    }
    static void give(void* memory, std::size_t size) noexcept
    {
        auto& list = lists()[size / step];
        list = ::new (memory) block{list};
    }

private:
    static constexpr std::size_t step = 64;
    struct block {
        block* next;
    };
    static std::array<block*, 32>& lists() noexcept
    {
        static constinit thread_local std::array<block*, 32> all{};
        return all;
    }
};

/// The least that a task can be: lazy, awaited once, gives its value or its exception.
template<class T>
class [[nodiscard]] bare_task {
public:
    struct promise_type {
        static void* operator new(std::size_t size) { return frames::take(size); }
        static void operator delete(void* memory, std::size_t size) noexcept { frames::give(memory, size); }

        bare_task get_return_object() noexcept
        {
            return bare_task(std::coroutine_handle<promise_type>::from_promise(*this));
        }
        std::suspend_always initial_suspend() const noexcept { return {}; }
        auto final_suspend() const noexcept
        {
            struct awaiter {
                bool await_ready() const noexcept { return false; }
                std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> h) const noexcept
                {
                    return h.promise().awaits;
                }
                void await_resume() const noexcept {}
            };
            return awaiter{};
        }
        void return_value(T value) { result = std::move(value); }
        void unhandled_exception() noexcept { failure = std::current_exception(); }

        T value()
        {
            if (failure) std::rethrow_exception(failure);
            return std::move(result);
        }

        T result{};
        std::exception_ptr failure;
        std::coroutine_handle<> awaits = std::noop_coroutine();
    };

    explicit bare_task(std::coroutine_handle<promise_type> h) noexcept
        : handle_(h)
    {
    }
    bare_task(bare_task&& other) noexcept
        : handle_(std::exchange(other.handle_, {}))
    {
    }
    bare_task& operator=(bare_task&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~bare_task()
    {
        if (handle_) handle_.destroy();
    }

    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<> h) noexcept
    {
        handle_.promise().awaits = h;
        return handle_;
    }
    T await_resume() { return handle_.promise().value(); }

    /// Runs one that ends without waiting for anything outside.
    T run()
    {
        handle_.resume();
        return handle_.promise().value();
    }

private:
    std::coroutine_handle<promise_type> handle_;
};

} // namespace plait::bench::bare
