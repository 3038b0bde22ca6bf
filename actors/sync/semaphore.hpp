#pragma once

#include <plait/actors/sync/waiter.hpp>

#include <cstddef>

namespace plait {

/// A number of units that coroutines of any executor share: at most so many requests at a time, or so many bytes.
///
/// Strictly first come, first served: nobody overtakes the oldest waiter, also when its request is larger than what is
/// free, so a large one is never starved by small ones. Waiting allocates nothing. Outlives its permits and waiters.
class semaphore {
public:
    explicit semaphore(std::size_t units) noexcept;
    semaphore(semaphore const&) = delete;
    semaphore& operator=(semaphore const&) = delete;
    ~semaphore();

    class permit;
    class acquire_operation;

    /// `auto p = co_await s.acquire(n)`: n units, given back when the permit goes. Throws `errc::cancelled` after a
    /// stop (no unit was taken then) and `errc::invalid_argument` for more units than there ever are.
    [[nodiscard]] acquire_operation acquire(std::size_t units = 1) noexcept;

    /// An empty permit when it would have to wait; throws `errc::invalid_argument` like `acquire`.
    [[nodiscard]] permit try_acquire(std::size_t units = 1);

    /// Units that nobody holds; not always zero while somebody waits, since the oldest may want more.
    std::size_t available() const noexcept;
    /// Units that there are.
    std::size_t capacity() const noexcept { return capacity_; }

private:
    struct request : detail::waiter {
        std::size_t units = 0;
    };

    void check(std::size_t units) const;
    bool take(std::size_t units) noexcept;
    void give_back(std::size_t units) noexcept;
    void withdraw(request& r) noexcept;
    void grant(detail::work_list& granted) noexcept;

    mutable std::mutex mutex_;
    std::size_t const capacity_;
    std::size_t available_;
    detail::waiter_list waiting_;
};

/// Units of a semaphore, given back when it goes, on any thread.
class [[nodiscard]] semaphore::permit {
public:
    /// Holds nothing.
    permit() noexcept = default;
    permit(permit&& other) noexcept
        : semaphore_(std::exchange(other.semaphore_, nullptr))
        , units_(std::exchange(other.units_, 0))
    {
    }
    permit& operator=(permit&& other) noexcept
    {
        permit old(std::move(*this)); // given back now, not when `other` goes
        std::swap(semaphore_, other.semaphore_);
        std::swap(units_, other.units_);
        return *this;
    }
    ~permit() { release(); }

    /// Whether it was acquired and not released.
    explicit operator bool() const noexcept { return semaphore_ != nullptr; }
    std::size_t units() const noexcept { return units_; }

    /// Gives the units back now.
    void release() noexcept
    {
        if (auto* s = std::exchange(semaphore_, nullptr)) s->give_back(std::exchange(units_, 0));
    }

private:
    friend semaphore;
    permit(semaphore& s, std::size_t units) noexcept
        : semaphore_(&s)
        , units_(units)
    {
    }

    semaphore* semaphore_ = nullptr;
    std::size_t units_ = 0;
};

class semaphore::acquire_operation {
public:
    acquire_operation(semaphore& s, std::size_t units) noexcept
        : semaphore_(s)
    {
        request_.units = units;
    }

    bool await_ready() const noexcept { return false; }

    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        auto stop = h.promise().context().stop;
        cancelled_ = stop.stop_requested();
        if (cancelled_) return false;
        semaphore_.check(request_.units);
        static constexpr wait_kind kind{"units of a semaphore"};
        request_.bind(h, kind);
        if (!begin()) return false;
        if (stop.stop_possible()) on_stop_.emplace(stop, on_stop(&semaphore_, &request_));
        return true;
    }

    permit await_resume();
    result<permit> await_result() noexcept;

private:
    /// A stop takes the request out, and those behind it may then have room.
    struct on_stop {
        on_stop(semaphore* s, request* r) noexcept
            : owner(s)
            , waiting(r)
        {
        }
        void operator()() const noexcept { owner->withdraw(*waiting); }

        semaphore* owner;
        request* waiting;
    };

    /// True when it has to wait.
    bool begin() noexcept;

    semaphore& semaphore_;
    request request_;
    std::optional<stop_callback<on_stop>> on_stop_;
    bool cancelled_ = false;
};

inline semaphore::acquire_operation semaphore::acquire(std::size_t units) noexcept
{
    return acquire_operation(*this, units);
}

} // namespace plait
