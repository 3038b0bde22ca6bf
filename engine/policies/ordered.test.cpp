#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <plait/actors/error.hpp>
#include <plait/engine/policies/ordered.hpp>

using namespace plait;

namespace {

struct scene {
    std::vector<sequence_view> sequences;
    snapshot now;

    scene()
    {
        now.token_budget = 100;
        now.sequence_budget = 8;
        now.free_slots = 8;
        now.free_pages = 100;
    }

    sequence_view& waits(std::int64_t prompt)
    {
        sequence_view s;
        s.id = sequences.size() + 1;
        s.prompt = s.pending = prompt;
        return sequences.emplace_back(s);
    }

    sequence_view& decodes(std::int64_t length)
    {
        sequence_view s;
        s.id = sequences.size() + 1;
        s.running = true;
        s.prompt = 1;
        s.computed = length;
        s.pending = 1;
        s.generated = length;
        s.held = s.pages = (length + 15) / 16;
        return sequences.emplace_back(s);
    }

    step_plan plan(policy& by)
    {
        now.sequences = sequences;
        auto out = by.next(now);
        CHECK_NOTHROW(check(out, now));
        return out;
    }
};

std::int64_t tokens_of(step_plan const& plan, sequence_id id)
{
    for (auto const& e : plan.entries)
        if (e.id == id) return e.tokens;
    return 0;
}

} // namespace

TEST_CASE("decoding sequences come first and a long prompt takes what is left, in chunks")
{
    scene s;
    s.decodes(20);
    s.waits(1000);
    s.decodes(30);
    first_come_first_served fcfs;
    auto plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 1) == 1);
    CHECK(tokens_of(plan, 3) == 1);
    CHECK(tokens_of(plan, 2) == 98);
}

TEST_CASE("first come is first served, the shortest prompt where that is asked for")
{
    scene s;
    s.waits(90);
    s.waits(50);
    s.waits(10);
    first_come_first_served fcfs;
    auto plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 1) == 90);
    CHECK(tokens_of(plan, 2) == 10);
    CHECK(tokens_of(plan, 3) == 0);
    shortest_prefill_first shortest;
    plan = s.plan(shortest);
    CHECK(tokens_of(plan, 3) == 10);
    CHECK(tokens_of(plan, 2) == 50);
    CHECK(tokens_of(plan, 1) == 40);
}

TEST_CASE("when pages run out the last that runs gives way, and the first goes on")
{
    scene s;
    s.decodes(16); // needs a page for its next token
    s.decodes(20);
    s.decodes(20);
    s.now.free_pages = 0;
    first_come_first_served fcfs;
    auto plan = s.plan(fcfs);
    CHECK(plan.preempt == std::vector<sequence_id>{3});
    CHECK(tokens_of(plan, 1) == 0); // its page comes when the steps in flight are done
    CHECK(tokens_of(plan, 2) == 1); // it has room in its last page
    CHECK(tokens_of(plan, 3) == 0);

    // While the pages are coming nobody else is made to give way, and nobody else takes them.
    s.sequences.pop_back();
    s.now.coming_pages = 2;
    plan = s.plan(fcfs);
    CHECK(plan.preempt.empty());
    s.now.coming_pages = 0;
    s.now.free_pages = 2;
    plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 1) == 1);
}

TEST_CASE("prompts that are half computed give way too, so the first always progresses")
{
    scene s;
    for (int i = 0; i < 2; ++i) {
        auto& p = s.waits(64);
        p.running = true;
        p.computed = 32;
        p.pending = 32;
        p.held = p.pages = 2;
    }
    s.now.free_pages = 0;
    first_come_first_served fcfs;
    auto plan = s.plan(fcfs);
    CHECK(plan.preempt == std::vector<sequence_id>{2});
}

TEST_CASE("a sequence that does not fit yet is not overtaken by one that would")
{
    scene s;
    s.waits(90);
    s.waits(10);
    s.now.free_pages = 2;
    first_come_first_served fcfs;
    CHECK(s.plan(fcfs).entries.empty());
}

TEST_CASE("choices need a slot each")
{
    scene s;
    s.waits(10).slots = 4;
    s.now.free_slots = 3;
    first_come_first_served fcfs;
    CHECK(s.plan(fcfs).entries.empty());
    s.now.free_slots = 4;
    CHECK(s.plan(fcfs).entries.size() == 1);
}

