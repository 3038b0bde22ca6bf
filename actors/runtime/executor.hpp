#pragma once

namespace plait {

struct work;

namespace detail {
class work_list;
struct machine_atomics;
template<class Work, class Atomics>
class basic_mailbox;
using mailbox = basic_mailbox<work, machine_atomics>;
} // namespace detail

/// One thing to run, linked into the queue of an executor. It lives in whatever waits for it (mostly a coroutine
/// frame), so posting allocates nothing. From `post` until `run` is called it belongs to the executor and stays where
/// it is; when `run` is called it belongs to its owner again, who may destroy it there.
struct work {
    work* next_work = nullptr;
    void (*run)(work&) noexcept = nullptr;
    /// What this is part of. An actor reads it: while one of its methods is exclusive, works of others wait.
    void const* owner = nullptr;
};

/// Runs works one at a time, in the order in which they were posted. Every executor that a coroutine can see is
/// serial, and a coroutine is resumed only by a work posted to its executor. That is why a task needs no atomics: its
/// child can't finish on another thread while it is still being suspended.
class executor {
public:
    executor() = default;
    executor(executor const&) = delete;
    executor& operator=(executor const&) = delete;
    virtual ~executor();

    /// Queues `w`; from any thread. Never runs it inside the call.
    virtual void post(work& w) noexcept = 0;
    /// The same for all of a list, which is empty then: at most one wake for all of them.
    virtual void post_all(detail::work_list& works) noexcept;

    /// Works that one actor may run in a row before the others here get a turn.
    virtual unsigned patience() const noexcept;

    /// `w`, which runs here and ends now, has found its own queue empty. True if this looks into that queue for a
    /// while: then `w` need not go idle, whoever queues something need not post it, and it runs again when something is
    /// there.
    virtual bool look_after(work& w, detail::mailbox& queue) noexcept;

    /// Whether its works run one at a time. False only for what actors are placed on and no coroutine sees: a pool.
    virtual bool serial() const noexcept;
};

namespace detail {

/// A first-in, first-out list of works, for one thread.
class work_list {
public:
    bool empty() const noexcept { return first_ == nullptr; }

    void push_back(work& w) noexcept
    {
        w.next_work = nullptr;
        (last_ ? last_->next_work : first_) = &w;
        last_ = &w;
    }

    void push_front(work& w) noexcept
    {
        w.next_work = first_;
        first_ = &w;
        if (!last_) last_ = &w;
    }

    work* pop_front() noexcept
    {
        auto* w = first_;
        if (w) {
            first_ = w->next_work;
            if (!first_) last_ = nullptr;
        }
        return w;
    }

    /// All of it, linked by `next_work`; it is empty then.
    work* take_all() noexcept
    {
        auto* w = first_;
        first_ = last_ = nullptr;
        return w;
    }

    /// Puts all of `other` before what is here.
    void prepend(work_list& other) noexcept
    {
        if (other.empty()) return;
        other.last_->next_work = first_;
        if (!last_) last_ = other.last_;
        first_ = other.first_;
        other.first_ = other.last_ = nullptr;
    }

private:
    work* first_ = nullptr;
    work* last_ = nullptr;
};

/// The serial executor's underlying executor on this thread, or null: lets an ask of an idle actor on the same thread
/// be a direct call.
inline executor*& current_executor() noexcept
{
    static constinit thread_local executor* current = nullptr;
    return current;
}

} // namespace detail

} // namespace plait
