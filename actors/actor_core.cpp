#include <plait/actors/actor_core.hpp>

#include <plait/actors/actor_registry.hpp>
#include <plait/actors/ask_cycles.hpp>
#include <plait/actors/error.hpp>

#include <cassert>

namespace plait::detail {

namespace {

/// The method that a resumption is part of.
message& message_of(work const& resumed) noexcept
{
    return *const_cast<message*>(static_cast<message const*>(resumed.owner));
}

/// How deep asks may nest as direct calls.
constexpr unsigned direct_depth = 32;

constinit thread_local unsigned direct_calls = 0;

/// Of a counter that one thread at a time writes.
template<class T>
void add(std::atomic<T>& counter, std::type_identity_t<T> n) noexcept
{
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

} // namespace

task_context& message::method_context() noexcept
{
    context_.exec = core_;
    context_.stop = stop_.token();
    context_.owner = this;
    context_.chains = &chains_;
    return context_;
}

message* message_list::next(message const& m) noexcept
{
    return m.next_;
}

void message_list::push_back(message& m) noexcept
{
    m.next_ = nullptr;
    m.previous_ = last_;
    (last_ ? last_->next_ : first_) = &m;
    last_ = &m;
}

void message_list::remove(message& m) noexcept
{
    (m.previous_ ? m.previous_->next_ : first_) = m.next_;
    (m.next_ ? m.next_->previous_ : last_) = m.previous_;
}

actor_core::actor_core(executor& underlying, std::shared_ptr<actor_registry> home, std::string_view name,
                       std::uint64_t capacity) noexcept
    : underlying_(&underlying)
    , capacity_(capacity)
    , serial_(underlying.serial())
    , home_(std::move(home))
    , name_(name)
{
    work::run = [](work& self) noexcept { static_cast<actor_core&>(self).turn(); };
    system_.core = this;
}

actor_core::~actor_core() = default;

std::string actor_core::label() const
{
    return std::string(name_) + " #" + std::to_string(id_);
}

actor_core*& actor_core::constructing() noexcept
{
    static constinit thread_local actor_core* core = nullptr;
    return core;
}

void actor_core::post(work& w) noexcept
{
    if (!mailbox_.push(w)) return;
    if (underlying_) {
        underlying_->post(*this);
    } else {
        turn();
    }
}

void actor_core::expect_post() const noexcept
{
    prefetch_to_write(&mailbox_);
}

void actor_core::drop_strong() noexcept
{
    if (!handles_.drop_strong()) return;
    // Nobody can send any more, and every message, queued or running, held a handle: nothing runs. On its own executor
    // it ends here and now, so that actors that come and go do so in the same memory.
    if (enter_direct()) {
        ++direct_calls;
        {
            watched_thread::turn const watched(name_);
            nobody_holds_it();
        }
        --direct_calls;
        leave_direct();
        return;
    }
    system_.run = [](work& self) noexcept { static_cast<system_work&>(self).core->nobody_holds_it(); };
    post(system_);
}

void actor_core::drop_handles_of_messages() noexcept
{
    if (handles_.drop_strong(std::exchange(went_, 0))) nobody_holds_it();
}

/// In a turn, or in a call that keeps one away: the last strong handle is gone, and its weak one goes.
void actor_core::nobody_holds_it() noexcept
{
    close();
    free_ = handles_.drop_weak();
}

void actor_core::drop_weak() noexcept
{
    if (!handles_.drop_weak()) return;
    // Through the queue, because a turn may be under way on another thread.
    system_.run = [](work& self) noexcept { static_cast<system_work&>(self).core->free_ = true; };
    post(system_);
}

bool actor_core::reserve(message& m) noexcept
{
    if (counters_) m.sent_at_ = now();
    m.number_ = sent_.add();
    return sent_.has_room(m.number_, taken_, capacity_);
}

bool actor_core::try_reserve(message& m) noexcept
{
    if (counters_) m.sent_at_ = now();
    return sent_.try_add(taken_, capacity_, m.number_);
}

duration actor_core::now() const noexcept
{
    return home_->clock().now().time_since_epoch();
}

void actor_core::happened(lifecycle_event::kind what, failure const* cause) const noexcept
{
    if (home_->lifecycle->heard()) home_->lifecycle->tell({what, name_, id_, cause});
}

void actor_core::turn() noexcept
{
    watched_thread::turn watched(name_);
    if (!counters_ || gone_) {
        run_works(watched);
        return;
    }
    // The turn may end with another one on another thread, or with the end of this.
    auto const home = home_;
    auto const begun = now();
    auto counters = counters_;
    run_works(watched);
    counters->ran.fetch_add((home->clock().now().time_since_epoch() - begun).count(), std::memory_order_relaxed);
}

void actor_core::run_works(watched_thread::turn& watched) noexcept
{
    for (unsigned left = underlying_ ? underlying_->patience() : 0;;) {
        if (inbox_.empty()) {
            collect();
            if (inbox_.empty()) {
                if (sweep_) refuse_held();
                if (went_ != 0) drop_handles_of_messages();
                if (draining_ && held_.empty() && running_.empty()) close();
                if (free_) {
                    home_->remove(*this);
                    delete this;
                    return;
                }
                if (underlying_ && underlying_->look_after(*this, mailbox_)) return;
                // From here on another thread may run the next turn.
                if (mailbox_.try_idle()) return;
                continue;
            }
        }
        if (underlying_ && left-- == 0) {
            // It may be long before its queue is empty. One is kept back, so that the last does not go here.
            if (went_ > 1) handles_.drop_strong(std::exchange(went_, 1) - 1);
            underlying_->post(*this);
            return;
        }
        watched.goes_on();
        run_one(*inbox_.pop_front());
    }
}

void actor_core::collect() noexcept
{
    for (auto* w = mailbox_.take_all(); w;) {
        auto* next = w->next_work;
        if (w->owner == &message::mark) {
            auto& m = static_cast<message&>(*w);
            if (m.waits_for_room_) {
                m.above_ = true;
                above_.push_back(m);
            }
        }
        inbox_.push_back(*w);
        w = next;
    }
    admit_senders();
}

void actor_core::run_one(work& w) noexcept
{
    if (w.owner == &message::mark) {
        auto& m = static_cast<message&>(w);
        if ((holder_ || paused_) && !refusing()) {
            if (can_wait(m)) held_.push_back(w);
        } else {
            take(m);
        }
    } else if (holder_ && w.owner && w.owner != holder_) {
        hold_back(w);
    } else {
        if (home_->cycles && w.owner) no_longer_held(message_of(w));
        w.run(w);
    }
}

bool actor_core::can_wait(message& m) noexcept
{
    if (!home_->cycles || !holder_ || !m.asked_by_) return true;
    auto const why = note_held(m);
    if (why.empty()) return true;
    count_taken(m);
    m.never_ends(why);
    return false;
}

void actor_core::hold_back(work& resumed) noexcept
{
    held_.push_back(resumed);
    if (!home_->cycles) return;
    auto& m = message_of(resumed);
    auto const why = note_held(m);
    if (why.empty()) return;
    // It has begun, so it can't be refused.
    home_->unhandled({name_, m.method(), m.sent_from(), {}, std::make_exception_ptr(error(errc::deadlock, why))});
}

std::string actor_core::note_held(message& m) noexcept
{
    m.noted_ = true;
    return home_->cycles->hold(m, *static_cast<message const*>(holder_));
}

void actor_core::no_longer_held(message& m) noexcept
{
    if (std::exchange(m.noted_, false)) home_->cycles->release(m);
}

void actor_core::count_taken(message& m) noexcept
{
    if (home_->cycles) no_longer_held(m);
    if (counters_) {
        add(counters_->messages, 1);
        add(counters_->queued, (now() - m.sent_at_).count());
    }
    if (m.above_) {
        above_.remove(m);
        m.above_ = false;
    }
    auto const taken = taken_.load(std::memory_order_relaxed) + 1;
    taken_.store(taken, std::memory_order_relaxed);
    // Those who wait go on together, when half of the room is free: to wake one for each message would cost more.
    if (auto const* first = above_.first(); first && first->number_ < taken + capacity_ - capacity_ / 2)
        admit_senders();
}

void actor_core::take(message& m) noexcept
{
    count_taken(m);
    run(m);
}

void actor_core::run(message& m) noexcept
{
    if (refusing()) {
        refuse(m, errc::receiver_gone);
    } else if (m.stop_.stop_requested()) {
        m.refuse(errc::cancelled);
    } else {
        if (std::exchange(m.waits_for_room_, false)) m.admit();
        running_.push_back(m);
        m.start();
    }
}

void actor_core::refuse(message& m, errc reason) noexcept
{
    if (reason == errc::receiver_gone) dropped_.fetch_add(1, std::memory_order_relaxed);
    m.refuse(reason);
}

void actor_core::admit_senders() noexcept
{
    // A closed actor refuses them in their order.
    if (refusing()) return;
    while (auto* m = above_.first()) {
        if (m->number_ >= taken_.load(std::memory_order_relaxed) + capacity_) break;
        above_.remove(*m);
        m->above_ = false;
        m->waits_for_room_ = false;
        m->admit();
    }
}

void actor_core::withdraw(message& m) noexcept
{
    m.waits_for_room_ = false;
    m.stop_.request_stop();
    if (m.above_) {
        above_.remove(m);
        m.above_ = false;
    }
    sweep_held();
}

void actor_core::refuse_held() noexcept
{
    sweep_ = false;
    bool closed = refusing();
    auto all = std::exchange(held_, {});
    while (auto* w = all.pop_front()) {
        if (w->owner == &message::mark) {
            auto& m = static_cast<message&>(*w);
            if (closed || m.stop_.stop_requested()) {
                count_taken(m);
                refuse(m, closed ? errc::receiver_gone : errc::cancelled);
                continue;
            }
        }
        held_.push_back(*w);
    }
}

void actor_core::ended(message& m) noexcept
{
    running_.remove(m);
    if (paused_ || closed_.load(std::memory_order_relaxed)) went_quiet();
}

void actor_core::drain() noexcept
{
    if (closed_.load(std::memory_order_relaxed)) return;
    if (paused_) {
        close();
        return;
    }
    closed_.store(true, std::memory_order_release);
    draining_ = true; // ended by a turn that finds nothing more to do: this work is in one
    happened(lifecycle_event::kind::stopping);
}

void actor_core::close() noexcept
{
    if (refusing()) return;
    if (!std::exchange(draining_, false)) happened(lifecycle_event::kind::stopping);
    closed_.store(true, std::memory_order_release);
    stop_running();
    refuse_held();
    went_quiet();
}

void actor_core::stop_running() noexcept
{
    for (auto* m = running_.first(); m; m = message_list::next(*m)) {
        m->stop_.request_stop();
    }
}

void actor_core::went_quiet() noexcept
{
    if (gone_ || !running_.empty()) return;
    if (!refusing()) {
        if (paused_ && !std::exchange(told_down_, true)) guardian_->down(*this, failure_.get());
        return;
    }
    // It failed, and was stopped before all its methods had ended: the failure is heard of all the same.
    if (failure_ && !std::exchange(told_down_, true)) guardian_->down(*this, failure_.get());
    if (has_object_ && !std::exchange(ending_, true)) {
        try {
            if (auto* last = last_words()) {
                add_weak(); // given back when it has ended: no other handle may be left
                running_.push_back(*last);
                last->start();
                return;
            }
        } catch (...) {
            unhandled("stopping", {}, {}, std::current_exception());
        }
    }
    gone_ = true;
    if (std::exchange(has_object_, false)) destroy_object();
    home_->gone(*this);
    happened(lifecycle_event::kind::gone);
    if (auto by = std::move(guardian_)) by->gone(*this);
    while (auto* w = when_gone_.pop_front()) {
        w->run(*w);
    }
}

void actor_core::when_gone(work& w) noexcept
{
    if (gone_) {
        w.run(w);
    } else {
        when_gone_.push_back(w);
    }
}

bool actor_core::enter_direct() noexcept
{
    if (!underlying_ || underlying_ != current_executor() || direct_calls == direct_depth) return false;
    if (serial_) {
        // Its next turn would run on this very executor, so not before this call has ended: nothing needs to be locked.
        // What others send meanwhile waits for that turn.
        if (in_call_ || !mailbox_.is_idle() || holder_ || paused_) return false;
        in_call_ = true;
        return true;
    }
    if (!mailbox_.try_wake()) return false;
    if (holder_ || paused_) {
        leave_direct();
        return false;
    }
    return true;
}

void actor_core::take_direct(message& m) noexcept
{
    // It has not waited, so it is not counted among those that do.
    ++direct_calls;
    if (!counters_ && !watched_thread::watches()) {
        run(m);
    } else {
        take_seen(m);
    }
    --direct_calls;
}

bool actor_core::enter_call() noexcept
{
    if (counters_ || watched_thread::watches() || !enter_direct()) return false;
    // Only now: on a pool another thread may have ended the actor until just before.
    if (closed_.load(std::memory_order_relaxed)) {
        leave_direct();
        return false;
    }
    ++direct_calls;
    return true;
}

void actor_core::leave_call() noexcept
{
    --direct_calls;
    leave_direct();
}

void actor_core::take_seen(message& m) noexcept
{
    watched_thread::turn const watched(name_);
    auto const begun = counters_ ? now() : duration();
    if (counters_) add(counters_->messages, 1);
    run(m);
    if (counters_) counters_->ran.fetch_add((now() - begun).count(), std::memory_order_relaxed);
}

void actor_core::leave_direct() noexcept
{
    if (free_) {
        home_->remove(*this);
        delete this;
        return;
    }
    bool const more = !inbox_.empty() || draining_;
    if (serial_) {
        in_call_ = false;
        // Who is woken by somebody else already has a turn coming.
        if (more && mailbox_.try_wake()) underlying_->post(*this);
    } else if (more || !mailbox_.try_idle()) {
        underlying_->post(*this);
    }
}

void actor_core::enter_exclusive(void const* owner) noexcept
{
    // Only the holder's works run while it holds, so whoever comes here is the holder or finds none.
    assert(!holder_ || holder_ == owner);
    holder_ = owner;
    ++holds_;
}

void actor_core::leave_exclusive() noexcept
{
    if (--holds_ != 0) return;
    if (home_->cycles) home_->cycles->let_go(*static_cast<message const*>(holder_));
    holder_ = nullptr;
    // A paused actor goes on with what its methods need to end; messages come back to be held when they are run.
    inbox_.prepend(held_);
}

void actor_core::unhandled(std::string_view method, site sent_from, site failed_at,
                           std::exception_ptr exception) noexcept
{
    failure what{name_, method, sent_from, failed_at, std::move(exception)};
    happened(lifecycle_event::kind::failed, &what);
    if (guardian_ && !closed_.load(std::memory_order_relaxed)) {
        pause(std::move(what));
    } else {
        home_->unhandled(what);
        // What it would be restarted for is over: it does not go on with an object that has failed.
        if (guardian_ && draining_) close();
    }
}

void actor_core::pause(std::optional<failure> why) noexcept
{
    if (closed_.load(std::memory_order_relaxed)) return;
    // The first: the object is replaced, whatever else it throws.
    if (why && !failure_) failure_ = std::make_unique<failure>(std::move(*why));
    if (!std::exchange(paused_, true)) stop_running();
    went_quiet();
}

void actor_core::restart() noexcept
{
    if (closed_.load(std::memory_order_relaxed) || !told_down_) return;
    told_down_ = false;
    failure_.reset();
    try {
        rebuild(std::exchange(has_object_, false));
        has_object_ = true;
    } catch (...) {
        failure again{name_, "its constructor", {}, {}, std::current_exception()};
        happened(lifecycle_event::kind::failed, &again);
        pause(std::move(again));
        return;
    }
    happened(lifecycle_event::kind::restarted);
    paused_ = false;
    inbox_.prepend(held_);
}

void actor_core::rebuild(bool)
{
    throw error(errc::unsupported, "restarting an actor that has no supervisor");
}

void post_to(actor_core& core, void (*what)(actor_core&) noexcept)
{
    struct once : work, pooled {
        actor_core* core;
        void (*what)(actor_core&) noexcept;
    };
    auto* w = new once;
    w->core = &core;
    w->what = what;
    w->run = [](work& self) noexcept {
        auto const once_only = static_cast<once&>(self);
        delete static_cast<once*>(&self);
        once_only.what(*once_only.core);
        once_only.core->drop_weak();
    };
    core.add_weak();
    core.post(*w);
}

} // namespace plait::detail
