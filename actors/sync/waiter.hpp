#pragma once

#include <plait/actors/tasks/task.hpp>

#include <mutex>
#include <optional>

namespace plait::detail {

class waiter_list;

/// A coroutine that waits in a list until somebody claims it or a stop does. Whoever unlinks it, under the list's
/// mutex, has claimed it and is the one who resumes it; so a stop that races with a completion resumes once.
class waiter : public resumption {
public:
    waiter() = default;
    waiter(waiter const&) = delete;
    waiter& operator=(waiter const&) = delete;

    /// Whether a stop claimed it.
    bool cancelled() const noexcept { return cancelled_; }

    /// Lets a stop claim it; after it was linked. The last thing that an await_suspend does.
    void watch(stop_token stop, std::mutex& mutex, waiter_list& list)
    {
        if (!stop.stop_possible()) return;
        mutex_ = &mutex;
        list_ = &list;
        on_stop_.emplace(stop, claim{this});
    }

    /// The first thing that an await_resume does. After it no stop callback runs.
    void unwatch() noexcept { on_stop_.reset(); }

private:
    friend waiter_list;

    struct claim {
        waiter* self;
        void operator()() const noexcept;
    };

    waiter* next_ = nullptr;
    waiter* previous_ = nullptr;
    bool linked_ = false;
    bool cancelled_ = false;
    std::mutex* mutex_ = nullptr;
    waiter_list* list_ = nullptr;
    std::optional<stop_callback<claim>> on_stop_;
};

/// Waiting coroutines, first come first served. Its owner's mutex guards it.
class waiter_list {
public:
    waiter_list() = default;
    waiter_list(waiter_list const&) = delete;
    waiter_list& operator=(waiter_list const&) = delete;

    bool empty() const noexcept { return first_ == nullptr; }
    waiter* front() const noexcept { return first_; }
    void push_back(waiter& w) noexcept;
    void remove(waiter& w) noexcept;

    /// Claims `w` for a stop; false when it was claimed before.
    bool cancel(waiter& w) noexcept;

    /// Claims the oldest; null when there is none.
    waiter* pop_front() noexcept;

    /// Claims all, into a chain for `resume_chain`.
    waiter* pop_all() noexcept;

    /// Resumes a chain made by `pop_all`, after the mutex was released: a resumed coroutine may destroy the list.
    static void resume_chain(waiter* first) noexcept;

private:
    waiter* first_ = nullptr;
    waiter* last_ = nullptr;
};

} // namespace plait::detail
