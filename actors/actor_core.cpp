#include <plait/actors/actor_core.hpp>

#include <plait/actors/actor_registry.hpp>
#include <plait/actors/error.hpp>

#include <cassert>

namespace plait::detail {

namespace {

/// Marks a work as a user's message.
constexpr char user_message = 0;

/// How deep asks may nest as direct calls.
constexpr unsigned direct_depth = 32;

constinit thread_local unsigned direct_calls = 0;

} // namespace

message::message(actor_core& core) noexcept
    : core_(&core)
{
    owner = &user_message;
}

task_context& message::method_context() noexcept
{
    context_.exec = core_;
    context_.stop = stop_.token();
    context_.owner = this;
    return context_;
}

message* message_list::next(message& m) noexcept
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
    , home_(std::move(home))
    , name_(name)
{
    work::run = [](work& self) noexcept { static_cast<actor_core&>(self).turn(); };
    system_.core = this;
}

actor_core::~actor_core() = default;

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

void actor_core::drop_strong() noexcept
{
    if (!handles_.drop_strong()) return;
    // Nobody can send any more, and every message, queued or running, held a handle: nothing runs.
    system_.run = [](work& self) noexcept {
        auto& core = *static_cast<system_work&>(self).core;
        core.close();
        core.drop_weak();
    };
    post(system_);
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
    m.number_ = sent_.fetch_add(1, std::memory_order_relaxed);
    return m.number_ < taken_.load(std::memory_order_acquire) + capacity_;
}

bool actor_core::try_reserve(message& m) noexcept
{
    auto number = sent_.load(std::memory_order_relaxed);
    do {
        if (number >= taken_.load(std::memory_order_acquire) + capacity_) return false;
    } while (!sent_.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
    m.number_ = number;
    return true;
}

void actor_core::turn() noexcept
{
    for (unsigned left = underlying_ ? underlying_->patience() : 0;;) {
        if (inbox_.empty()) {
            collect();
            if (inbox_.empty()) {
                if (sweep_) refuse_held();
                if (free_) {
                    home_->remove(*this);
                    delete this;
                    return;
                }
                // From here on another thread may run the next turn.
                if (mailbox_.try_idle()) return;
                continue;
            }
        }
        if (underlying_ && left-- == 0) {
            underlying_->post(*this);
            return;
        }
        run_one(*inbox_.pop_front());
    }
}

void actor_core::collect() noexcept
{
    for (auto* w = mailbox_.take_all(); w;) {
        auto* next = w->next_work;
        if (w->owner == &user_message) {
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
    if (w.owner == &user_message) {
        auto& m = static_cast<message&>(w);
        if ((holder_ || paused_) && !closed_.load(std::memory_order_relaxed)) {
            held_.push_back(w);
        } else {
            take(m);
        }
    } else if (holder_ && w.owner && w.owner != holder_) {
        held_.push_back(w);
    } else {
        w.run(w);
    }
}

void actor_core::count_taken(message& m) noexcept
{
    if (m.above_) {
        above_.remove(m);
        m.above_ = false;
    }
    taken_.store(taken_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    admit_senders();
}

void actor_core::take(message& m) noexcept
{
    count_taken(m);
    if (closed_.load(std::memory_order_relaxed)) {
        m.refuse(errc::receiver_gone);
    } else if (m.stop_.stop_requested()) {
        m.refuse(errc::cancelled);
    } else {
        if (std::exchange(m.waits_for_room_, false)) m.admit();
        running_.push_back(m);
        m.start();
    }
}

void actor_core::admit_senders() noexcept
{
    // A closed actor refuses them in their order.
    if (closed_.load(std::memory_order_relaxed)) return;
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
    bool closed = closed_.load(std::memory_order_relaxed);
    auto all = std::exchange(held_, {});
    while (auto* w = all.pop_front()) {
        if (w->owner == &user_message) {
            auto& m = static_cast<message&>(*w);
            if (closed || m.stop_.stop_requested()) {
                count_taken(m);
                m.refuse(closed ? errc::receiver_gone : errc::cancelled);
                continue;
            }
        }
        held_.push_back(*w);
    }
}

void actor_core::ended(message& m) noexcept
{
    running_.remove(m);
    went_quiet();
}

void actor_core::close() noexcept
{
    if (closed_.load(std::memory_order_relaxed)) return;
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
    if (!closed_.load(std::memory_order_relaxed)) {
        if (paused_ && !std::exchange(told_down_, true)) guardian_->down(*this, failure_ ? &*failure_ : nullptr);
        return;
    }
    if (has_object_ && !std::exchange(ending_, true)) {
        try {
            if (auto* last = last_words()) {
                add_weak(); // given back when it has ended: no other handle may be left
                running_.push_back(*last);
                last->start();
                return;
            }
        } catch (...) {
            unhandled("stopping", {}, std::current_exception());
        }
    }
    gone_ = true;
    if (std::exchange(has_object_, false)) destroy_object();
    home_->gone(*this);
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
    if (!mailbox_.try_wake()) return false;
    if (holder_ || paused_) {
        leave_direct();
        return false;
    }
    return true;
}

void actor_core::take_direct(message& m) noexcept
{
    m.number_ = sent_.fetch_add(1, std::memory_order_relaxed);
    ++direct_calls;
    take(m);
    --direct_calls;
}

void actor_core::leave_direct() noexcept
{
    if (!inbox_.empty() || !mailbox_.try_idle()) underlying_->post(*this);
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
    holder_ = nullptr;
    // A paused actor goes on with what its methods need to end; messages come back to be held when they are run.
    inbox_.prepend(held_);
}

void actor_core::unhandled(std::string_view method, site where, std::exception_ptr exception) noexcept
{
    failure what{name_, method, where, std::move(exception)};
    if (guardian_ && !closed_.load(std::memory_order_relaxed)) {
        pause(std::move(what));
    } else {
        home_->unhandled(what);
    }
}

void actor_core::pause(std::optional<failure> why) noexcept
{
    if (closed_.load(std::memory_order_relaxed)) return;
    // The first: the object is replaced, whatever else it throws.
    if (why && !failure_) failure_ = std::move(why);
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
        pause(failure{name_, "its constructor", {}, std::current_exception()});
        return;
    }
    paused_ = false;
    inbox_.prepend(held_);
}

void actor_core::rebuild(bool)
{
    throw error(errc::unsupported, "restarting an actor that has no supervisor");
}

} // namespace plait::detail
