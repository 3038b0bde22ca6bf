#include <plait/apps/bench/model/measure.hpp>
#include <plait/apps/bench/process.hpp>

#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::bench;

TEST_CASE("prompts are the same every time, differ from each other and stay within the vocabulary")
{
    auto one = fixed_prompt(1000, 320, 0);
    CHECK(one.size() == 1000);
    CHECK(one == fixed_prompt(1000, 320, 0));
    CHECK(one != fixed_prompt(1000, 320, 1));
    CHECK(std::ranges::min(one) >= 0);
    CHECK(std::ranges::max(one) < 320);
    CHECK(std::set<std::int32_t>(one.begin(), one.end()).size() > 200);
}

TEST_CASE("a rate of several answers is over the time in which all decode, or over all of it where they never do")
{
    auto answer = [](std::vector<int> at) {
        arrivals out;
        for (auto ms : at)
            out.tokens.push_back(time_point() + std::chrono::milliseconds(ms));
        return out;
    };
    CHECK(rate_together(std::vector{answer({0, 10, 20, 30})}) == doctest::Approx(100));
    // From 10 to 30: 20 and 30 of the first, 20 and 30 of the second.
    CHECK(rate_together(std::vector{answer({0, 10, 20, 30}), answer({10, 20, 30, 40})}) == doctest::Approx(200));
    // One after the other, with no moment in common and with one: five tokens after the first one in 50 ms.
    CHECK(rate_together(std::vector{answer({0, 10, 20}), answer({30, 40, 50})}) == doctest::Approx(100));
    CHECK(rate_together(std::vector{answer({30, 40, 50}), answer({0, 10, 20})}) == doctest::Approx(100));
    CHECK(rate_together(std::vector{answer({0, 10, 20}), answer({20, 30, 40})}) == doctest::Approx(125));
}

CO_TEST_CASE("a request is read to its last token, whatever the model would have ended with")
{
    test::tiny_file model;
    auto running = co_await open(rt, test::tiny_engine(model.path()));
    auto read = co_await ask_and_read(rt, running, 7, 100);
    CHECK(read.tokens.size() == 100);
    CHECK(std::ranges::is_sorted(read.tokens));
    CHECK(read.sent < read.tokens.front());
    auto prefill = co_await prefill_rate(rt, running, 50);
    CHECK(prefill > 0);
    auto decode = co_await decode_rate(rt, running, 3, 40);
    CHECK(decode > 0);
    co_await running.close();
}

CO_TEST_CASE("every row is measured as often as asked for, for every number of threads")
{
    test::tiny_file model;
    model_bench what;
    what.model = model.path();
    what.threads = {1, 2};
    what.prompt = 100;
    what.generate = 20;
    what.batches = {1, 3};
    what.repetitions = 2;
    what.idle = std::chrono::milliseconds(1);
    std::vector<std::string> heard;
    auto hear = [&heard](std::string const& doing) { heard.push_back(doing); };
    auto out = co_await measure(rt, what, hear);
    CHECK(out.what.file_bytes > 0);
    CHECK(!out.what.device.empty());
    std::vector<std::string> names;
    for (auto const& row : out.rows) {
        CAPTURE(row.name);
        names.push_back(row.name + "@" + std::to_string(row.threads));
        auto once = row.name == "resident" || row.name == "peak" || row.name == "idle";
        CHECK(row.samples.size() == (once ? 1 : 2));
        CHECK(std::ranges::min(row.samples) >= 0);
    }
    CHECK(names == std::vector<std::string>{"pp100@1", "tg20@1", "tg20 x 3@1", "resident@1", "peak@1", "idle@1",
                                            "first token@1", "pp100@2", "tg20@2", "tg20 x 3@2", "resident@2", "peak@2",
                                            "idle@2", "first token@2"});
    CHECK(heard.size() == names.size());
}

CO_TEST_CASE("a file that is not there is an error that names it")
{
    model_bench what;
    what.model = "/nowhere/model.gguf";
    what.threads = {1};
    auto outcome = co_await as_result(measure(rt, what, nullptr));
    CHECK(outcome.error() == errc::not_found);
}

TEST_CASE("the system tells what the process uses")
{
    CHECK(resident_bytes() > 0);
    CHECK(peak_resident_bytes() >= resident_bytes());
    auto before = processor_time();
    std::uint64_t volatile sum = 0;
    for (int i = 0; i < 5'000'000; ++i)
        sum = sum + static_cast<std::uint64_t>(i);
    CHECK(processor_time() > before);
}
