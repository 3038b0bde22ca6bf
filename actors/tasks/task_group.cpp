#include <plait/actors/tasks/task_group.hpp>

#include <cassert>
#include <utility>

namespace plait::detail {

task_group::task_group(task_context& parent)
{
    context_ = parent;
    context_.stop = source_.token();
    if (parent.stop.stop_possible()) parent_stop_.emplace(parent.stop, pass_on{&source_});
}

task_group::~task_group()
{
    assert(running_ == 0 && "a group of tasks must be joined before it goes");
}

void task_group::start(work& starter) noexcept
{
    starter.owner = context_.owner;
    ++running_;
    context_.exec->post(starter);
}

void task_group::start_now(work& starter) noexcept
{
    static constexpr unsigned most_nested = 32;
    static constinit thread_local unsigned nested = 0;
    if (nested == most_nested) {
        start(starter);
        return;
    }
    ++running_;
    ++nested;
    starter.run(starter);
    --nested;
}

void task_group::ended() noexcept
{
    if (--running_ == 0 && joining_) std::exchange(joining_, nullptr)->post();
}

} // namespace plait::detail
