#include <atomic>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <plait/actors/runtime/mailbox.hpp>

using namespace plait;

TEST_CASE("a mailbox gives works oldest first and says who has to wake its consumer")
{
    detail::mailbox box;
    work a;
    work b;
    work c;
    CHECK(box.push(a)); // it was idle
    CHECK(!box.push(b));
    auto* first = box.take_all();
    REQUIRE(first == &a);
    CHECK(first->next_work == &b);
    CHECK(b.next_work == nullptr);
    CHECK(box.take_all() == nullptr);
    CHECK(!box.push(c)); // the consumer is awake
    CHECK(!box.try_idle());
    CHECK(box.take_all() == &c);
    CHECK(box.try_idle());
    CHECK(box.push(a));
    CHECK(!box.try_wake());
}

TEST_CASE("only one may wake an idle mailbox")
{
    detail::mailbox box;
    CHECK(box.try_wake());
    CHECK(!box.try_wake());
    work a;
    CHECK(!box.push(a));
}

TEST_CASE("works pushed by several threads all arrive, those of one thread in order, with one consumer at a time")
{
    struct item : work {
        int sender = 0;
        int number = 0;
    };
    constexpr int senders = 3;
    constexpr int each = 20'000;
    detail::mailbox box;
    std::vector<std::vector<item>> items(senders, std::vector<item>(each));
    std::vector<int> next(senders, 0);
    std::atomic<int> taken{0};
    std::atomic<int> consumers{0};
    std::atomic<bool> in_order{true};
    std::atomic<bool> alone{true};
    auto consume = [&] {
        if (consumers.fetch_add(1) != 0) alone = false;
        for (bool more = true; more;) {
            int count = 0;
            for (auto* w = box.take_all(); w;) {
                auto& i = static_cast<item&>(*w);
                w = w->next_work;
                if (next[static_cast<std::size_t>(i.sender)]++ != i.number) in_order = false;
                ++count;
            }
            taken.fetch_add(count);
            if (count == 0) {
                consumers.fetch_sub(1);
                more = !box.try_idle();
                if (more) consumers.fetch_add(1);
            }
        }
    };
    std::vector<std::thread> threads;
    for (int s = 0; s < senders; ++s) {
        threads.emplace_back([&, s] {
            for (int n = 0; n < each; ++n) {
                auto& i = items[static_cast<std::size_t>(s)][static_cast<std::size_t>(n)];
                i.sender = s;
                i.number = n;
                if (box.push(i)) consume(); // whoever finds it idle becomes the consumer
            }
        });
    }
    for (auto& t : threads) {
        t.join();
    }
    CHECK(taken == senders * each);
    CHECK(in_order);
    CHECK(alone);
}
