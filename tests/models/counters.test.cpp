#include <plait/tests/models/check.hpp>

#include <plait/actors/runtime/counters.hpp>

#include <optional>

using namespace plait;
using model::model_atomics;
using model::plain;
using model::search;

namespace {

struct held {
    detail::handle_counts<model_atomics> counts;
    std::array<plain<int>, 3> used{0, 0, 0};
    plain<bool> ended{false};
};

/// A strong handle and a weak one that is made strong where that is possible: the last strong one ends what they hold,
/// and the last of all frees it.
struct handles : rl::test_suite<handles, 3> {
    std::optional<held> home;
    plain<int> freed{0};

    void drop_weak()
    {
        if (!home->counts.drop_weak()) return;
        RL_ASSERT(home->ended);
        home.reset();
        freed = freed + 1;
    }
    void drop_strong(std::uint32_t count = 1)
    {
        if (!home->counts.drop_strong(count)) return;
        for (auto& u : home->used)
            u = 2;
        home->ended = true;
        drop_weak();
    }
    void before()
    {
        home.emplace();
        home->counts.add_strong(); // one of thread 0,
        home->counts.add_strong(); // and two of thread 1
        home->counts.add_weak();   // of thread 2
    }
    void thread(unsigned index)
    {
        if (index < 2) {
            RL_ASSERT(!home->ended);
            home->used[index] = 1;
            drop_strong(index + 1);
            return;
        }
        if (home->counts.try_add_strong()) {
            RL_ASSERT(!home->ended);
            home->used[index] = 1;
            drop_strong();
        }
        drop_weak();
    }
    void after() { RL_ASSERT(freed == 1); }
};

/// Two inside a gate, and one who closes it and takes what they have left when he is told that it is empty.
struct gate : rl::test_suite<gate, 3> {
    detail::gate_count<model_atomics> count;
    std::array<plain<int>, 2> left{0, 0};
    plain<int> reason{0};
    plain<int> emptied{0};

    void empty()
    {
        RL_ASSERT(left[0] + left[1] >= 1);
        emptied = emptied + 1;
    }
    void before() { count.try_enter(); } // for thread 0
    void thread(unsigned index)
    {
        if (index == 2) {
            reason = 7;
            if (count.close()) empty();
            return;
        }
        if (index == 1 && !count.try_enter()) return;
        left[index] = 1;
        if (count.leave()) empty();
    }
    void after() { RL_ASSERT(emptied == 1); }
};

/// Whoever sees a gate closed sees what was done before; whoever sees nobody inside, what they did there.
struct looked_at : rl::test_suite<looked_at, 2> {
    detail::gate_count<model_atomics> count;
    plain<int> left{0};
    plain<int> reason{0};

    void before() { count.try_enter(); }
    void thread(unsigned index)
    {
        if (index == 0) {
            left = 1;
            count.leave();
            reason = 7;
            count.close();
        } else {
            if (count.inside() == 0) RL_ASSERT(left == 1);
            if (count.closed()) RL_ASSERT(reason == 7);
        }
    }
};

/// Each thread uses what it has claimed, or does without.
struct claimed : rl::test_suite<claimed, 3> {
    detail::claim<model_atomics> one;
    plain<int> used{0};

    void thread(unsigned)
    {
        if (!one.take()) return;
        used = used + 1;
        one.give_back();
    }
    void after() { RL_ASSERT(used >= 1); }
};

/// The thread that brings a count to zero sees what the others did before they counted.
struct counted_down : rl::test_suite<counted_down, 3> {
    using count = detail::countdown<model_atomics>;
    count left{3};
    std::array<plain<int>, 3> done{0, 0, 0};
    plain<int> zero{0};

    void thread(unsigned index)
    {
        done[index] = 1;
        if (left.down(1) != count::outcome::zero) return;
        RL_ASSERT(done[0] + done[1] + done[2] == 3);
        zero = zero + 1;
    }
    void after()
    {
        RL_ASSERT(zero == 1);
        RL_ASSERT(left.down(1) == count::outcome::below_zero);
    }
};

/// Two senders and a receiver with room for one message: nobody finds room while a message waits before theirs,
/// whatever they remember. The receiver takes what he can see.
struct bounded : rl::test_suite<bounded, 3> {
    detail::sent_count<model_atomics> sent;
    model_atomics::atomic<std::uint64_t> taken{0};
    std::array<bool, 3> there{false, false, false};
    std::uint64_t took = 0;

    void look(std::uint64_t number, bool room)
    {
        if (room) RL_ASSERT(number < took + 1);
    }
    void thread(unsigned index)
    {
        if (index == 2) {
            for (int i = 0; i < 2; ++i) {
                if (!there[took]) continue;
                taken.store(++took, std::memory_order_relaxed);
            }
            return;
        }
        std::uint64_t number = 0;
        if (index == 0) {
            number = sent.add();
            there[number] = true;
            look(number, sent.has_room(number, taken, 1));
        } else if (sent.try_add(taken, 1, number)) {
            look(number, true);
            there[number] = true;
        }
    }
    void after() { RL_ASSERT(sent.value() >= 1 && sent.value() <= 2); }
};

} // namespace

TEST_CASE("the last step of every counter sees all others, and its orders are needed")
{
    model::check_protocol<looked_at, claimed, counted_down, gate, handles, bounded>(
        "actors/runtime/counters.hpp", {search::all(), search::all(), search::interrupted(3), search::interrupted(3),
                                        search::interrupted(3), search::all()});
}
