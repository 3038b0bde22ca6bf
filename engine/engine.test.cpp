#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/engine/engine.hpp>
#include <plait/engine/policies/ordered.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>

using namespace plait;
using namespace plait::test;

CO_TEST_CASE("a request is answered and the engine gives everything back")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto answer = co_await collect_from(running, ask_for("hello", 20));
    CHECK(answer.tokens.size() == 20);
    CHECK(answer.result.choices[0].finish == finish_reason::length);
    CHECK(answer.result.generated_tokens == 20);
    CHECK(answer.result.prompt_tokens > 0);
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("a request's tokens and log-probabilities do not depend on batch, chunks, threads or instruction set")
{
    tiny_model_options shape;
    shape.weights = ggml_type::q4_1;
    tiny_file model(shape);
    std::vector<request> requests;
    for (int i = 0; i < 6; ++i) {
        auto r = ask_for(std::string(static_cast<std::size_t>(3 + 29 * i), static_cast<char>('a' + i)) + " tail", 12);
        r.sampling.temperature = i % 2 == 0 ? 0.0f : 0.9f;
        r.sampling.seed = 100 + static_cast<std::uint64_t>(i);
        r.logprobs = 4;
        requests.push_back(r);
    }
    std::vector<collected> alone;
    {
        auto running = co_await open(rt, tiny_engine(model.path()));
        for (auto const& r : requests) {
            auto one = co_await collect_from(running, r);
            alone.push_back(std::move(one));
        }
        co_await running.close();
    }
    struct variant {
        unsigned threads;
        std::int64_t step_tokens;
        host::isa set;
    };
    std::vector<variant> variants;
    for (auto set : host::available_isas())
        for (auto tokens : {std::int64_t(1), std::int64_t(7), std::int64_t(64), std::int64_t(512)})
            variants.push_back({1 + static_cast<unsigned>(variants.size()) % 3, tokens, set});
    for (auto const& v : variants) {
        CAPTURE(v.threads);
        CAPTURE(v.step_tokens);
        CAPTURE(name(v.set));
        auto options = tiny_engine(model.path());
        options.threads = v.threads;
        options.step_tokens = v.step_tokens;
        options.instruction_set = v.set;
        auto running = co_await open(rt, std::move(options));
        auto together = co_await collect_together(running, requests);
        for (std::size_t i = 0; i < requests.size(); ++i)
            CHECK(together[i] == alone[i]);
        co_await running.close();
    }
}

CO_TEST_CASE("preempted requests give the tokens that they would have given undisturbed")
{
    tiny_file model;
    std::vector<request> requests;
    for (int i = 0; i < 8; ++i) {
        auto r = ask_for("prompt number " + std::to_string(i), 60);
        r.sampling.temperature = 0.8f;
        r.sampling.seed = static_cast<std::uint64_t>(i);
        r.sampling.frequency_penalty = 0.3f;
        r.sampling.repetition_penalty = 1.1f;
        r.logprobs = 0;
        requests.push_back(r);
    }
    std::vector<collected> alone;
    auto undisturbed = co_await open(rt, tiny_engine(model.path()));
    for (auto const& r : requests) {
        auto one = co_await collect_from(undisturbed, r);
        alone.push_back(std::move(one));
    }
    co_await undisturbed.close();

    for (auto admit : {admission::overcommit, admission::reserve}) {
        auto options = tiny_engine(model.path());
        options.kv_tokens = 16 * 17; // one request of the whole context, and little more
        options.admit = admit;
        auto running = co_await open(rt, std::move(options));
        auto together = co_await collect_together(running, requests);
        for (std::size_t i = 0; i < requests.size(); ++i)
            CHECK(together[i] == alone[i]);
        auto stats = co_await running.stats();
        CHECK((stats.preemptions > 0) == (admit == admission::overcommit));
        std::int64_t told = 0;
        for (auto const& one : together)
            told += one.result.preemptions;
        CHECK(told == stats.preemptions);
        co_await drained(running);
        co_await running.close();
    }
}

