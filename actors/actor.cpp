#include <plait/actors/actor.hpp>

#include <cassert>

namespace plait {

namespace {

detail::actor_core& core_being_built()
{
    auto* core = detail::actor_core::constructing();
    if (!core) throw error(errc::invalid_argument, "an actor is made by runtime::spawn");
    return *core;
}

} // namespace

actor::actor()
    : core_(core_being_built())
{
    detail::actor_core::constructing() = nullptr;
}

namespace detail {

void ending_message::start() noexcept
{
    task_access::start(
        running_, method_context(), [](void* self) noexcept { static_cast<ending_message*>(self)->ended(); }, this);
}

void ending_message::ended() noexcept
{
    auto outcome = task_access::take(running_);
    running_ = {};
    auto& ending = core();
    if (outcome.failure()) ending.unhandled("stopping", {}, {}, outcome.failure());
    ending.ended(*this);
    delete this;
    ending.drop_weak();
}

void post_stop(actor_core& core)
{
    post_to(core, [](actor_core& c) noexcept { c.close(); });
}

wait_kind const stop_operation::the_end{"the end", [](resumption const& w, std::string& to) {
                                            to += " of ";
                                            to += static_cast<waiting const&>(w).core->label();
                                        }};

void stop_operation::check(message const* caller) const
{
    for (auto const* m = caller; m; m = m->asked_by()) {
        if (&m->core() == core_)
            throw error(errc::deadlock,
                        std::string(m->method()) + " waits for the end of its own actor, " + core_->label());
    }
}

void stop_operation::begin() noexcept
{
    work_.self = this;
    work_.run = [](work& self) noexcept {
        auto& w = static_cast<stop_work&>(self);
        w.run = [](work& self) noexcept { static_cast<stop_work&>(self).self->resumption_.post(); };
        auto* core = w.self->core_;
        core->close();
        core->when_gone(w);
    };
    core_->post(work_);
}

} // namespace detail

namespace this_actor {

exclusive_guard exclusive_operation::await_resume() const
{
    if (!owner_) throw error(errc::invalid_argument, "exclusive() outside a method of an actor");
    auto& core = static_cast<detail::message const*>(owner_)->core();
    core.enter_exclusive(owner_);
    return exclusive_guard(core);
}

} // namespace this_actor

} // namespace plait
