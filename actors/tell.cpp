#include <plait/actors/tell.hpp>

namespace plait::detail {

void tell_message_base::wait_for_room(tell_sender& sender) noexcept
{
    sender_ = &sender;
    waits_for_room_ = true;
}

void tell_message_base::admit() noexcept
{
    if (auto* sender = std::exchange(sender_, nullptr)) sender->end(std::nullopt);
}

void tell_message_base::refuse_sender(errc reason) noexcept
{
    if (auto* sender = std::exchange(sender_, nullptr)) sender->end(reason);
}

void tell_message_base::report(site failed_at, std::exception_ptr const& exception) noexcept
{
    if (stop_.stop_requested() && is_cancelled(exception)) return;
    core().unhandled(method(), sent_from(), failed_at, exception);
}

wait_kind const tell_sender::room{"room in the mailbox", [](resumption const& w, std::string& to) {
                                      to += " of ";
                                      to += static_cast<waiting const&>(w).core->label();
                                  }};

tell_sender::tell_sender(actor_core& core) noexcept
    : core_(core)
{
    resumption_.core = &core;
    cancel_.self = this;
    cancel_.run = [](work& self) noexcept { static_cast<cancel_work&>(self).self->cancel(); };
}

void tell_sender::send(tell_message_base& m, stop_token stop)
{
    m.wait_for_room(*this);
    message_ = &m;
    if (stop.stop_possible()) on_stop_.emplace(stop, pass_on{this});
    core_.post(m);
}

void tell_sender::end(std::optional<errc> reason) noexcept
{
    reason_ = reason;
    if (rendezvous_.answered()) resumption_.post();
}

void tell_sender::pass_on::operator()() const noexcept
{
    if (self->rendezvous_.pass_on()) self->core_.post(self->cancel_);
}

void tell_sender::cancel() noexcept
{
    if (rendezvous_.stop_arrived()) {
        resumption_.post();
        return;
    }
    message_->sender_ = nullptr;
    core_.withdraw(*message_);
    end(errc::cancelled);
}

} // namespace plait::detail