CO_TEST_CASE("choices share the prompt, differ in their draws and equal the choices of another run")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto what = ask_for("once upon a time, in a land", 24);
    what.choices = 4;
    what.sampling.temperature = 1.0f;
    what.sampling.seed = 5;
    auto first = co_await collect_from(running, what);
    auto again = co_await collect_from(running, what);
    CHECK(first == again);
    CHECK(first.of_choice(0) != first.of_choice(1));
    CHECK(first.of_choice(2) != first.of_choice(3));
    auto single = what;
    single.choices = 1;
    auto alone = co_await collect_from(running, single);
    CHECK(alone.of_choice(0) == first.of_choice(0));
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("a cancelled request ends with what it had, and its pages come back")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto answer = co_await running.submit(ask_for("hello", 200));
    auto first = co_await answer.next();
    REQUIRE(first.has_value());
    answer.cancel();
    for (;;) {
        auto more = co_await answer.next();
        if (!more) break;
    }
    CHECK(answer.result().choices[0].finish == finish_reason::cancelled);
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("a generation that is dropped cancels its request")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    {
        auto dropped = co_await running.submit(ask_for("hello", 200));
        auto first = co_await dropped.next();
        CHECK(first.has_value());
    }
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("a reader that takes nothing stops its own sequence and no other")
{
    tiny_file model;
    auto options = tiny_engine(model.path());
    options.unread_pieces = 4;
    auto running = co_await open(rt, std::move(options));
    auto slow = co_await running.submit(ask_for("slow", 150));
    auto quick = co_await collect_from(running, ask_for("quick", 100));
    CHECK(quick.tokens.size() == 100);
    auto rest = co_await collect(std::move(slow));
    CHECK(rest.tokens.size() == 150);
    auto alone = co_await collect_from(running, ask_for("slow", 150));
    CHECK(alone == rest);
    co_await running.close();
}

CO_TEST_CASE("a request that can never fit is refused with the numbers, and others go on")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto outcome = co_await as_result(running.submit(ask_for(std::string(400, 'x'), 5)));
    CHECK(outcome.error() == errc::never_fits);
    auto ok = co_await collect_from(running, ask_for("fits", 5));
    CHECK(ok.tokens.size() == 5);
    co_await running.close();
}

