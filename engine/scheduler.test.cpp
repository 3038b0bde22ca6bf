#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <plait/actors/error.hpp>
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
    world(std::uint64_t seed, admission admit, std::shared_ptr<policy> rule, bool prefix)
        : random_(seed)
        , prefix_(prefix)
        , pages_(8 + below(20))
        , slots_(1 + below(4))
        , step_tokens_(5 + below(60))
        , stages_(1 + below(3))
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
            if (i == 100000) FAIL("no end");
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
        out.step_tokens = step_tokens_;
        out.admit = admit;
        out.prefix = prefix_;
        out.stages = stages_;
        return out;
    }

    void arrive()
    {
        auto what = std::make_shared<sequence_request>();
        what->choices = static_cast<std::int32_t>(1 + below(std::min<std::int64_t>(3, slots_)));
        auto const most = pages_ / what->choices * page_tokens; // also when everything is set aside at once
        what->prompt = 1 + below(most - 1);
        if (prefix_) what->prompt = std::min(what->prompt, 1 + step_tokens_);
        what->limit = what->prompt + 1 + below(most - what->prompt);
        books_.add(what, std::vector<std::int32_t>(static_cast<std::size_t>(what->prompt), 0), nullptr);
    }

    /// True when a step was issued.
    bool advance()
    {
        if (std::ssize(in_flight_) == stages_ + 1 || (!in_flight_.empty() && below(2) == 0)) retire();
        auto step = books_.next({});
        if (!step) {
            if (!in_flight_.empty()) retire();
            return false;
        }
        check_prefixes(step->batch);
        check_tokens(step->batch);
        in_flight_.push_back(std::move(*step));
        return true;
    }

    /// A prompt begins with all that sees each other.
    void check_prefixes(step_batch const& batch) const
    {
        for (auto const& chunk : batch.chunks) {
            if (!prefix_) CHECK(chunk.prefix == 0);
            if (chunk.first_position == 0) CHECK(chunk.rows >= chunk.prefix);
            if (chunk.first_position > 0) CHECK(chunk.first_position >= chunk.prefix);
        }
    }

    /// A token that is not known yet was drawn so many steps before as there are stages.
    void check_tokens(step_batch const& batch)
    {
        ++issued_;
        for (auto const token : batch.tokens)
            if (token < 0) CHECK(issued_ - drawn_[-1 - token] >= stages_);
        for (auto const& row : batch.draws)
            drawn_[row.slot] = issued_;
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
    bool prefix_;
    std::int64_t pages_;
    std::int64_t slots_;
    std::int64_t step_tokens_;
    std::int64_t stages_;
    std::int64_t issued_ = 0;
    std::map<std::int32_t, std::int64_t> drawn_; ///< the newest step that drew a token of a slot
    scheduler books_;
    std::deque<issued_step> in_flight_;
};

} // namespace

namespace {

/// Some requests by hand.
struct small_world {
    explicit small_world(scheduler_options const& options)
        : books(options, std::make_shared<first_come_first_served>())
    {
    }

    std::shared_ptr<sequence> add(std::int64_t prompt, std::int64_t limit)
    {
        auto what = std::make_shared<sequence_request>();
        what->prompt = prompt;
        what->limit = limit;
        return books.add(what, std::vector<std::int32_t>(static_cast<std::size_t>(prompt), 5), nullptr);
    }

    /// One step from its issue to its end.
    step_batch step()
    {
        auto issued = books.next({});
        REQUIRE(issued);
        step_result result;
        result.tokens.assign(issued->draws.size(), 7);
        for (auto const& [s, draw] : books.retire(*issued, result))
            if (s->total() >= s->request->limit) books.end(*s);
        return std::move(issued->batch);
    }

    scheduler books;
};

} // namespace

TEST_CASE("a prompt whose tokens see each other is one chunk beside those that decode, and its boundary stays")
{
    auto options = test::books_of(40, 4);
    options.prefix = true;
    options.step_tokens = 30;
    small_world w(options);
    w.add(20, 40);
    auto first = w.step();
    REQUIRE(first.chunks.size() == 1);
    CHECK(first.chunks[0].rows == 20);
    CHECK(first.chunks[0].prefix == 19);
    w.add(28, 40);
    auto both = w.step();
    REQUIRE(both.chunks.size() == 2);
    CHECK(both.chunks[0].rows == 1); // decodes
    CHECK(both.chunks[0].first_position == 20);
    CHECK(both.chunks[0].prefix == 19);
    CHECK(both.chunks[1].rows == 28);
    CHECK(both.chunks[1].first_position == 0);
    CHECK(both.chunks[1].prefix == 27);
    auto after = w.step();
    REQUIRE(after.chunks.size() == 2);
    CHECK(after.chunks[1].first_position == 28);
    CHECK(after.chunks[1].prefix == 27);
}

