#include <plait/actors/ask.hpp>

namespace plait::detail {

ask_message::ask_message(actor_core& core) noexcept
    : message(core)
{
    cancel_.self = this;
    cancel_.run = [](work& self) noexcept { static_cast<cancel_work&>(self).self->cancel(); };
}

bool ask_message::send() noexcept
{
    if (core().enter_direct()) {
        direct_ = true;
        core().take_direct(*this);
        direct_ = false;
        bool suspended = !rendezvous_.over();
        core().leave_direct();
        return suspended;
    }
    core().reserve(*this);
    core().post(*this);
    return true;
}

void ask_message::answer() noexcept
{
    on_stop_.reset();
    if (rendezvous_.answered() && !direct_) asker_.post();
}

void ask_message::pass_on::operator()() const noexcept
{
    self->rendezvous_.passed_on();
    self->core().post(self->cancel_);
}

void ask_message::cancel() noexcept
{
    if (rendezvous_.stop_arrived()) {
        asker_.post();
        return;
    }
    stop_.request_stop();
    core().sweep_held();
}

} // namespace plait::detail
