#include <plait/actors/scope.hpp>

#include <cassert>

namespace plait {

struct scope::child : work, detail::pooled {
    child(scope& s, task<> t) noexcept
        : parent(s)
        , body(std::move(t))
    {
    }

    scope& parent;
    task<> body;
};

scope::scope(task_context& parent)
{
    context_ = parent;
    context_.stop = source_.token();
    if (parent.stop.stop_possible()) parent_stop_.emplace(parent.stop, pass_on{&source_});
}

scope::~scope()
{
    assert(running_ == 0 && "a scope must be joined before it goes");
}

void scope::start(task<> t)
{
    if (!t) throw error(errc::invalid_argument, "started an empty task in a scope");
    auto* c = new child(*this, std::move(t));
    c->owner = context_.owner;
    c->run = [](work& self) noexcept {
        auto& c = static_cast<child&>(self);
        detail::task_access::start(
            c.body, c.parent.context_,
            [](void* owner) noexcept {
                auto& c = *static_cast<child*>(owner);
                c.parent.ended(c);
            },
            &c);
    };
    ++running_;
    context_.exec->post(*c);
}

void scope::ended(child& c) noexcept
{
    auto outcome = detail::task_access::take(c.body);
    delete &c;
    --running_;
    if (outcome.failure()) fail(outcome.failure());
    if (running_ == 0 && joining_) std::exchange(joining_, nullptr)->post();
}

void scope::request_stop() noexcept
{
    asked_to_stop_ = true;
    source_.request_stop();
}

void scope::fail(std::exception_ptr failure) noexcept
{
    if (failure_ || (asked_to_stop_ && is_cancelled(failure))) return;
    failure_ = std::move(failure);
    source_.request_stop();
}

} // namespace plait
