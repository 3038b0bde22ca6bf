#include <doctest/doctest.h>

#include <plait/actors/sync/ring.hpp>

#include <deque>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>

using namespace plait;

namespace {

/// Neither made from nothing nor moved without risk; knows how many there are.
struct counted {
    explicit counted(int n)
        : value(n)
    {
        ++alive;
    }
    counted(counted const& other)
        : value(other.value)
    {
        if (value == refused) throw std::runtime_error("not this one");
        ++alive;
    }
    counted& operator=(counted const&) = default;
    ~counted() { --alive; }

    int value;
    static inline int alive = 0;
    static inline int refused = -1;
};

} // namespace

TEST_CASE("a ring gives what a deque gives, and every value goes once")
{
    std::mt19937 random(5);
    {
        detail::ring<counted> ring;
        std::deque<int> expected;
        for (int i = 0; i < 20'000; ++i) {
            if (random() % 1000 < 500 + (i / 5000 % 2 == 0 ? 20u : 0u)) {
                ring.push_back(counted(i));
                expected.push_back(i);
            } else if (!expected.empty()) {
                REQUIRE(ring.front().value == expected.front());
                ring.pop_front();
                expected.pop_front();
            }
            REQUIRE(ring.size() == expected.size());
            REQUIRE(counted::alive == static_cast<int>(expected.size()));
        }
        CHECK(!ring.empty());
    }
    CHECK(counted::alive == 0);
}

TEST_CASE("a ring that stays as short as it was moves round in the same memory")
{
    detail::ring<std::unique_ptr<int>> ring;
    std::set<void const*> places;
    for (int i = 0; i < 10'000; ++i) {
        while (ring.size() < 7)
            ring.push_back(std::make_unique<int>(i));
        places.insert(&ring.front());
        ring.pop_front();
        ring.pop_front();
    }
    // The first growth moves what was there.
    CHECK(places.size() <= 8 + 4);
}

TEST_CASE("a value that can't be copied when a ring grows leaves the ring as it was")
{
    {
        detail::ring<counted> ring;
        for (int i = 0; i < 4; ++i)
            ring.push_back(counted(i));
        counted::refused = 2;
        CHECK_THROWS_AS(ring.push_back(counted(4)), std::runtime_error);
        counted::refused = -1;
        CHECK(ring.size() == 4);
        CHECK(counted::alive == 4);
        ring.push_back(counted(4));
        for (int i = 0; i < 5; ++i) {
            CHECK(ring.front().value == i);
            ring.pop_front();
        }
    }
    CHECK(counted::alive == 0);
}
