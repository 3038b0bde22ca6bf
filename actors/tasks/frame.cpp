#include <plait/actors/tasks/frame.hpp>

namespace plait {

void resumption::post_all(detail::work_list& all) noexcept
{
    detail::work_list together;
    executor* where = nullptr;
    while (auto* w = all.pop_front()) {
        auto* const exec = static_cast<resumption&>(*w).exec_;
        if (exec != where && where) where->post_all(together);
        where = exec;
        together.push_back(*w);
    }
    if (where) where->post_all(together);
}

namespace detail {

namespace {

/// The innermost `resume` of this thread. A coroutine that ends leaves its awaiter here instead of resuming it on top
/// of its own stack.
struct trampoline {
    std::coroutine_handle<> next;
    bool running = false;
};

constinit thread_local trampoline current;

} // namespace

void resume(std::coroutine_handle<> h) noexcept
{
    auto& now = current;
    auto outer = std::exchange(now, trampoline{{}, true});
    while (h) {
        h.resume();
        h = std::exchange(now.next, {});
    }
    now = outer;
}

bool frame::start_later(std::coroutine_handle<> self) noexcept
{
    if (!current.running) return false;
    current.next = self;
    return true;
}

void frame::start_root(std::coroutine_handle<> self, task_context& context, void (*ended)(void*) noexcept,
                       void* owner) noexcept
{
    context_ = &context;
    root_ = true;
    root_ended_ = ended;
    root_owner_ = owner;
    if (context.chains) context.chains->add(*this);
    resume(self);
}

void frame::give_back() noexcept
{
    if (root_) {
        if (context_->chains) context_->chains->remove(*this);
        root_ended_(root_owner_);
        return;
    }
    above_.awaiter->beneath_ = nullptr;
    if (current.running) {
        current.next = above_.continuation;
    } else {
        resume(above_.continuation);
    }
}

void chain_list::add(frame& root) noexcept
{
    root.listed_ = {nullptr, last_};
    (last_ ? last_->listed_.next : first_) = &root;
    last_ = &root;
}

void chain_list::remove(frame& root) noexcept
{
    auto const [next, previous] = root.listed_;
    (previous ? previous->listed_.next : first_) = next;
    (next ? next->listed_.previous : last_) = previous;
}

} // namespace detail

} // namespace plait
