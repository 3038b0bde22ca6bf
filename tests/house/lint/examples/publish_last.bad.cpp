// as: actors/example.cpp
#include <plait/actors/tasks/task.hpp>

namespace plait {

struct awaiter {
    template<class P>
    bool await_suspend(std::coroutine_handle<P> h)
    {
        queue_.push(this);
        waiting_ = true; // finds: publish-last
        return true;
    }
};

struct posting {
    template<class P>
    void await_suspend(std::coroutine_handle<P> h)
    {
        if (first_) {
            executor_->post(*this);
        }
        handle_ = h; // finds: publish-last
    }
};

struct returning {
    template<class P>
    bool await_suspend(std::coroutine_handle<P> handle) noexcept
    {
        list.enqueue(handle);
        return armed_; // finds: publish-last
    }
};

} // namespace plait
