#include <plait/actors/tasks/scope.hpp>

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

void scope::start(task<> t)
{
    if (!t) throw error(errc::invalid_argument, "started an empty task in a scope");
    auto* c = new child(*this, std::move(t));
    c->run = [](work& self) noexcept {
        auto& c = static_cast<child&>(self);
        detail::task_access::start(
            c.body, c.parent.group_.context(),
            [](void* owner) noexcept {
                auto& c = *static_cast<child*>(owner);
                c.parent.ended(c);
            },
            &c);
    };
    group_.start(*c);
}

void scope::ended(child& c) noexcept
{
    auto outcome = detail::task_access::take(c.body);
    delete &c;
    if (outcome.failure()) fail(outcome.failure());
    group_.ended();
}

void scope::request_stop() noexcept
{
    asked_to_stop_ = true;
    group_.request_stop();
}

void scope::fail(std::exception_ptr failure) noexcept
{
    if (failure_ || (asked_to_stop_ && is_cancelled(failure))) return;
    failure_ = std::move(failure);
    group_.request_stop();
}

} // namespace plait
