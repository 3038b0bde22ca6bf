// as: actors/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

struct awaiter {
    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        handle_ = h;
        waiting_ = true;
        queue_.push(this);
        return true;
    }
};

struct returning {
    template<class P>
    bool await_suspend(std::coroutine_handle<P> h) noexcept
    {
        if (ready_) {
            return false;
        }
        bind(h);
        return queue_.push(this);
    }
};

struct branching {
    template<class P>
    bool await_suspend(std::coroutine_handle<P> h) noexcept
    {
        handle_ = h;
        if (local_) {
            loop_->post(*this);
            return true;
        }
        remote_ = true;
        next_ = head_->load();
        while (!head_->compare_exchange_weak(next_, this)) {
        }
        return true;
    }
};

struct others {
    bool await_ready() const noexcept { return false; }
    // Not an await_suspend: nobody can resume it behind its back.
    void start()
    {
        queue_.push(this);
        started_ = true;
    }
};

} // namespace plait
