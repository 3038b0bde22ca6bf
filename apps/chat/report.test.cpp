#include <plait/apps/chat/report.hpp>

#include <doctest/doctest.h>

using namespace plait;
using namespace plait::chat;
using namespace std::chrono_literals;

namespace {

summary an_answer()
{
    summary s;
    s.prompt_tokens = 100;
    s.generated_tokens = 51;
    s.queued = 100ms;
    s.time_to_first_token = 300ms;
    s.total = 800ms;
    return s;
}

} // namespace

TEST_CASE("prefill counts from the first step to the first token, decode from there")
{
    CHECK(prefill_rate(an_answer()) == doctest::Approx(500));
    CHECK(decode_rate(an_answer()) == doctest::Approx(100));
}

TEST_CASE("an answer without tokens has no speed")
{
    summary s;
    s.prompt_tokens = 100;
    CHECK(prefill_rate(s) == 0);
    CHECK(decode_rate(s) == 0);
    s = an_answer();
    s.generated_tokens = 1;
    CHECK(decode_rate(s) == 0);
}

TEST_CASE("the statistics name tokens, speed, time to the first token and memory")
{
    engine_info info;
    info.context = 2048;
    info.device = "a processor";
    info.memory.total = 300 << 20;
    info.memory.memory = 1 << 30;
    info.memory.kv_bytes = 100 << 20;
    engine_stats now;
    now.pages = 128;
    now.free_pages = 100;
    totals all;
    all.add(an_answer());
    all.add(an_answer());
    auto const text = statistics(an_answer(), all, info, now, 200 << 20);
    for (auto const* part : {"prompt 100 tokens, prefill 500.0 tok/s", "answer 51 tokens, decode 100.0 tok/s",
                             "first token after 300.0 ms", "2 answers", "prompts 200 tokens", "answers 102 tokens",
                             "2048 tokens", "151 used", "28 of 128 pages", "resident", "a processor"})
        CHECK_MESSAGE(text.find(part) != std::string::npos, part, " is not in\n", text);
    CHECK(text.find(human_bytes(info.memory.kv_bytes)) != std::string::npos);
}

TEST_CASE("before the first answer the statistics have no speed")
{
    engine_info info;
    auto const text = statistics(std::nullopt, {}, info, {}, std::nullopt);
    CHECK(text.find("last answer") == std::string::npos);
    CHECK(text.find("resident") == std::string::npos);
    CHECK(text.find("all 0 answers") != std::string::npos);
}

TEST_CASE("the resident set of this process is known on this system")
{
    auto const resident = resident_bytes();
    REQUIRE(resident);
    CHECK(*resident > 1 << 20);
}
