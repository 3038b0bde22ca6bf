#include <plait/tests/models/check.hpp>

#include <plait/actors/tasks/stop_state.hpp>

#include <optional>

using namespace plait;
using model::model_atomics;
using model::plain;
using model::search;

namespace {

using state = detail::stop_state<model_atomics>;

/// Counts its calls, and reads what was written before the stop was requested.
struct watcher : state::callback {
    explicit watcher(plain<int> const& r)
        : callback([](callback& self) noexcept { static_cast<watcher&>(self).called(); })
        , reason(r)
    {
    }
    ~watcher() { unlink(); }
    void called() noexcept
    {
        calls = calls + 1;
        RL_ASSERT(reason == 7);
    }
    plain<int> const& reason;
    plain<int> calls{0};
};

/// A callback that comes and goes while the stop is requested: it is called once or not at all, and not after it has
/// gone.
struct comes_and_goes : rl::test_suite<comes_and_goes, 2> {
    state stop;
    plain<int> reason{0};
    std::optional<watcher> watching;

    void thread(unsigned index)
    {
        if (index == 0) {
            reason = 7;
            RL_ASSERT(stop.request_stop());
        } else {
            watching.emplace(reason);
            watching->link(&stop);
            if (stop.stop_requested()) RL_ASSERT(reason == 7);
            watching.reset();
        }
    }
    void after() { RL_ASSERT(stop.stop_requested()); }
};

/// Two threads' callbacks in one list.
struct two_come_and_go : rl::test_suite<two_come_and_go, 3> {
    state stop;
    plain<int> reason{0};
    std::array<std::optional<watcher>, 2> watching;

    void thread(unsigned index)
    {
        if (index == 2) {
            reason = 7;
            RL_ASSERT(stop.request_stop());
        } else {
            auto& mine = watching[index];
            mine.emplace(reason).link(&stop);
            mine.reset();
        }
    }
};

/// Two threads request the stop: one of them runs the callback, which was linked before.
struct requested_twice : rl::test_suite<requested_twice, 2> {
    state stop;
    plain<int> reason{7};
    watcher watching{reason};
    std::array<plain<int>, 2> first{0, 0};

    void before() { watching.link(&stop); }
    void thread(unsigned index) { first[index] = stop.request_stop() ? 1 : 0; }
    void after()
    {
        RL_ASSERT(first[0] + first[1] == 1);
        RL_ASSERT(watching.calls == 1);
    }
};

/// A callback destroys itself where it is called, while another thread's comes and goes.
struct destroys_itself : rl::test_suite<destroys_itself, 2> {
    struct last_act : state::callback {
        explicit last_act(std::optional<last_act>& home)
            : callback([](callback& self) noexcept { static_cast<last_act&>(self).home_.reset(); })
            , home_(home)
        {
        }
        ~last_act() { unlink(); }
        std::optional<last_act>& home_;
    };
    state stop;
    plain<int> reason{7};
    std::optional<last_act> itself;
    std::optional<watcher> watching;

    void before() { itself.emplace(itself).link(&stop); }
    void thread(unsigned index)
    {
        if (index == 0) {
            stop.request_stop();
        } else {
            watching.emplace(reason).link(&stop);
            watching.reset();
        }
    }
    void after() { RL_ASSERT(!itself); }
};

} // namespace

TEST_CASE("a stop calls each callback once or not at all in every execution, and needs each of its orders")
{
    model::check_protocol<comes_and_goes, requested_twice, destroys_itself, two_come_and_go>(
        "actors/tasks/stop_state.hpp",
        {search::interrupted(4), search::interrupted(4), search::interrupted(4), search::at_random(200'000)});
}
