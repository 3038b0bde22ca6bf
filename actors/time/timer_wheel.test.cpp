#include <doctest/doctest.h>

#include <plait/actors/time/timer_wheel.hpp>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <random>
#include <vector>

using namespace plait;
using namespace std::chrono_literals;

namespace {

struct numbered : detail::timer {
    int id = 0;
};

/// A wheel beside a sorted map, which must always agree.
class checked_wheel {
public:
    ~checked_wheel()
    {
        while (!map_.empty())
            cancel(map_.begin()->second->id);
    }

    int arm(time_point due)
    {
        auto& t = timers_.emplace_back();
        t.id = static_cast<int>(timers_.size()) - 1;
        t.due = due;
        t.armed = true;
        wheel_.arm(t);
        map_.emplace(due, &t);
        return t.id;
    }

    bool armed(int id) const { return timers_[static_cast<std::size_t>(id)].armed; }

    void cancel(int id)
    {
        auto& t = timers_[static_cast<std::size_t>(id)];
        auto [at, end] = map_.equal_range(t.due);
        map_.erase(std::find_if(at, end, [&](auto const& entry) { return entry.second == &t; }));
        wheel_.cancel(t);
        t.armed = false;
    }

    /// Whether the same timers fire, in the same order; at most so many at once.
    bool advance(time_point now, std::size_t most = static_cast<std::size_t>(-1))
    {
        bool same = true;
        std::size_t fired = most;
        while (same && fired == most) {
            detail::work_list due;
            wheel_.advance(now, due, most);
            fired = take(now, due, same);
            same = same && fired <= most && bound_holds();
        }
        return same && (map_.empty() || map_.begin()->first > now);
    }

    bool bound_holds() const
    {
        auto const bound = wheel_.no_earlier_than();
        return bound.has_value() == !map_.empty() && (!bound || *bound <= map_.begin()->first);
    }

    bool next_is_exact()
    {
        auto const next = wheel_.next();
        return next.has_value() == !map_.empty() && (!next || *next == map_.begin()->first);
    }

    bool empty() const { return wheel_.empty(); }

private:
    /// How many of `due` there are; `same` is false when they are not the first of the map.
    std::size_t take(time_point now, detail::work_list& due, bool& same)
    {
        std::size_t fired = 0;
        while (auto* w = due.pop_front()) {
            ++fired;
            auto& t = static_cast<numbered&>(*w);
            same = same && !t.armed && !map_.empty() && map_.begin()->second == &t && t.due <= now;
            if (same) map_.erase(map_.begin());
        }
        return fired;
    }

    detail::timer_wheel wheel_;
    std::deque<numbered> timers_;
    std::multimap<time_point, numbered*> map_;
};

} // namespace

TEST_CASE("a wheel and a sorted map agree about any timers armed, cancelled and fired")
{
    constexpr std::array<std::int64_t, 6> spreads{
        3, 300, 70'000, 5'000'000'000, 4'000'000'000'000'000, std::int64_t{1} << 59};
    for (unsigned seed = 1; seed <= 120; ++seed) {
        CAPTURE(seed);
        std::mt19937_64 random(seed);
        auto below = [&](std::int64_t n) {
            return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n));
        };
        auto const spread = spreads[seed % spreads.size()];
        bool const asks = seed % 4 != 0; // entering slots ahead of time is what `next` adds
        checked_wheel wheel;
        std::vector<int> known;
        time_point now(duration(below(spread) - spread / 2));
        bool agree = true;
        for (int step = 0; step < 3000 && agree; ++step) {
            auto const what = below(10);
            if (what < 5) {
                // Some together, and some among the last ones.
                auto due = now + duration(1 + below(below(2) == 0 ? spread : std::min<std::int64_t>(spread, 100)));
                known.push_back(wheel.arm(due));
            } else if (what < 8 && !known.empty()) {
                // The oldest are mostly the first that are due.
                auto const last = static_cast<std::int64_t>(known.size());
                auto const at =
                    static_cast<std::size_t>(below(2) == 0 ? below(last) : below(std::min<std::int64_t>(last, 8)));
                auto const id = known[at];
                known.erase(known.begin() + static_cast<std::ptrdiff_t>(at));
                if (wheel.armed(id)) wheel.cancel(id);
            } else if (what == 8) {
                now += duration(below(std::max<std::int64_t>(spread / 50, 2)));
                agree = seed % 3 == 0 ? wheel.advance(now, 1 + static_cast<std::size_t>(below(3))) : wheel.advance(now);
            } else if (asks) {
                agree = wheel.next_is_exact();
            }
            agree = agree && wheel.bound_holds();
        }
        CHECK(agree);
        CHECK(wheel.advance(time_point::max(), 7));
        CHECK(wheel.empty());
    }
}