TEST_CASE("of a model without a prefix no chunk has one, and a prompt is cut")
{
    auto options = test::books_of(40, 4);
    options.step_tokens = 30;
    small_world w(options);
    w.add(40, 50);
    auto const batch = w.step();
    REQUIRE(batch.chunks.size() == 1);
    CHECK(batch.chunks[0].rows == 30);
    CHECK(batch.chunks[0].prefix == 0);
}

TEST_CASE("a prompt that no step could compute whole is refused with the numbers")
{
    auto options = test::books_of(40, 4);
    options.step_tokens = 30;
    options.prefix = true;
    small_world w(options);
    CHECK_NOTHROW(w.add(31, 40)); // its last token may follow
    try {
        w.add(32, 40);
        FAIL("accepted");
    } catch (error const& e) {
        CHECK(e.condition() == errc::never_fits);
        CHECK(std::string(e.what()).find("32 tokens") != std::string::npos);
        CHECK(std::string(e.what()).find("computes 30") != std::string::npos);
    }
    options.prefix = false;
    small_world cut(options);
    CHECK_NOTHROW(cut.add(32, 40));
}

TEST_CASE("a sequence that starts again keeps its boundary: what it had generated does not see ahead")
{
    auto options = test::books_of(40, 4);
    options.step_tokens = 30;
    options.prefix = true;
    small_world w(options);
    w.add(20, 60);
    w.step();
    for (int i = 0; i < 14; ++i)
        w.step();
    w.books.restart_all(); // what the devices held is gone
    auto again = w.step(); // 35 tokens, of which one step computes 30
    REQUIRE(again.chunks.size() == 1);
    CHECK(again.chunks[0].first_position == 0);
    CHECK(again.chunks[0].rows == 30);
    CHECK(again.chunks[0].prefix == 19);
    auto rest = w.step();
    REQUIRE(rest.chunks.size() == 1);
    CHECK(rest.chunks[0].first_position == 30);
    CHECK(rest.chunks[0].rows == 5);
    CHECK(rest.chunks[0].prefix == 19);
}

TEST_CASE("a preempted sequence waits for a step that has room for all that belongs together")
{
    // Eight pages: two sequences of four cannot both grow, and the later one gives way.
    auto options = test::books_of(8, 4);
    options.step_tokens = 60;
    options.prefix = true;
    small_world w(options);
    auto const a = w.add(60, 100);
    auto const b = w.add(60, 100);
    w.step();
    w.step();
    while (w.books.preemptions() == 0)
        w.step();
    CHECK_FALSE(b->running);
    auto const had = b->total();
    CHECK(had > 60);
    while (!b->running)
        w.step();
    CHECK(a->over);
    CHECK(b->computed >= 60); // more than all of the prompt in its first step
    CHECK(b->request->prompt == 60);
}

TEST_CASE("sequences that may outgrow the short context have the rotation of long ones from their first token on")
{
    auto options = test::books_of(40, 4);
    options.short_context = 32;
    small_world w(options);
    w.add(20, 32);
    w.add(20, 33);
    for (int i = 0; i < 3; ++i) {
        auto const batch = w.step();
        REQUIRE(batch.chunks.size() == 2);
        CHECK_FALSE(batch.chunks[0].stretched_positions);
        CHECK(batch.chunks[1].stretched_positions);
    }
    options.short_context = 0;
    small_world one(options);
    one.add(20, 400);
    CHECK_FALSE(one.step().chunks[0].stretched_positions);
}

TEST_CASE("whatever comes, is read slowly or is cancelled, every plan holds and everybody gets to the end")
{
    for (auto admit : {admission::overcommit, admission::reserve})
        for (int rule = 0; rule < 4; ++rule)
            for (std::uint64_t seed = 1; seed <= test::seeds(60); ++seed) {
                CAPTURE(seed);
                CAPTURE(rule);
                CAPTURE(static_cast<int>(admit));
                std::shared_ptr<policy> by;
                if (rule % 2 == 0)
                    by = std::make_shared<first_come_first_served>();
                else
                    by = std::make_shared<shortest_prefill_first>();
                world(seed, admit, std::move(by), rule >= 2).run();
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
