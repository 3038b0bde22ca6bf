#include <plait/tests/models/check.hpp>

#include <plait/actors/runtime/mailbox.hpp>
#include <plait/actors/sync/rendezvous.hpp>
#include <plait/actors/tasks/stop_state.hpp>

#include <optional>

using namespace plait;
using model::model_atomics;
using model::plain;
using model::search;

namespace {

using state = detail::stop_state<model_atomics>;

/// A frame that waits for an operation that another thread completes, while a third one requests a stop: it goes on
/// once, when nobody touches it any more.
struct operation : rl::test_suite<operation, 3> {
    struct frame : state::callback {
        explicit frame(operation& o)
            : callback([](callback& self) noexcept { static_cast<frame&>(self).stopped(); })
            , test(o)
        {
        }
        ~frame() { unlink(); }
        void stopped() noexcept
        {
            if (meeting.try_enter()) test.entered[rl::thread_index()] = true;
        }
        operation& test;
        detail::rendezvous<model_atomics> meeting;
        plain<int> result{0};
        plain<int> signal{0};
    };
    state stop;
    std::array<bool, 3> entered{}; ///< each its thread's own
    plain<int> resumed{0};
    std::optional<frame> waiting;

    void leave()
    {
        if (!waiting->meeting.leave()) return;
        waiting->unlink();
        RL_ASSERT(waiting->result == 1);
        RL_ASSERT(waiting->signal <= 1);
        resumed = resumed + 1;
        waiting.reset();
    }
    void pass_stop_on(unsigned index)
    {
        if (!entered[index]) return;
        waiting->signal = 1;
        leave();
    }

    void before()
    {
        entered = {};
        waiting.emplace(*this);
    }
    void thread(unsigned index)
    {
        if (index == 0) {
            waiting->link(&stop);
            pass_stop_on(index);
            leave();
        } else if (index == 1) {
            waiting->result = 1;
            leave();
        } else {
            stop.request_stop();
            pass_stop_on(index);
        }
    }
    void after() { RL_ASSERT(resumed == 1); }
};

/// An ask with a stop that comes at any time. The actor runs on the thread that finds its mailbox idle. The method ends
/// at once, or when a third thread says so.
template<bool AtOnce>
struct asked : rl::test_suite<asked<AtOnce>, AtOnce ? 2 : 3> {
    enum class what : int { message, cancel, ending };
    struct item {
        plain<item*> next_work{nullptr};
        what kind;
    };
    using model_mailbox = detail::basic_mailbox<item, model_atomics>;

    struct frame : state::callback {
        explicit frame(asked& a)
            : callback([](callback& self) noexcept { static_cast<frame&>(self).stopped(); })
            , test(a)
        {
            message.kind = what::message;
            cancel.kind = what::cancel;
        }
        void stopped() noexcept
        {
            if (meeting.pass_on() && test.box.push(cancel)) test.must_run[rl::thread_index()] = true;
        }
        asked& test;
        item message;
        item cancel;
        detail::ask_rendezvous<model_atomics> meeting;
    };
    state stop;
    model_mailbox box;
    item ending;
    std::array<bool, 3> must_run{}; ///< each its thread's own
    plain<bool> running{false};     ///< the actor's
    plain<bool> may_end{AtOnce};    ///< the actor's
    plain<int> resumed{0};
    std::optional<frame> asker;

    void resume()
    {
        resumed = resumed + 1;
        asker->unlink();
        asker.reset();
    }
    void end_if_possible()
    {
        if (!running || !may_end) return;
        running = false;
        if (asker->meeting.answered()) resume();
    }
    void turn()
    {
        do {
            for (item* w = box.take_all(); w != nullptr;) {
                item* next = w->next_work;
                if (w->kind == what::cancel) {
                    if (asker->meeting.stop_arrived()) resume();
                } else {
                    (w->kind == what::message ? running : may_end) = true;
                    end_if_possible();
                }
                w = next;
            }
        } while (!box.try_idle());
    }
    void send(item& i)
    {
        if (box.push(i)) turn();
    }

    void before()
    {
        must_run = {};
        ending.kind = what::ending;
        asker.emplace(*this);
    }
    void thread(unsigned index)
    {
        if (index == 0) {
            asker->link(&stop);
            if (must_run[index]) turn();
            send(asker->message);
        } else if (index == 1) {
            stop.request_stop();
            if (must_run[index]) turn();
        } else {
            send(ending);
        }
    }
    void after() { RL_ASSERT(resumed == 1); }
};

} // namespace

TEST_CASE("whoever waits for an operation goes on once, and not before all have let go of it")
{
    model::check_protocol<operation, asked<true>, asked<false>>(
        "actors/sync/rendezvous.hpp", {search::interrupted(3), search::interrupted(3), search::interrupted(2)});
}
