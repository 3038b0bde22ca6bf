#include <plait/tests/models/check.hpp>

#include <plait/actors/runtime/mailbox.hpp>
#include <plait/actors/runtime/parking_spot.hpp>

#include <optional>

using namespace plait;
using model::model_atomics;
using model::plain;
using model::search;

namespace {

struct item {
    plain<item*> next_work;
    plain<int> value;
};
using model_mailbox = detail::basic_mailbox<item, model_atomics>;

/// Every thread pushes, and whoever finds the mailbox idle is its consumer until it goes idle: the consumer's own state
/// passes from thread to thread, and is touched before the mailbox is looked into.
struct handed_over : rl::test_suite<handed_over, 2> {
    model_mailbox box;
    std::array<item, 3> items;
    plain<int> turns{0};
    plain<int> taken{0}; ///< the consumer's
    plain<int> sum{0};

    void consume()
    {
        turns = turns + 1;
        do {
            for (item* w = box.take_all(); w != nullptr;) {
                item* next = w->next_work;
                taken = taken + 1;
                sum = sum + w->value;
                w = next;
            }
        } while (!box.try_idle());
    }
    void send(unsigned which)
    {
        items[which].value = static_cast<int>(which) + 1;
        if (box.push(items[which])) consume();
    }
    void thread(unsigned index)
    {
        send(index);
        if (index == 0) send(2);
    }
    void after()
    {
        RL_ASSERT(taken == 3);
        RL_ASSERT(sum == 6);
    }
};

/// The same for works that come together: they are taken together, in their order.
struct posted_together : rl::test_suite<posted_together, 2> {
    model_mailbox box;
    std::array<item, 3> items;
    plain<int> taken{0}; ///< the consumer's
    plain<int> order{0};

    void consume()
    {
        do {
            for (item* w = box.take_all(); w != nullptr;) {
                item* next = w->next_work;
                taken = taken + 1;
                order = order * 10 + w->value;
                w = next;
            }
        } while (!box.try_idle());
    }
    void thread(unsigned index)
    {
        if (index == 0) {
            items[0].value = 1;
            items[1].value = 2;
            items[0].next_work = &items[1];
            items[1].next_work = nullptr;
            if (box.push_all(items[0])) consume();
        } else {
            items[2].value = 3;
            if (box.push(items[2])) consume();
        }
    }
    void after()
    {
        RL_ASSERT(taken == 3);
        RL_ASSERT(order == 123 || order == 312);
    }
};

/// A thread that finds the mailbox idle becomes the consumer without sending anything, as a direct call does.
struct called_directly : rl::test_suite<called_directly, 2> {
    model_mailbox box;
    item one;
    plain<int> state{0}; ///< the consumer's
    plain<int> ran{0};

    void consume()
    {
        do {
            for (item* w = box.take_all(); w != nullptr; w = w->next_work) {
                state = state + 1;
                ran = ran + w->value;
            }
        } while (!box.try_idle());
    }
    void thread(unsigned index)
    {
        if (index == 0) {
            one.value = 1;
            if (box.push(one)) consume();
        } else if (box.try_wake()) {
            state = state + 1;
            consume();
        }
    }
    void after() { RL_ASSERT(ran == 1); }
};

/// A loop that goes as soon as it has run what was sent: whoever sent it and woke the loop touches nothing of it then.
struct ends_when_done : rl::test_suite<ends_when_done, 2> {
    struct loop {
        model_mailbox box;
        detail::parking_spot<model_atomics> parking;
    };
    std::optional<loop> home;
    item one;
    plain<int> ran{0};

    void before() { home.emplace().box.try_wake(); }
    void thread(unsigned index)
    {
        if (index == 0) {
            while (ran == 0) {
                for (item* w = home->box.take_all(); w != nullptr; w = w->next_work)
                    ran = ran + w->value;
                if (ran == 0 && home->box.try_idle()) home->parking.park();
            }
            home.reset();
        } else {
            one.value = 1;
            if (home->box.push(one)) home->parking.unpark();
        }
    }
};

/// The same with two senders: the loop parks again while its first waker may still be inside.
template<int Senders>
struct parks_again : rl::test_suite<parks_again<Senders>, Senders + 1> {
    std::optional<ends_when_done::loop> home;
    std::array<item, Senders> items;
    plain<int> ran{0};

    void before() { home.emplace().box.try_wake(); }
    void thread(unsigned index)
    {
        if (index == Senders) {
            while (ran < Senders) {
                for (item* w = home->box.take_all(); w != nullptr; w = w->next_work)
                    ran = ran + w->value;
                if (ran < Senders && home->box.try_idle()) home->parking.park();
            }
            home.reset();
        } else {
            items[index].value = 1;
            if (home->box.push(items[index])) home->parking.unpark();
        }
    }
};

} // namespace

TEST_CASE("a mailbox hands its works and its consumer over in every execution, and needs each of its orders")
{
    model::check_protocol<handed_over, posted_together, called_directly>("actors/runtime/mailbox.hpp",
                                                                         {search::all(), search::all(), search::all()});
}

TEST_CASE("a loop that parks is woken in every execution, ends safely, and needs each of its orders")
{
    model::check_protocol<ends_when_done, parks_again<2>>("actors/runtime/parking_spot.hpp",
                                                          {search::all(), search::at_random(20'000)});
}
