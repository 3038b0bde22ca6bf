#pragma once

#include <plait/actors/runtime/runtime.hpp>

#include <doctest/doctest.h>

namespace plait::test {

/// Checks, when it goes, that as many coroutine frames are alive as when it came.
class frame_check {
public:
    frame_check() = default;
    frame_check(frame_check const&) = delete;
    frame_check& operator=(frame_check const&) = delete;
    ~frame_check() { CHECK(live_frames() == before_); }

private:
    std::int64_t before_ = live_frames();
};

/// Runs a test's body, a coroutine, on a runtime of its own, and checks that every frame and every actor is gone after.
template<class Body>
void run_test(Body body, runtime_options options = {})
{
    frame_check frames;
    {
        runtime rt(options);
        rt.run(body(rt));
    }
}

} // namespace plait::test

/// A test whose body is a coroutine: `CO_TEST_CASE("a sentence") { … co_await …; }`. It finds `plait::runtime& rt`.
#define PLAIT_CO_TEST_NAME_2(line) plait_co_test_##line
#define PLAIT_CO_TEST_NAME(line) PLAIT_CO_TEST_NAME_2(line)
#define CO_TEST_CASE(name)                                                                                             \
    static plait::task<> PLAIT_CO_TEST_NAME(__LINE__)(plait::runtime & rt);                                            \
    TEST_CASE(name)                                                                                                    \
    {                                                                                                                  \
        plait::test::run_test(&PLAIT_CO_TEST_NAME(__LINE__));                                                          \
    }                                                                                                                  \
    static plait::task<> PLAIT_CO_TEST_NAME(__LINE__)([[maybe_unused]] plait::runtime & rt)
