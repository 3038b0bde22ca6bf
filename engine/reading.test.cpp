#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/engine/async.hpp>
#include <plait/engine/engine.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/model_probe.hpp>

using namespace plait;
using namespace plait::test;

namespace {

std::vector<std::int32_t> some_tokens(std::size_t count, std::uint32_t seed = 1)
{
    std::vector<std::int32_t> out;
    std::minstd_rand random(seed);
    for (std::size_t i = 0; i < count; ++i)
        out.push_back(static_cast<std::int32_t>(random() % 320));
    return out;
}

request of(std::vector<std::int32_t> tokens)
{
    request what;
    what.tokens = std::move(tokens);
    return what;
}

/// The logits of all tokens, from one pass of the model by itself.
task<std::vector<float>> all_logits(runtime& rt, std::filesystem::path model, std::vector<std::int32_t> tokens)
{
    model_probe::options how(std::move(model));
    how.positions = static_cast<std::int64_t>(tokens.size());
    return logits_of(rt, std::move(how), std::move(tokens), 0, 1);
}

double log_probability(std::span<float const> logits, std::int32_t token)
{
    double sum = 0;
    for (auto const l : logits)
        sum += std::exp(static_cast<double>(l) - static_cast<double>(logits[static_cast<std::size_t>(token)]));
    return -std::log(sum);
}

task<> score_into(engine running, request what, std::vector<float>& out)
{
    out = co_await running.score(std::move(what));
}

task<> embed_into(engine running, request what, std::vector<float>& out)
{
    out = co_await running.embed(std::move(what));
}

} // namespace

CO_TEST_CASE("a score is the log-softmax of the logits before each token")
{
    tiny_file model;
    auto const tokens = some_tokens(150);
    auto logits = co_await all_logits(rt, model.path(), tokens);
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto scores = co_await running.score(of(tokens));
    REQUIRE(scores.size() == tokens.size() - 1);
    double worst = 0;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        auto const expected = log_probability(std::span(logits).subspan(i * 320, 320), tokens[i + 1]);
        worst = std::max(worst, std::fabs(static_cast<double>(scores[i]) - expected));
    }
    CHECK(worst < 1e-4);
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("scores and embeddings have the same bits whatever the chunks, the room for logits and what runs beside")
{
    tiny_file model;
    auto const tokens = some_tokens(200);
    std::vector<float> scores, embedding;
    for (std::int64_t step : {512, 200, 64, 7, 1}) {
        CAPTURE(step);
        auto options = tiny_engine(model.path());
        options.step_tokens = step;
        options.sequences = step == 64 ? 1 : 8;
        auto running = co_await open(rt, std::move(options));
        std::vector<float> again, mean, other;
        collected answer;
        auto body = [&](scope& all) -> task<> {
            all.start(collect_into(running, ask_for("something else", 30), answer));
            all.start(score_into(running, of(tokens), again));
            all.start(embed_into(running, of(tokens), mean));
            all.start(score_into(running, of(some_tokens(90, 2)), other));
            co_return;
        };
        co_await with_scope(body);
        if (scores.empty()) scores = again;
        if (embedding.empty()) embedding = mean;
        CHECK(again == scores);
        CHECK(mean == embedding);
        CHECK(answer.tokens.size() == 30);
        CHECK(other.size() == 89);
        co_await drained(running);
        co_await running.close();
    }
    CHECK(scores.size() == 199);
    CHECK(embedding.size() == 64);
}

CO_TEST_CASE("the score of an answer is what it was drawn with")
{
    tiny_file model;
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto what = of(some_tokens(20));
    what.max_tokens = 40;
    what.sampling.temperature = 0;
    what.ignore_end = true;
    what.logprobs = 0;
    auto answer = co_await collect_from(running, what);
    auto all = what.tokens;
    for (auto const& [choice, token] : answer.tokens)
        all.push_back(token.id);
    REQUIRE(all.size() == 60);
    auto scores = co_await running.score(of(all));
    for (std::size_t i = 0; i < 40; ++i)
        CHECK(scores[19 + i] == answer.tokens[i].second.logprob);
    co_await running.close();
}

