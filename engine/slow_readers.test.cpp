#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <plait/engine/engine.hpp>
#include <plait/engine/policies/ordered.hpp>
#include <plait/engine/scheduler.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/scheduler_fixture.hpp>

using namespace plait;
using namespace plait::test;

namespace {

/// An engine with this much room, and two requests that nobody reads.
struct room {
    char const* what;
    std::int64_t sequences;
    std::int64_t kv_tokens;
    std::size_t slow_prompt, quick_prompt; ///< characters, which are tokens
};

request slow_one(room const& r, int i)
{
    auto out = ask_for(std::string(r.slow_prompt, static_cast<char>('a' + i)), 120);
    out.sampling.temperature = 0.8f;
    out.sampling.seed = static_cast<std::uint64_t>(i);
    return out;
}

std::shared_ptr<sequence> add(scheduler& books, std::int64_t prompt, std::int64_t limit)
{
    auto request = std::make_shared<sequence_request>();
    request->prompt = prompt;
    request->limit = limit;
    return books.add(request, std::vector<std::int32_t>(static_cast<std::size_t>(prompt), 0), nullptr);
}

void run(scheduler& books, issued_step const& step)
{
    step_result result;
    result.tokens.assign(step.draws.size(), 0);
    books.retire(step, result);
}

} // namespace

CO_TEST_CASE("answers that nobody reads hold neither places nor pages against those that somebody reads")
{
    tiny_file model;
    // A character is a token here, a page has 16, and the model's context is 256.
    for (auto const& r : {room{"places", 2, 0, 20, 20}, room{"pages for a prompt", 8, 17 * 16, 110, 110},
                          room{"pages to grow", 8, 17 * 16, 110, 2}}) {
        CAPTURE(r.what);
        auto options = tiny_engine(model.path());
        options.sequences = r.sequences;
        options.kv_tokens = r.kv_tokens;
        options.unread_pieces = 4;
        auto running = co_await open(rt, std::move(options));
        std::vector<collected> alone;
        for (int i = 0; i < 2; ++i) {
            auto one = co_await collect_from(running, slow_one(r, i));
            alone.push_back(std::move(one));
        }
        std::vector<generation> unread;
        for (int i = 0; i < 2; ++i) {
            auto one = co_await running.submit(slow_one(r, i));
            unread.push_back(std::move(one));
        }
        auto quick = co_await collect_from(running, ask_for(std::string(r.quick_prompt, 'q'), 130));
        CHECK(quick.tokens.size() == 130);
        for (std::size_t i = 0; i < unread.size(); ++i) {
            auto late = co_await collect(std::move(unread[i]));
            CHECK(late == alone[i]);
        }
        co_await drained(running);
        co_await running.close();
    }
}

TEST_CASE("sequences whose readers are behind give way first, and only when their room is needed")
{
    std::vector<sequence_view> sequences(4);
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        auto& s = sequences[i];
        s.id = i + 1;
        s.prompt = 16;
        s.running = i < 3;
        s.computed = s.running ? 32 : 0;
        s.pending = s.running ? 1 : 16;
        s.generated = s.running ? 16 : 0;
        s.held = s.pages = s.running ? 2 : 0;
    }
    sequences[0].parked = true;
    sequences[0].pending = 0;
    snapshot now;
    now.token_budget = 100;
    now.sequence_budget = 8;
    now.free_slots = 1;
    now.free_pages = 10;
    now.sequences = sequences;
    first_come_first_served rule;
    auto plan = rule.next(now);
    CHECK(plan.preempt.empty());
    CHECK(plan.entries.size() == 3);

    now.free_slots = 0; // the fourth wants one
    plan = rule.next(now);
    check(plan, now);
    CHECK(plan.preempt == std::vector<sequence_id>{1});
    CHECK(plan.entries.size() == 2);

    now.coming_slots = 1; // and it gets one anyway
    CHECK(rule.next(now).preempt.empty());

    now.free_slots = 1; // the second and the third want a page each, and there is one
    now.free_pages = 1;
    plan = rule.next(now);
    check(plan, now);
    CHECK(plan.preempt == std::vector<sequence_id>{1});
}

TEST_CASE("what a preempted sequence gives back at once is used at once")
{
    // Two prompts fill both pages. The first needs another, the second gives way, and no step is in flight whose end
    // would have anybody look again.
    scheduler books(books_of(2, 4), std::make_shared<first_come_first_served>());
    auto first = add(books, 16, 32);
    auto second = add(books, 10, 32);
    auto step = books.next({});
    REQUIRE(step.has_value());
    CHECK(step->members.size() == 2);
    run(books, *step);
    step = books.next({});
    REQUIRE(step.has_value());
    CHECK(step->members.size() == 1);
    CHECK(step->members.front() == first);
    CHECK(!second->running);
    CHECK(books.preemptions() == 1);
    run(books, *step);
}

TEST_CASE("a sequence that was set aside goes on when its reader has caught up")
{
    scheduler books(books_of(100, 1), std::make_shared<first_come_first_served>());
    auto slow = add(books, 16, 40);
    auto other = add(books, 16, 18);
    auto step = books.next({});
    REQUIRE(step.has_value());
    run(books, *step);
    slow->parked = true;
    for (int i = 0; i < 2; ++i) {
        step = books.next({});
        REQUIRE(step.has_value());
        CHECK(step->members.front() == other);
        run(books, *step);
    }
    books.end(*other);
    CHECK(!books.next({}).has_value()); // nobody can compute anything
    slow->parked = false;
    step = books.next({});
    REQUIRE(step.has_value());
    CHECK(step->members.front() == slow);
    CHECK(step->batch.tokens.size() == 17); // its prompt and the token that it had
    run(books, *step);
    books.end(*slow);
    CHECK(books.free_pages() == 100);
    CHECK(books.free_slots() == 1);
}

TEST_CASE("one that waits for a place or for pages holds up nobody who runs")
{
    struct shortage {
        char const* of;
        std::int64_t pages, slots;
    };
    for (auto const& few : {shortage{"places", 100, 1}, shortage{"pages", 16, 4}}) {
        CAPTURE(few.of);
        scheduler books(books_of(few.pages, few.slots), std::make_shared<first_come_first_served>());
        auto slow = add(books, 200, 230);
        auto other = add(books, 200, 202);
        std::shared_ptr<sequence> running;
        for (int steps = 0; other->computed < 64; ++steps) {
            REQUIRE(steps < 10);
            if (slow->computed >= 64) slow->parked = true;
            auto step = books.next({});
            REQUIRE(step.has_value());
            run(books, *step);
        }
        slow->parked = false; // its reader is back, and there is no room for it
        for (int steps = 0; !other->over; ++steps) {
            REQUIRE(steps < 20);
            auto step = books.next({});
            REQUIRE(step.has_value());
            run(books, *step);
            if (other->generated() >= 2) books.end(*other);
        }
        auto step = books.next({});
        REQUIRE(step.has_value());
        CHECK(step->members.front() == slow);
        run(books, *step);
    }
}
