#include "tenants_in_turn.hpp"

#include <doctest/doctest.h>

#include <plait/engine/scheduler.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>

#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::test;

namespace {

/// A service without a device: the engine's own scheduler, and a step that takes one tick of time. As in an engine, two
/// steps are in flight. Every token of an answer is a zero.
class simulated_service {
public:
    struct course {
        std::int64_t asked = 0;
        std::int64_t first_token = 0; ///< the tick
        std::int64_t end = 0;
        std::int64_t tokens = 0;
    };

    simulated_service(std::shared_ptr<policy> rule, std::int64_t slots, std::int64_t pages, std::int64_t step_tokens)
        : scheduler_(options(slots, pages, step_tokens), std::move(rule))
    {
    }

    sequence_id ask(std::string tenant, std::int64_t prompt, std::int64_t answer)
    {
        auto request = std::make_shared<sequence_request>();
        request->tenant = std::move(tenant);
        request->arrival = time_point(duration(ticks_));
        request->prompt = prompt;
        request->limit = prompt + answer;
        auto added = scheduler_.add(request, std::vector<std::int32_t>(static_cast<std::size_t>(prompt), 0), nullptr);
        courses_[added->id].asked = ticks_;
        return added->id;
    }

    /// A tick; false when nothing is left to do.
    bool tick()
    {
        ++ticks_;
        while (flying_.size() < 2) {
            auto next = scheduler_.next(time_point(duration(ticks_)));
            if (!next) break;
            flying_.push_back(std::move(*next));
        }
        if (flying_.empty()) return false;
        auto step = std::move(flying_.front());
        flying_.pop_front();
        step_result result;
        result.tokens.assign(step.draws.size(), 0);
        for (auto const& [s, draw] : scheduler_.retire(step, result)) {
            auto& c = courses_[s->id];
            if (c.tokens++ == 0) {
                c.first_token = ticks_;
                first_tokens_ += s->request->tenant;
            }
            if (c.tokens < s->request->limit - s->request->prompt) continue;
            c.end = ticks_;
            scheduler_.end(*s);
        }
        return true;
    }

    void run()
    {
        while (tick()) {
        }
    }

    course const& operator[](sequence_id id) { return courses_[id]; }
    std::string first_tokens() const { return first_tokens_; } ///< the tenants, in the order of their first tokens
    scheduler const& books() const noexcept { return scheduler_; }

private:
    static scheduler_options options(std::int64_t slots, std::int64_t pages, std::int64_t step_tokens)
    {
        scheduler_options out;
        kv_layer layer;
        layer.kv_heads = 1;
        layer.head_dim = 16;
        out.kv = kv_geometry::of({layer}, kv_type::f16);
        out.pages = pages;
        out.slots = slots;
        out.step_tokens = step_tokens;
        return out;
    }

    scheduler scheduler_;
    std::deque<issued_step> flying_;
    std::map<sequence_id, course> courses_;
    std::string first_tokens_;
    std::int64_t ticks_ = 0;
};

std::shared_ptr<policy> arrival()
{
    return std::make_shared<first_come_first_served>();
}

std::shared_ptr<policy> in_turn()
{
    return std::make_shared<tenants_in_turn>();
}

/// Thirty long questions of a greedy tenant, and while they are being answered one short one of a modest tenant. Gives
/// the ticks that the modest one waits for its first token.
std::int64_t modest_wait(std::shared_ptr<policy> rule, std::int64_t slots, std::int64_t pages)
{
    simulated_service service(std::move(rule), slots, pages, 64);
    std::vector<sequence_id> greedy;
    for (int i = 0; i < 30; ++i)
        greedy.push_back(service.ask("greedy", 40, 50));
    for (int i = 0; i < 10; ++i)
        service.tick();
    auto modest = service.ask("modest", 20, 5);
    service.run();

    // Whatever the rule, everybody gets the whole answer and all pages come back.
    CHECK(service[modest].tokens == 5);
    for (auto id : greedy)
        CHECK(service[id].tokens == 50);
    CHECK(service.books().free_pages() == pages);
    CHECK(service.books().free_slots() == slots);
    return service[modest].first_token - service[modest].asked;
}

} // namespace

TEST_CASE("a tenant with one question does not wait for another's queue when slots are short")
{
    auto waits = modest_wait(in_turn(), 4, 1000);
    auto would_wait = modest_wait(arrival(), 4, 1000);
    CHECK(waits <= 5);
    CHECK(would_wait > 300); // seven rounds of four answers of 50 tokens
}

TEST_CASE("a tenant with one question does not wait for another's queue when pages are short")
{
    auto waits = modest_wait(in_turn(), 16, 20);
    auto would_wait = modest_wait(arrival(), 16, 20);
    CHECK(waits <= 6);
    CHECK(would_wait > 300);
}

TEST_CASE("tenants that ask at once get their first tokens in turn instead of one queue after the other")
{
    auto order = [](std::shared_ptr<policy> rule) {
        simulated_service service(std::move(rule), 3, 1000, 16); // a step computes one prompt
        for (auto tenant : {"a", "a", "a", "a", "b", "b", "b", "c", "c"})
            service.ask(tenant, 16, 1);
        service.run();
        return service.first_tokens();
    };
    CHECK(order(arrival()) == "aaaabbbcc");
    CHECK(order(in_turn()) == "abcabcaba");
}

TEST_CASE("tenants of whom one sequence runs each are left alone by those that wait")
{
    simulated_service service(in_turn(), 2, 1000, 64);
    std::vector<sequence_id> all;
    for (auto tenant : {"a", "b", "c", "d"})
        all.push_back(service.ask(tenant, 16, 30));
    service.run();
    CHECK(service.books().preemptions() == 0);
    for (auto id : all)
        CHECK(service[id].tokens == 30);
}

CO_TEST_CASE("in an engine the policy changes who is first, and no answer")
{
    tiny_file model;
    std::vector<request> requests;
    for (int i = 0; i < 12; ++i) {
        requests.push_back(ask_for("question " + std::to_string(i), 30));
        requests.back().tenant = i < 9 ? "greedy" : "modest";
    }
    auto all_answers = [&](std::shared_ptr<policy> rule) -> task<std::vector<collected>> {
        auto options = tiny_engine(model.path());
        options.sequences = 3;
        options.schedule = std::move(rule);
        auto running = co_await open(rt, std::move(options));
        std::vector<collected> out(requests.size());
        auto body = [&](scope& all) -> task<> {
            for (std::size_t i = 0; i < requests.size(); ++i)
                all.start(collect_into(running, requests[i], out[i]));
            co_return;
        };
        co_await with_scope(body);
        co_await drained(running);
        co_await running.close();
        co_return out;
    };
    auto by_arrival = co_await all_answers(arrival());
    auto by_turns = co_await all_answers(in_turn());
    CHECK(by_turns == by_arrival);
}
