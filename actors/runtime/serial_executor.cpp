#include <plait/actors/runtime/serial_executor.hpp>

namespace plait::detail {

serial_executor::serial_executor(executor& underlying) noexcept
    : underlying_(underlying)
{
    work::run = [](work& self) noexcept { static_cast<serial_executor&>(self).turn(); };
}

void serial_executor::post(work& w) noexcept
{
    if (mailbox_.push(w)) underlying_.post(*this);
}

void serial_executor::dispose_after_turn(void (*dispose)(void*) noexcept, void* owner) noexcept
{
    dispose_ = dispose;
    owner_ = owner;
}

void serial_executor::turn() noexcept
{
    for (unsigned left = underlying_.patience();;) {
        if (inbox_.empty()) {
            auto* w = mailbox_.take_all();
            if (!w) {
                if (dispose_) {
                    dispose_(owner_);
                    return;
                }
                // From here on another thread may run the next turn.
                if (mailbox_.try_idle()) return;
                continue;
            }
            while (w) {
                auto* next = w->next_work;
                inbox_.push_back(*w);
                w = next;
            }
        }
        if (left-- == 0) {
            underlying_.post(*this);
            return;
        }
        auto* w = inbox_.pop_front();
        w->run(*w);
    }
}

} // namespace plait::detail