CO_TEST_CASE("ranks and stages that sum in parts score as one device does")
{
    tiny_file model;
    auto const tokens = some_tokens(120);
    std::vector<float> scores, embedding;
    for (auto [tensor, pipeline] : {std::pair(1, 1), std::pair(2, 1), std::pair(1, 2), std::pair(2, 2)}) {
        CAPTURE(tensor);
        CAPTURE(pipeline);
        auto options = tiny_engine(model.path());
        options.sequences = 3; // two ranks have no equal parts of the rows
        options.step_tokens = 50;
        options.spread.tensor = tensor;
        options.spread.pipeline = pipeline;
        options.spread.sum_parts = 2;
        auto running = co_await open(rt, std::move(options));
        auto again = co_await running.score(of(tokens));
        auto mean = co_await running.embed(of(tokens));
        if (scores.empty()) scores = again;
        if (embedding.empty()) embedding = mean;
        CHECK(again == scores);
        CHECK(mean == embedding);
        co_await running.close();
    }
}

CO_TEST_CASE("an embedding is the state that the output matrix makes logits of")
{
    tiny_model_options shape;
    tiny_file model(shape);
    auto weights = tiny_model(shape).at("token_embd.weight").data; // F32, and the output matrix too
    auto const* matrix = reinterpret_cast<float const*>(weights.data());
    auto const tokens = some_tokens(30);
    auto logits = co_await all_logits(rt, model.path(), tokens);
    auto running = co_await open(rt, tiny_engine(model.path()));
    for (auto how : {pooling::mean, pooling::last, pooling::first}) {
        auto state = co_await running.embed(of(tokens), how);
        REQUIRE(state.size() == 64);
        double worst = 0;
        for (std::size_t id = 0; id < 320; ++id) {
            double made = 0, expected = 0;
            for (std::size_t c = 0; c < 64; ++c)
                made += double(matrix[id * 64 + c]) * double(state[c]);
            for (std::size_t row = 0; row < tokens.size(); ++row) {
                auto const counts = how == pooling::mean
                                        ? 1.0 / double(tokens.size())
                                        : double(row == (how == pooling::last ? tokens.size() - 1 : 0));
                expected += counts * double(logits[row * 320 + id]);
            }
            worst = std::max(worst, std::fabs(made - expected));
        }
        CHECK(worst < 1e-3);
    }
    auto state = co_await running.embed(of(tokens), pooling::last, true);
    double squares = 0;
    for (auto const x : state)
        squares += double(x) * double(x);
    CHECK(squares == doctest::Approx(1).epsilon(1e-6));
    co_await running.close();
}

CO_TEST_CASE("a prompt that is read may fill the context, and what preempts it changes no bit")
{
    tiny_file model;
    std::vector<float> alone;
    {
        auto running = co_await open(rt, tiny_engine(model.path()));
        alone = co_await running.score(of(some_tokens(256)));
        CHECK(alone.size() == 255);
        std::vector<std::int32_t> const one(1, 5), unknown(1, 320);
        auto nothing = co_await running.score(of(one));
        CHECK(nothing.empty());
        auto fails = co_await as_result(running.score(of(some_tokens(257))));
        CHECK(fails.error() == errc::never_fits);
        fails = co_await as_result(running.embed(of(unknown)));
        CHECK(fails.error() == errc::invalid_argument);
        co_await running.close();
    }
    auto options = tiny_engine(model.path());
    options.kv_tokens = 384;
    options.step_tokens = 32;
    auto running = co_await open(rt, std::move(options));
    std::vector<std::vector<float>> scores(4);
    std::vector<collected> answers(4);
    auto body = [&](scope& all) -> task<> {
        for (std::size_t i = 0; i < 4; ++i) {
            all.start(collect_into(running, ask_for("prompt number " + std::to_string(i), 60), answers[i]));
            all.start(score_into(running, of(some_tokens(256)), scores[i]));
        }
        co_return;
    };
    co_await with_scope(body);
    for (auto const& one : scores)
        CHECK(one == alone);
    co_await drained(running);
    co_await running.close();
}

CO_TEST_CASE("states that are no numbers fail the request that asked for them")
{
    auto broken = tiny_model();
    auto& norm = broken.at("output_norm.weight").data;
    auto const nan = std::numeric_limits<float>::quiet_NaN();
    std::copy_n(reinterpret_cast<std::byte const*>(&nan), sizeof nan, norm.begin());
    tiny_file model(broken);
    auto running = co_await open(rt, tiny_engine(model.path()));
    auto scored = co_await as_result(running.score(of(some_tokens(40))));
    CHECK(scored.error() == errc::engine_failed);
    auto embedded = co_await as_result(running.embed(of(some_tokens(40))));
    CHECK(embedded.error() == errc::engine_failed);
    co_await drained(running);
    co_await running.close();
    auto closed = co_await as_result(running.score(of(some_tokens(40))));
    CHECK(closed.error() == errc::closed);
}
