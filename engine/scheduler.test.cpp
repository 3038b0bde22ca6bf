#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <plait/engine/policies/ordered.hpp>
#include <plait/engine/scheduler.hpp>
#include <plait/tests/support/scheduler_fixture.hpp>
#include <plait/tests/support/seeds.hpp>

using namespace plait;

namespace {

/// A scheduler whose steps end in their order, some time after they were issued, with requests that come, are read
/// slowly and are cancelled at random.
class world {
public:
    world(std::uint64_t seed, admission admit, std::shared_ptr<policy> rule)
        : random_(seed)
        , pages_(8 + below(20))
        , slots_(1 + below(4))
        , books_(options(admit), std::move(rule))
    {
    }

    void run()
    {
        for (int i = 0; i < 300; ++i) {
            if (below(4) == 0) arrive();
            for (auto const& s : books_.sequences())
                if (below(10) == 0) s->parked = !s->parked;
            if (!books_.sequences().empty() && below(40) == 0)
                books_.end(*books_.sequences()[static_cast<std::size_t>(below(std::ssize(books_.sequences())))]);
            advance();
        }
        // Everybody reads: then everybody gets to the end.
        for (int i = 0; !books_.sequences().empty(); ++i) {
            if (i == 20000) FAIL("no end");
            for (auto const& s : books_.sequences())
                s->parked = false;
            auto const idle = in_flight_.empty();
            auto const issued = advance();
            if (idle && !issued) FAIL("nothing runs, and somebody waits");
        }
        while (!in_flight_.empty())
            retire();
        CHECK(books_.free_pages() == pages_);
        CHECK(books_.free_slots() == slots_);
    }

private:
    std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n)); }

    scheduler_options options(admission admit)
    {
        auto out = test::books_of(pages_, slots_);
        out.step_tokens = 5 + below(60);
        out.admit = admit;
        return out;
    }

    void arrive()
    {
        auto what = std::make_shared<sequence_request>();
        what->choices = static_cast<std::int32_t>(1 + below(std::min<std::int64_t>(3, slots_)));
        auto const most = pages_ / what->choices * page_tokens; // also when everything is set aside at once
        what->prompt = 1 + below(most - 1);
        what->limit = what->prompt + 1 + below(most - what->prompt);
        books_.add(what, std::vector<std::int32_t>(static_cast<std::size_t>(what->prompt), 0), nullptr);
    }

    /// True when a step was issued.
    bool advance()
    {
        if (in_flight_.size() == 2 || (!in_flight_.empty() && below(2) == 0)) retire();
        auto step = books_.next({});
        if (!step) {
            if (!in_flight_.empty()) retire();
            return false;
        }
        in_flight_.push_back(std::move(*step));
        return true;
    }

    void retire()
    {
        auto step = std::move(in_flight_.front());
        in_flight_.pop_front();
        step_result result;
        result.tokens.assign(step.draws.size(), 0);
        for (auto const& [s, draw] : books_.retire(step, result))
            if (s->total() - s->ahead >= s->request->limit) books_.end(*s);
    }

    std::mt19937_64 random_;
    std::int64_t pages_;
    std::int64_t slots_;
    scheduler books_;
    std::deque<issued_step> in_flight_;
};

} // namespace

TEST_CASE("whatever comes, is read slowly or is cancelled, every plan holds and everybody gets to the end")
{
    for (auto admit : {admission::overcommit, admission::reserve})
        for (int rule = 0; rule < 2; ++rule)
            for (std::uint64_t seed = 1; seed <= test::seeds(60); ++seed) {
                CAPTURE(seed);
                CAPTURE(rule);
                CAPTURE(static_cast<int>(admit));
                std::shared_ptr<policy> by;
                if (rule == 0)
                    by = std::make_shared<first_come_first_served>();
                else
                    by = std::make_shared<shortest_prefill_first>();
                world(seed, admit, std::move(by)).run();
            }
}

TEST_CASE(
    "pages that leave the window of a chunk's layers are given to nobody while an earlier chunk of the step reads them")
{
    // Two chunks of one prompt in two lanes, then another prompt in the second lane. The pool is so small that a page
    // which the second chunk no longer needs would go to the other prompt at once.
    auto options = test::books_of(12, 4);
    options.kv.groups.front().window = 16;
    options.step_tokens = 200;
    options.lanes = 2;
    int step = 0;
    auto plan = make_policy([&step](snapshot const& now) {
        step_plan out;
        if (++step == 1) {
            out.entries.push_back({now.sequences[0].id, 64, 0});
        } else {
            out.lanes = {stream_role::compute, stream_role::urgent};
            out.entries.push_back({now.sequences[0].id, 48, 0});
            out.entries.push_back({now.sequences[0].id, 32, 1});
            out.entries.push_back({now.sequences[1].id, 20, 1});
        }
        return out;
    });
    scheduler books(options, std::move(plan));
    auto add = [&](std::int64_t prompt) {
        auto r = std::make_shared<sequence_request>();
        r->prompt = prompt;
        r->limit = prompt + 8;
        books.add(r, std::vector<std::int32_t>(static_cast<std::size_t>(prompt), 5), nullptr);
    };
    add(150);
    add(20);
    auto first = books.next({});
    REQUIRE(first);
    auto second = books.next({});
    REQUIRE(second);
    auto const& batch = second->batch;
    REQUIRE(batch.passes.size() == 2);
    REQUIRE(batch.chunks.size() == 3);
    CHECK(batch.passes[1].reads == 1);
    auto const& group = batch.groups.front();
    auto pages_of_chunk = [&](std::size_t i) {
        std::set<page_id> out(group.pages.begin() + group.first[i], group.pages.begin() + group.first[i + 1]);
        out.erase(-1);
        return out;
    };
    for (auto page : pages_of_chunk(0))
        CHECK_FALSE(pages_of_chunk(2).contains(page));
    CHECK(pages_of_chunk(0) == pages_of_chunk(1)); // one growth serves all chunks of a step
}
