#include <plait/apps/inspect/perplexity.hpp>

#include <plait/engine/engine.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/engine_fixture.hpp>
#include <plait/tests/support/failure_of.hpp>
#include <plait/tests/support/model_probe.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

using namespace plait;
using namespace plait::test;
using inspecting::perplexity;

namespace {

/// -log p of each token of the second half of a window but the first of that half, from the logits.
task<std::vector<double>> surprises(runtime& rt, std::filesystem::path model, std::vector<std::int32_t> window)
{
    model_probe::options how(std::move(model));
    how.positions = static_cast<std::int64_t>(window.size());
    auto const logits = co_await logits_of(rt, how, window, 0, 1);
    std::vector<double> out;
    for (auto i = window.size() / 2; i + 1 < window.size(); ++i) {
        double sum = 0;
        auto const* row = logits.data() + i * 320;
        for (std::size_t id = 0; id < 320; ++id)
            sum += std::exp(double(row[id]) - double(row[window[i + 1]]));
        out.push_back(std::log(sum));
    }
    co_return out;
}

} // namespace

TEST_CASE("windows begin with the begin token, and what does not fill one is left out")
{
    perplexity const all({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 5, 99);
    CHECK(all.windows() == 2);
    CHECK(all.window(0) == std::vector<std::int32_t>{99, 2, 3, 4, 5});
    CHECK(all.window(1) == std::vector<std::int32_t>{99, 7, 8, 9, 10});
    CHECK(all.first() == 3);
    CHECK(perplexity({1, 2, 3, 4}, 4, std::nullopt).window(0) == std::vector<std::int32_t>{1, 2, 3, 4});
    check_failure([] { perplexity({1, 2, 3}, 4, std::nullopt); }, errc::invalid_argument, {"3 tokens", "window of 4"});
}

TEST_CASE("the second half of each window counts")
{
    perplexity all(std::vector<std::int32_t>(12, 1), 6, std::nullopt);
    std::vector<float> const window{-100, -100, -100, -1, -3}; // of the tokens 1 to 5; 4 and 5 count
    all.add(window);
    all.add(window);
    CHECK(all.counted() == 4);
    CHECK(all.value() == doctest::Approx(std::exp(2.0)));
    CHECK(all.deviation() == doctest::Approx(std::exp(2.0) * std::sqrt(1.0 / 3)));
}

CO_TEST_CASE("a text's perplexity is what the logits say, and each token that counts is told")
{
    tiny_file model;
    std::string text;
    for (int i = 0; i < 60; ++i)
        text += "word " + std::to_string(i * i) + ", ";
    inspecting::settings how;
    how.model = model.path();
    how.context = 64;
    how.per_token = true;
    how.threads = 1;
    std::string said;
    std::function<void(std::string const&)> hear = [&](std::string const& more) { said += more; };
    co_await inspecting::score_text(rt, how, text, hear);

    auto running = co_await open(rt, tiny_engine(model.path()));
    auto const info = running.info();
    co_await running.close();
    auto ids = info.text->encode(text, {true, false});
    auto const begin = info.text->adds_bos() ? info.text->bos() : std::nullopt;
    perplexity const all(ids, 64, begin);
    REQUIRE(all.windows() >= 5);
    std::vector<double> expected;
    for (std::size_t i = 0; i < all.windows(); ++i) {
        auto more = co_await surprises(rt, model.path(), all.window(i));
        expected.insert(expected.end(), more.begin(), more.end());
    }
    std::istringstream lines(said);
    std::string line;
    double sum = 0, worst = 0;
    for (auto const surprise : expected) {
        REQUIRE(std::getline(lines, line));
        std::istringstream fields(line);
        std::size_t place = 0;
        std::int32_t id = 0;
        double logprob = 0;
        fields >> place >> id >> logprob;
        CHECK(id == ids.at(place));
        worst = std::max(worst, std::fabs(logprob + surprise));
        sum += surprise;
    }
    CHECK(worst < 1e-4);
    REQUIRE(std::getline(lines, line));
    auto const found = std::stod(line.substr(std::string("perplexity ").size()));
    CHECK(found == doctest::Approx(std::exp(sum / double(expected.size()))).epsilon(1e-4));
    CHECK(line.find(std::to_string(all.windows()) + " windows of 64") != line.npos);
    CHECK(!std::getline(lines, line));
}