TEST_CASE("timers at the ends of time, now and in the past fire in their order")
{
    checked_wheel wheel;
    for (auto due : {time_point::max(), time_point(1s), time_point::min(), time_point(), time_point::max(),
                     time_point(1s - 1ns), time_point(-1ns), time_point::min(), time_point(1s)})
        wheel.arm(due);
    CHECK(wheel.next_is_exact());
    CHECK(wheel.advance(time_point::min()));
    CHECK(wheel.next_is_exact());
    CHECK(wheel.advance(time_point()));
    wheel.arm(time_point(-1h)); // has passed
    wheel.arm(time_point());
    CHECK(wheel.next_is_exact());
    CHECK(wheel.advance(time_point(1s)));
    CHECK(wheel.next_is_exact());
    CHECK(wheel.advance(time_point::max() - 1ns));
    CHECK(!wheel.empty());
    CHECK(wheel.advance(time_point::max()));
    CHECK(wheel.empty());
}

TEST_CASE("when many timeouts are called off, the oldest first, the next one is still known exactly")
{
    // They are in one slot and it is always its first that goes; meanwhile others come and go that are due before.
    checked_wheel wheel;
    std::deque<int> timeouts;
    time_point now(1s);
    CHECK(wheel.advance(now));
    for (int i = 0; i < 2000; ++i)
        timeouts.push_back(wheel.arm(now + 1h + i * 1us));
    bool exact = true;
    for (int i = 0; i < 2000; ++i) {
        wheel.cancel(timeouts.front());
        timeouts.pop_front();
        wheel.arm(now + 1ms);
        exact = exact && wheel.next_is_exact();
        now += 1ms;
        exact = exact && wheel.advance(now) && wheel.next_is_exact();
    }
    CHECK(exact);
}

TEST_CASE("a million timers, a third of them cancelled, fire in order")
{
    constexpr int count = 1'000'000;
    std::mt19937_64 random(11);
    std::vector<numbered> timers(count);
    std::vector<std::pair<time_point, int>> expected;
    detail::timer_wheel wheel;
    for (int i = 0; i < count; ++i) {
        auto& t = timers[static_cast<std::size_t>(i)];
        t.id = i;
        t.due = time_point(duration(static_cast<std::int64_t>(random() % 10'000'000)));
        wheel.arm(t);
        if (i % 3 != 0) expected.emplace_back(t.due, i);
    }
    for (std::size_t i = 0; i < count; i += 3)
        wheel.cancel(timers[i]);
    std::sort(expected.begin(), expected.end()); // by time, then by arming
    std::size_t fired = 0;
    bool in_order = true;
    for (time_point now; !wheel.empty(); now += 7us) {
        detail::work_list due;
        wheel.advance(now, due);
        while (auto* w = due.pop_front()) {
            auto const& t = static_cast<numbered&>(*w);
            in_order = in_order && t.id == expected[fired++].second && t.due <= now && now - t.due < 7us;
        }
    }
    CHECK(fired == expected.size());
    CHECK(in_order);
}

TEST_CASE("of a crowd that is due together only so many fire at once, and the rest after them in their order")
{
    checked_wheel wheel;
    time_point const due(1h);
    for (int i = 0; i < 1000; ++i)
        wheel.arm(i % 3 == 0 ? due + duration(i % 7) : due);
    CHECK(wheel.advance(due + 10ns, 64));
    CHECK(wheel.empty());
}
