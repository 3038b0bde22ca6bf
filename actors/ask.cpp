#include <plait/actors/ask.hpp>

namespace plait::detail {

wait_kind const ask_message::an_answer{"an answer", [](resumption const& waiting, std::string& to) {
                                           auto const& m = *static_cast<asker const&>(waiting).self;
                                           to += " of ";
                                           to += m.method();
                                           to += " by " + m.core().label();
                                       }};

bool ask_message::send()
{
    if (core().enter_direct()) {
        direct_ = true;
        core().take_direct(*this);
        direct_ = false;
        bool const suspended = !rendezvous_.over();
        // A stop has nothing to reach before the method waits; it comes through the queue, so after this.
        if (suspended) {
            watch_stop();
        } else {
            asker_.waits_no_more();
        }
        core().leave_direct();
        return suspended;
    }
    watch_stop();
    core().expect_post();
    core().reserve(*this);
    core().post(*this);
    return true;
}

void ask_message::answer() noexcept
{
    if (rendezvous_.answered() && !direct_) asker_.post();
}

void ask_message::pass_on::operator()() const noexcept
{
    if (self->rendezvous_.pass_on()) self->core().post(self->cancel_);
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
