#pragma once

#include <plait/actors/activity.hpp>
#include <plait/actors/lifecycle.hpp>
#include <plait/actors/runtime/counters.hpp>
#include <plait/actors/runtime/mailbox.hpp>
#include <plait/actors/runtime/watched_thread.hpp>
#include <plait/actors/tasks/task.hpp>
#include <plait/actors/time/clock.hpp>

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace plait {

/// A failure of an actor that no caller waits for.
struct failure {
    std::string_view actor;       ///< the actor's type
    std::string_view method;      ///< the method that was told
    site sent_from;               ///< where it was told
    site failed_at;               ///< the method's last await before it threw; nowhere when there was none
    std::exception_ptr exception; ///< what it threw
};

namespace detail {

class actor_core;
class actor_registry;
class message;
class message_list;

/// Whoever looks after an actor. Called on the actor's executor.
class guardian {
public:
    /// The object does nothing any more: because of `what`, or because it was asked to pause (null). Its mailbox keeps
    /// what comes, until `actor_core::restart` or `close`.
    virtual void down(actor_core& core, failure const* what) noexcept = 0;
    /// The object has been destroyed for good.
    virtual void gone(actor_core& core) noexcept = 0;

protected:
    ~guardian() = default;
};

/// What is noted of a message, for people and for a method that is a coroutine. It lies apart, before all that a
/// message needs on its way, so that this comes in few cache lines.
struct message_notes {
    site sent_from_;
    message const* asked_by_ = nullptr;
    std::uint64_t number_ = 0; ///< messages sent to the actor before it
    duration sent_at_{};       ///< when there are counters
    task_context context_{};
    chain_list chains_;
};

/// A call of one method of an actor: queued, then running, then ended. Everything here is touched only on the actor's
/// executor once the message was posted.
class message : protected message_notes, public work {
public:
    message(message const&) = delete;
    message& operator=(message const&) = delete;

    actor_core& core() const noexcept { return *core_; }

    /// For people: the method's name, and where it was called.
    virtual std::string_view method() const noexcept = 0;
    site sent_from() const noexcept { return sent_from_; }
    /// The awaits of the method and of the scopes inside it.
    chain_list const& chains() const noexcept { return chains_; }
    /// The actor's method that asked, if it was one: it waits until this has ended.
    message const* asked_by() const noexcept { return asked_by_; }

protected:
    explicit message(actor_core& core) noexcept
        : core_(&core)
    {
        owner = &mark;
    }
    ~message() = default;

    /// Runs the method, or starts it when it is a coroutine: then `actor_core::ended` follows later.
    virtual void start() noexcept = 0;
    /// Ends it without running: `errc::receiver_gone` or `errc::cancelled`.
    virtual void refuse(errc reason) noexcept = 0;
    /// Its sender may go on: there is room. Called for messages that were posted above the bound.
    virtual void admit() noexcept {}
    /// Ends it without running, since it would wait for ever. Called for what a method has asked.
    virtual void never_ends(std::string const&) noexcept {}

    /// What the method runs under. Its owner is this message: that is how an actor knows whose a resumption is.
    task_context& method_context() noexcept;

    stop_source stop_;            ///< requested by the actor's end and by the sender's stop
    bool waits_for_room_ = false; ///< set by the sender before posting, cleared when it is admitted

private:
    friend actor_core;
    friend message_list;

    /// The owner of every message, as a work: that is how an actor knows them from what its methods wait for.
    static constexpr char mark = 0;

    actor_core* core_;
    bool above_ = false;      ///< in the core's list of those that wait for room
    bool noted_ = false;      ///< by ask_cycles
    message* next_ = nullptr; ///< among the running ones, or among those that wait for room
    message* previous_ = nullptr;
};

/// A doubly linked list of messages.
class message_list {
public:
    bool empty() const noexcept { return first_ == nullptr; }
    message* first() const noexcept { return first_; }
    static message* next(message const& m) noexcept;
    void push_back(message& m) noexcept;
    void remove(message& m) noexcept;

private:
    message* first_ = nullptr;
    message* last_ = nullptr;
};

/// The part of an actor that is the same for all: its serial executor, its mailbox, its life.
///
/// It is a serial executor on top of another executor. Everything (messages, resumptions of its methods, system works)
/// goes through one queue, so delivery is causal. Messages are numbered when sent and counted when taken; a sender
/// whose number is `capacity` or more above the taken ones waits. Its message is queued already, so order is kept and
/// nothing is bounded but senders; resumptions and system works never wait.
class alignas(64) actor_core : public executor, public pooled, private work {
public:
    actor_core(executor& underlying, std::shared_ptr<actor_registry> home, std::string_view name,
               std::uint64_t capacity) noexcept;

    void post(work& w) noexcept final;

    // Handles. Strong ones keep the actor running, weak ones only the memory of the core.
    void add_strong() noexcept { handles_.add_strong(); }
    bool try_add_strong() noexcept { return handles_.try_add_strong(); }
    void drop_strong() noexcept;
    void add_weak() noexcept { handles_.add_weak(); }
    void drop_weak() noexcept;

    // Sending, from any thread.
    /// A work is about to be posted: the cache lines that this takes come at the same time.
    void expect_post() const noexcept;
    bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
    /// Numbers `m`. True if there is room.
    bool reserve(message& m) noexcept;
    /// Numbers `m` only if there is room.
    bool try_reserve(message& m) noexcept;

    // On the actor's executor.
    /// A method has ended, in whatever way.
    void ended(message& m) noexcept;
    /// A message that held a strong handle is no more. Such handles are dropped together when the turn ends: their
    /// count lies in a cache line that senders write.
    void message_went() noexcept { ++went_; }
    /// A message that waits for room is withdrawn by its sender: refused when it is taken.
    void withdraw(message& m) noexcept;
    /// A queued message got a stop: if it is held back, it is refused before the actor sleeps.
    void sweep_held() noexcept { sweep_ = holder_ || paused_; }
    /// Closes the mailbox: what is queued is refused, running methods are asked to stop, and the object is destroyed
    /// when they have ended.
    void close() noexcept;
    bool gone() const noexcept { return gone_; }
    /// Runs `w` when the object has been destroyed, or now if it has.
    void when_gone(work& w) noexcept;
    /// Takes no more messages from now on, runs those that wait, and closes when nothing is left to do.
    void drain() noexcept;

    // An ask as a direct call, on a thread that the actor's underlying executor runs.
    /// True when the actor was idle: the caller is its consumer until `leave_direct`.
    bool enter_direct() noexcept;
    void take_direct(message& m) noexcept;
    /// Deletes this when no handle is left.
    void leave_direct() noexcept;
    /// The same for a method that is no coroutine, without a message: true when the actor was idle and nobody counts or
    /// watches. Then the caller calls the method and `leave_call`: no turn, and so no stop or pause, comes between.
    bool enter_call() noexcept;
    void leave_call() noexcept;

    void enter_exclusive(void const* owner) noexcept;
    void leave_exclusive() noexcept;

    /// A told method threw.
    void unhandled(std::string_view method, site sent_from, site failed_at, std::exception_ptr exception) noexcept;

    // With a guardian.
    /// Before the actor gets its first message.
    void watched_by(std::shared_ptr<guardian> by) noexcept { guardian_ = std::move(by); }
    bool guarded() const noexcept { return guardian_ != nullptr; }
    /// Takes no message, asks the running methods to stop, and tells the guardian when they have ended. Where there is
    /// no memory for `why` the program ends.
    void pause(std::optional<failure> why = std::nullopt) noexcept;
    /// Replaces the object of a paused actor and goes on with what the mailbox has kept. A constructor that throws is a
    /// failure like any other.
    void restart() noexcept;

    /// Shares what the underlying executor belongs to, until the last handle is gone.
    void keep(std::shared_ptr<void> place) noexcept { place_ = std::move(place); }

    /// The runtime's actors.
    actor_registry& home() const noexcept { return *home_; }
    std::string_view name() const noexcept { return name_; }
    /// The type and the number among the runtime's actors: "cache #3".
    std::string label() const;
    std::uint64_t id() const noexcept { return id_; }
    /// Messages that were refused because it has closed.
    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }
    /// Null when the runtime does not count.
    actor_counters const* counters() const noexcept { return counters_.get(); }
    /// From now on; before the actor gets its first message.
    void count() { counters_ = std::make_shared<actor_counters>(); }
    /// Messages sent and not yet taken.
    std::uint64_t depth() const noexcept
    {
        auto const taken = taken_.load(std::memory_order_relaxed);
        auto const sent = sent_.value();
        return sent > taken ? sent - taken : 0; // the one may be seen older than the other
    }

    /// Adds what it is doing, line by line, for dump(); on the actor's executor.
    void describe(std::string& to) const;

    /// The core whose object is being constructed on this thread.
    static actor_core*& constructing() noexcept;

protected:
    ~actor_core() override;
    virtual void destroy_object() noexcept = 0;
    /// What the actor runs before it goes, or null. May throw.
    virtual message* last_words() { return nullptr; }
    /// Destroys the object, if there is one, and constructs it again in its place. May throw; then there is none.
    virtual void rebuild(bool there_is_one);

private:
    friend actor_registry;

    void turn() noexcept;
    void run_works(watched_thread::turn& watched) noexcept;
    void collect() noexcept;
    void run_one(work& w) noexcept;
    void take(message& m) noexcept;
    void take_seen(message& m) noexcept;
    void run(message& m) noexcept;
    bool can_wait(message& m) noexcept;
    void hold_back(work& resumed) noexcept;
    std::string note_held(message& m) noexcept;
    void no_longer_held(message& m) noexcept;
    void refuse(message& m, errc reason) noexcept;
    /// Whether messages are refused: it has closed, and there is nothing that it wants to finish first.
    bool refusing() const noexcept { return closed_.load(std::memory_order_relaxed) && !draining_; }
    duration now() const noexcept;
    void happened(lifecycle_event::kind what, failure const* cause = nullptr) const noexcept;
    void admit_senders() noexcept;
    void refuse_held() noexcept;
    void count_taken(message& m) noexcept;
    void stop_running() noexcept;
    void went_quiet() noexcept;
    void drop_handles_of_messages() noexcept;
    void nobody_holds_it() noexcept;

    // One cache line, with what executor and work have: what goes from a sender to the receiver.
    mailbox mailbox_;
    actor_core* registry_next_ = nullptr;
    actor_core* registry_previous_ = nullptr;
    std::atomic<std::uint64_t> dropped_{0};

    // Another one, which hardly anybody writes: everybody looks at it.
    executor* underlying_; ///< null once the runtime that owned it has ended: then a post runs in the call
    std::uint64_t const capacity_;
    void const* holder_ = nullptr;             ///< the method that is exclusive
    std::shared_ptr<actor_counters> counters_; ///< a turn that ends the actor still writes them
    std::atomic<bool> closed_{false};          ///< written on the actor's executor only
    bool const serial_;                        ///< what it runs on
    bool paused_ = false;
    bool draining_ = false; ///< closed to senders, but what waits is run
    bool gone_ = false;
    bool free_ = false; ///< no handle is left: the turn ends by deleting this
    bool sweep_ = false;
    std::shared_ptr<actor_registry> const home_; ///< outlives the runtime, as handles may

    // A third: what senders write and the receiver does not look at.
    sent_count<> sent_;
    handle_counts<> handles_;
    std::shared_ptr<void> place_;
    std::shared_ptr<guardian> guardian_;

    // From here on what only the actor's own executor looks at, in lines that others seldom ask for.
    alignas(64) message_list running_;    ///< methods that have suspended
    std::atomic<std::uint64_t> taken_{0}; ///< written on the actor's executor only
    bool in_call_ = false;                ///< an ask is inside as a direct call
    work_list inbox_;                     ///< collected from the mailbox, oldest first
    work_list held_;                      ///< what an exclusive section keeps waiting
    message_list above_;                  ///< messages whose senders wait for room
    work_list when_gone_;                 ///< who waits for the end
    unsigned holds_ = 0;
    std::uint32_t went_ = 0; ///< messages whose handles are still counted
    bool told_down_ = false; ///< the guardian knows that it is paused
    bool has_object_ = true;
    bool ending_ = false; ///< last_words() were asked for

    struct system_work : work {
        actor_core* core;
    } system_;

    std::unique_ptr<failure> failure_; ///< why it is paused, if it failed
    std::string_view const name_;
    bool owned_ = false;   ///< `underlying_` ends with the runtime
    std::uint64_t id_ = 0; ///< the runtime's actors are numbered as they come, from 1
};

/// Has `what` done to `core` on its executor; until then the memory of the core is kept.
void post_to(actor_core& core, void (*what)(actor_core&) noexcept);

} // namespace detail

} // namespace plait