TEST_CASE("a prompt whose tokens see each other is taken whole or not at all")
{
    first_come_first_served fcfs;
    shortest_prefill_first shortest;
    for (policy* by : {static_cast<policy*>(&fcfs), static_cast<policy*>(&shortest)}) {
        scene s;
        s.waits(60).together = 59;
        s.waits(70).together = 69;
        auto plan = s.plan(*by);
        CHECK(tokens_of(plan, 1) == 60);
        CHECK(tokens_of(plan, 2) == 0); // 40 tokens of the step are left
    }
    // All but the last token are enough.
    scene s;
    s.waits(60);
    s.waits(41).together = 40;
    auto const plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 1) == 60);
    CHECK(tokens_of(plan, 2) == 40);
}

TEST_CASE("nobody overtakes a prompt that waits for a step of its own, and those that decode make room for it")
{
    scene s;
    for (int i = 0; i < 20; ++i)
        s.decodes(20);
    s.waits(91).together = 90;
    s.waits(5);
    s.now.sequence_budget = 40;
    first_come_first_served fcfs;
    auto plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 21) >= 90);
    std::int64_t decoded = 0;
    for (sequence_id id = 1; id <= 20; ++id)
        decoded += tokens_of(plan, id);
    CHECK(decoded == 10); // the step is full

    // Where its pages are not there yet, those that decode lose nothing by it, and the later prompt waits too.
    s.now.free_pages = 4;
    plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 21) == 0);
    CHECK(tokens_of(plan, 22) == 0);
    for (sequence_id id = 1; id <= 20; ++id)
        CHECK(tokens_of(plan, id) == 1);
}

TEST_CASE("a prompt comes before those that decode only with pages that none of them needs")
{
    scene s;
    s.decodes(16); // needs a page for its next token
    s.waits(100).together = 99;
    first_come_first_served fcfs;
    s.now.free_pages = 7; // for the prompt and its first token
    auto plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 1) == 1);
    CHECK(tokens_of(plan, 2) == 0);
    s.now.free_pages = 8;
    plan = s.plan(fcfs);
    CHECK(tokens_of(plan, 1) == 1);
    CHECK(tokens_of(plan, 2) == 99);
}

TEST_CASE("a plan that cuts what belongs together is refused, in one lane and in two")
{
    scene s;
    s.waits(50).together = 49;
    s.now.sequences = s.sequences;
    s.now.lanes = 2;
    auto refused = [&](step_plan const& plan) {
        try {
            check(plan, s.now);
        } catch (error const& e) {
            CHECK(std::string(e.what()).find("48 tokens of 49 that are computed together") != std::string::npos);
            return e.condition() == errc::bad_plan;
        }
        return false;
    };
    std::vector<stream_role> const two{stream_role::compute, stream_role::urgent};
    CHECK(refused({{{1, 48}}, {}}));
    CHECK(refused({{{1, 48, 0}, {1, 2, 1}}, {}, two}));
    CHECK_FALSE(refused({{{1, 49}}, {}}));
    CHECK_FALSE(refused({{{1, 50}}, {}}));
    CHECK_FALSE(refused({{{1, 49, 0}, {1, 1, 1}}, {}, two}));
}

TEST_CASE("a plan is checked against every budget")
{
    scene s;
    s.decodes(16);
    s.waits(50);
    s.now.sequences = s.sequences;
    auto refused = [&](step_plan plan) {
        try {
            check(plan, s.now);
        } catch (error const& e) {
            return e.condition() == errc::bad_plan;
        }
        return false;
    };
    CHECK_FALSE(refused({{{1, 1}, {2, 50}}, {}}));
    CHECK(refused({{{3, 1}}, {}}));
    CHECK(refused({{{1, 1}, {1, 1}}, {}}));
    CHECK(refused({{{1, 2}}, {}}));
    CHECK(refused({{{1, 0}}, {}}));
    CHECK(refused({{}, {2}}));
    CHECK(refused({{{1, 1}}, {1}}));
    s.now.token_budget = 50;
    CHECK(refused({{{1, 1}, {2, 50}}, {}}));
    s.now.token_budget = 100;
    s.now.sequence_budget = 1;
    CHECK(refused({{{1, 1}, {2, 5}}, {}}));
    s.now.sequence_budget = 8;
    s.now.free_slots = 0;
    CHECK(refused({{{2, 5}}, {}}));
    s.now.free_slots = 8;
    s.now.free_pages = 0;
    CHECK(refused({{{1, 1}}, {}}));
}
