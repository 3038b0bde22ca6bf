#include <plait/actors/runtime/thread_loop.hpp>

#include <algorithm>
#include <cassert>
#include <utility>

namespace plait {

namespace {

/// Works run before the pollers get a turn although more works are ready: a busy loop still serves its device.
constexpr unsigned works_between_polls = 1024;

/// A spinning loop looks this often before it asks for the time, which takes as long as a few looks.
constexpr int looks_between_times = 64;

} // namespace

thread_loop::thread_loop(duration spin)
    : spin_(spin)
{
    stop_.loop = this;
    stop_.run = [](work& self) noexcept { static_cast<stop_work&>(self).loop->stopping_ = true; };
    mailbox_.try_wake(); // not parked: a post needs no waking before the loop has run
}

thread_loop::~thread_loop()
{
    assert(own_.empty() && !mailbox_.take_all() && "an event loop went with works that had not run");
}

void thread_loop::post(work& w) noexcept
{
    if (detail::current_executor() == this && mailbox_.empty()) {
        own_.push_back(w);
    } else if (mailbox_.push(w)) {
        parking_.unpark();
    }
}

void thread_loop::post_all(detail::work_list& works) noexcept
{
    auto* const oldest = works.take_all();
    if (oldest && mailbox_.push_all(*oldest)) parking_.unpark();
}

void thread_loop::attach(poller& p)
{
    pollers_.push_back(&p);
}

void thread_loop::detach(poller& p) noexcept
{
    std::erase(pollers_, &p);
}

bool thread_loop::poll_all()
{
    bool busy = false;
    for (std::size_t i = 0; i < pollers_.size(); ++i) {
        busy |= pollers_[i]->poll();
    }
    return busy;
}

bool thread_loop::look_after(work& w, detail::mailbox& queue) noexcept
{
    if (spin_ <= duration::zero() || !nothing_follows_ || !own_.empty() || !mailbox_.empty()) return false;
    last_ = {&w, &queue};
    return true;
}

/// From here on whoever queues something for it has to post it, as for all others. What is there already runs next.
void thread_loop::look_no_longer() noexcept
{
    auto const last = std::exchange(last_, {});
    if (last.owner && !last.queue->try_idle()) own_.push_back(*last.owner);
}

/// A chain of works to run, oldest first, or null.
work* thread_loop::next() noexcept
{
    if (own_.empty() && mailbox_.empty()) {
        if (!last_.has_more()) return nullptr;
        auto* const w = std::exchange(last_, {}).owner;
        w->next_work = nullptr;
        return w;
    }
    // A work must not find that the other is neither idle nor about to run.
    look_no_longer();
    return own_.empty() ? mailbox_.take_all() : own_.take_all();
}

bool thread_loop::something_came() const noexcept
{
    return !mailbox_.empty() || last_.has_more();
}

/// True as soon as something is queued, false when nothing came.
bool thread_loop::spin() const noexcept
{
    if (spin_ <= duration::zero()) return false;
    auto const until = detail::later(detail::machine_time(), spin_);
    do {
        for (int i = 0; i < looks_between_times; ++i) {
            if (something_came()) return true;
            detail::relax();
        }
    } while (detail::machine_time() < until);
    return false;
}

void thread_loop::park() noexcept
{
    // While it spins it is not idle: a post wakes nobody.
    if (spin()) return;
    look_no_longer();
    if (own_.empty() && mailbox_.try_idle()) parking_.park();
}

void thread_loop::run()
{
    auto* outer = std::exchange(detail::current_executor(), this);
    unsigned since_poll = 0;
    for (;;) {
        auto* w = next();
        if (!w) {
            since_poll = 0;
            if (poll_all() || !own_.empty()) continue;
            if (stopping_) {
                look_no_longer();
                if (own_.empty()) break;
                continue;
            }
            park();
            continue;
        }
        while (w) {
            auto* next = w->next_work;
            __builtin_prefetch(next, 1); // comes while this one runs
            nothing_follows_ = !next;
            w->run(*w);
            w = next;
            if (++since_poll == works_between_polls) {
                since_poll = 0;
                poll_all();
            }
        }
    }
    stopping_ = false;
    stop_asked_.give_back();
    detail::current_executor() = outer;
}

void thread_loop::stop() noexcept
{
    if (stop_asked_.take()) post(stop_);
}

} // namespace plait