CO_TEST_CASE("a bad parameter fails its own request and names itself")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    struct wrong {
        char const* name; ///< and what of the error's text tells it from others of the same parameter
        std::function<void(request&)> make;
    };
    std::vector<wrong> const all = {
        {"temperature", [](request& r) { r.sampling.temperature = std::nanf(""); }},
        {"temperature", [](request& r) { r.sampling.temperature = -1; }},
        {"top_k", [](request& r) { r.sampling.top_k = -1; }},
        {"top_p", [](request& r) { r.sampling.top_p = 0; }},
        {"top_p", [](request& r) { r.sampling.top_p = 1.5f; }},
        {"min_p", [](request& r) { r.sampling.min_p = -0.1f; }},
        {"repetition_penalty", [](request& r) { r.sampling.repetition_penalty = 0; }},
        {"presence_penalty", [](request& r) { r.sampling.presence_penalty = 3; }},
        {"frequency_penalty", [](request& r) { r.sampling.frequency_penalty = -3; }},
        {"temperature: inf", [](request& r) { r.sampling.temperature = HUGE_VALF; }},
        {"top_p: nan", [](request& r) { r.sampling.top_p = std::nanf(""); }},
        {"min_p: nan", [](request& r) { r.sampling.min_p = std::nanf(""); }},
        {"repetition_penalty: nan", [](request& r) { r.sampling.repetition_penalty = std::nanf(""); }},
        {"presence_penalty: nan", [](request& r) { r.sampling.presence_penalty = std::nanf(""); }},
        {"frequency_penalty: nan", [](request& r) { r.sampling.frequency_penalty = std::nanf(""); }},
        {"logit_bias: token 999999", [](request& r) { r.sampling.logit_bias = {{999999, 1.0f}}; }},
        {"logit_bias: token -1", [](request& r) { r.sampling.logit_bias = {{-1, 1.0f}}; }},
        {"logit_bias: nan", [](request& r) { r.sampling.logit_bias = {{1, std::nanf("")}}; }},
        {"logit_bias: -101", [](request& r) { r.sampling.logit_bias = {{1, -101.0f}}; }},
        {"logit_bias: 100000 entries", [](request& r) { r.sampling.logit_bias.assign(100'000, {1, 1.0f}); }},
        {"choices: 0", [](request& r) { r.choices = 0; }},
        {"choices: 65", [](request& r) { r.choices = 65; }},
        {"max_tokens: -1", [](request& r) { r.max_tokens = -1; }},
        {"stop[0]: empty", [](request& r) { r.stop = {""}; }},
        {"stop[1]: not UTF-8", [](request& r) { r.stop = {"a", "\xff"}; }},
        {"stop: more than 64", [](request& r) { r.stop.assign(65, "a"); }},
        {"stop: a string of 4097 bytes", [](request& r) { r.stop = {std::string(4097, 'a')}; }},
        {"stop_tokens: token -1", [](request& r) { r.stop_tokens = {-1}; }},
        {"stop_tokens: token 999999", [](request& r) { r.stop_tokens = {999999}; }},
        {"stop_tokens: 100000 entries", [](request& r) { r.stop_tokens.assign(100'000, 1); }},
        {"logprobs: 21", [](request& r) { r.logprobs = 21; }},
        {"logprobs: -1", [](request& r) { r.logprobs = -1; }},
        {"timeout", [](request& r) { r.timeout = duration::zero(); }},
        {"timeout", [](request& r) { r.timeout = duration(-1); }},
        {"tokens: 999999", [](request& r) { r.tokens = {1, 2, 999999}; }},
        {"tokens: -1", [](request& r) { r.tokens = {1, -1}; }},
        {"prompt", [](request& r) { r.text.clear(); }},
        {"messages[0].content: not valid UTF-8", [](request& r) { r.messages = {{"user", "\xc3"}}; }},
        {"messages[1].role: not valid UTF-8", [](request& r) { r.messages = {{"user", "a"}, {"\xff", "b"}}; }},
    };
    for (auto const& one : all) {
        CAPTURE(one.name);
        auto what = ask_for("hello", 3);
        one.make(what);
        auto outcome = co_await as_result(running.submit(what));
        CHECK(outcome.error() == errc::invalid_argument);
        try {
            static_cast<void>(std::move(outcome).value());
        } catch (error const& e) {
            CHECK(std::string(e.what()).find(one.name) != std::string::npos);
        }
    }
    auto ok = co_await collect_from(running, ask_for("hello", 3));
    CHECK(ok.tokens.size() == 3);
    co_await running.close();
}

CO_TEST_CASE("a full queue refuses, and a closed engine refuses for good")
{
    tiny_file model;
    auto options = tiny_engine(model.path());
    options.queue = 2;
    options.sequences = 1;
    auto running = co_await open(rt, std::move(options));
    std::vector<generation> taken;
    std::error_code refused;
    for (int i = 0; i < 8 && !refused; ++i) {
        auto outcome = co_await as_result(running.submit(ask_for("wait", 200)));
        refused = outcome.error();
        if (!refused) taken.push_back(std::move(outcome).value());
    }
    CHECK(refused == errc::overloaded);
    taken.clear();
    co_await running.close(false);
    auto late = co_await as_result(running.submit(ask_for("late", 1)));
    CHECK(late.error() == errc::closed);
}

CO_TEST_CASE("closing without draining cancels what runs")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto answer = co_await running.submit(ask_for("hello", 200));
    co_await running.close(false);
    auto rest = co_await collect(std::move(answer));
    CHECK(rest.result.choices[0].finish == finish_reason::cancelled);
}

CO_TEST_CASE("a stop string ends an answer and is never shown")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto plain = co_await collect_from(running, ask_for("stop here", 40));
    REQUIRE(plain.text.size() > 6);
    // A middle part of the text that it gives anyway; whole characters only.
    auto at = plain.text.size() / 2;
    while (at < plain.text.size() && (static_cast<unsigned char>(plain.text[at]) & 0xc0) == 0x80)
        ++at;
    auto end = at + 1;
    while (end < plain.text.size() && (static_cast<unsigned char>(plain.text[end]) & 0xc0) == 0x80)
        ++end;
    auto stop_text = plain.text.substr(at, end - at);
    auto what = ask_for("stop here", 40);
    what.stop = {stop_text};
    auto stopped = co_await collect_from(running, what);
    CHECK(stopped.text == plain.text.substr(0, plain.text.find(stop_text)));
    CHECK(stopped.result.choices[0].finish == finish_reason::stop);
    CHECK(stopped.result.choices[0].stopped_by == stop_text);
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("a policy that breaks a rule fails the engine's requests with its name on it")
{
    tiny_file model;
    auto options = tiny_engine(model.path());
    options.schedule = make_policy([](snapshot const& now) {
        step_plan plan;
        for (auto const& s : now.sequences)
            plan.entries.push_back({s.id, s.pending + 1});
        return plan;
    });
    auto running = co_await open(rt, std::move(options));
    auto answer = co_await collect_from(running, ask_for("hello", 5));
    CHECK(answer.result.choices[0].finish == finish_reason::failed);
    CHECK(answer.result.failure == errc::bad_plan);
    auto later = co_await as_result(running.submit(ask_for("hello", 5)));
    CHECK(later.error() == errc::engine_failed);
    co_await running.close();
}

CO_TEST_CASE("an engine whose handles are gone closes itself")
{
    tiny_file model;
    generation answer;
    {
        auto running = co_await open(rt, tiny_engine(model.path()));
        answer = co_await running.submit(ask_for("hello", 200));
    }
    auto rest = co_await collect(std::move(answer));
    CHECK(rest.result.choices[0].finish != finish_reason::failed);
}

CO_TEST_CASE("choices that fill the memory exactly are admitted and go on to their end")
{
    tiny_file model;
    auto options = tiny_engine(model.path());
    options.admit = admission::reserve;
    options.context = 64;
    options.kv_tokens = 80; // 5 pages: 3 for each choice, of which the prompt's first is shared
    auto running = co_await open(rt, std::move(options));
    auto what = ask_for(std::string(20, 'x'), 28);
    what.choices = 2;
    what.sampling.temperature = 1;
    what.sampling.seed = 3;
    auto answer = co_await collect_from(running, what);
    CHECK(answer.result.prompt_tokens > 16);
    CHECK(answer.result.prompt_tokens + 28 > 32);
    for (auto const& choice : answer.result.choices) {
        CHECK(choice.finish == finish_reason::length);
        CHECK(choice.tokens == 28);
    }
    co_await drained(running);
    co_await running.close();
}

TEST_CASE("a chat template that asks for the date gets the request's, or the clock's")
{
    using namespace std::chrono_literals;
    auto file = tiny_model();
    file.set("tokenizer.chat_template", "{{ strftime_now('%d %b %Y') }} {{ messages[0].content }}");
    tiny_file model(file);
    manual_clock clock(time_point(24h * 40));
    runtime_options options;
    options.clock = &clock;
    runtime rt(options);
    auto body = [&]() -> task<> {
        auto running = co_await open(rt, tiny_engine(model.path()));
        auto const& text = *running.info().text;
        auto what = ask_for("", 3);
        what.messages.push_back({"user", "hello"});
        CHECK(text.decode(running.prompt_of(what)) == "10 Feb 1970 hello");
        auto today = co_await collect_from(running, what);
        what.date = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);
        auto then = co_await collect_from(running, what);
        auto plain = co_await collect_from(running, ask_for("01 Mar 2026 hello", 3));
        CHECK(then == plain);
        plain = co_await collect_from(running, ask_for("10 Feb 1970 hello", 3));
        CHECK(today == plain);
        co_await running.close();
    };
    rt.run(body());
}

TEST_CASE("a timeout ends an answer when the clock says so")
{
    manual_clock clock;
    runtime_options options;
    options.clock = &clock;
    run_test(
        [&clock](runtime& rt) -> task<> {
            tiny_file model;
            auto settings = tiny_engine(model.path());
            settings.unread_pieces = 2; // it can't end by itself: nobody reads it
            auto running = co_await open(rt, std::move(settings));
            auto what = ask_for("hello", 200);
            what.timeout = std::chrono::seconds(5);
            auto answer = co_await running.submit(what);
            auto first = co_await answer.next();
            CHECK(first.has_value());
            clock.advance(std::chrono::seconds(6));
            auto rest = co_await collect(std::move(answer));
            CHECK(rest.result.choices[0].finish == finish_reason::deadline);
            co_await drained(running);
            co_await running.close();
        },
        options);
}

CO_TEST_CASE("requests that come, go and are cancelled at random leave nothing behind and change nobody's tokens")
{
    tiny_model_options shape;
    shape.weights = ggml_type::q8_0;
    tiny_file model(shape);
    auto steady = ask_for("the steady one", 80);
    steady.sampling.temperature = 0.7f;
    steady.sampling.seed = 3;
    steady.logprobs = 2;
    collected expected;
    {
        auto running = co_await open(rt, tiny_engine(model.path()));
        expected = co_await collect_from(running, steady);
        co_await running.close();
    }
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        CAPTURE(seed);
        auto options = tiny_engine(model.path());
        options.threads = 2;
        options.step_tokens = 40;
        if (seed % 2 == 0) options.schedule = std::make_shared<shortest_prefill_first>();
        auto running = co_await open(rt, std::move(options));
        collected got;
        auto body = [&](scope& all) -> task<> {
            all.start(collect_into(running, steady, got));
            for (int i = 0; i < 24; ++i)
                all.start(visit(running, seed * 1000 + static_cast<std::uint64_t>(i)));
            co_return;
        };
        co_await with_scope(body);
        CHECK(got == expected);
        co_await drained(running);
        co_await running.close();
    }
}
