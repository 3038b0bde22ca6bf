#include <plait/actors/frame.hpp>

namespace plait::detail {

namespace {

/// The innermost `resume` of this thread. A coroutine that ends leaves its awaiter here instead of resuming it on top
/// of its own stack.
struct trampoline {
    std::coroutine_handle<> next;
    bool running = false;
};

constinit thread_local trampoline current;

/// How many awaits may nest on the stack before the next child starts from the trampoline, with an empty stack.
constexpr unsigned stack_depth = 128;

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

bool frame::start_child(std::coroutine_handle<> self, frame& parent, std::coroutine_handle<> continuation,
                        task_context& context) noexcept
{
    context_ = &context;
    above_.awaiter = &parent;
    above_.continuation = continuation;
    parent.beneath_ = reinterpret_cast<std::uintptr_t>(this);
    depth_ = static_cast<std::uint16_t>(parent.depth_ + 1);
    if (depth_ % stack_depth == 0 && current.running) {
        state_ = state::suspended;
        current.next = self;
        return true;
    }
    state_ = state::starting;
    self.resume();
    if (state_ == state::done) return false;
    state_ = state::suspended;
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

void frame::ended() noexcept
{
    if (root_) {
        if (context_->chains) context_->chains->remove(*this);
        root_ended_(root_owner_);
        return;
    }
    above_.awaiter->beneath_ = 0;
    if (state_ == state::starting) {
        state_ = state::done;
    } else if (current.running) {
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

} // namespace plait::detail
