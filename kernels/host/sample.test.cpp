#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/gumbel.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <map>
#include <numeric>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

namespace {

float const not_a_number = std::numeric_limits<float>::quiet_NaN();
float const infinity = std::numeric_limits<float>::infinity();

struct drawn {
    std::int32_t token = -7;
    float logprob = 0;
    buffer<token_logprob> top;
};

drawn draw(isa set, buffer<float> logits, sample_params const& params, std::size_t top_stride = 0)
{
    drawn d;
    d.top.resize(top_stride);
    sample_args args;
    args.logits = logits.data();
    args.rows = 1;
    args.vocabulary = static_cast<std::int64_t>(logits.size());
    args.stride = args.vocabulary;
    args.params = &params;
    args.tokens = &d.token;
    args.logprobs = &d.logprob;
    args.top = top_stride > 0 ? d.top.data() : nullptr;
    args.top_stride = static_cast<std::int64_t>(top_stride);
    run_all(attention_ops(set).sample, args);
    return d;
}

bool same(drawn const& a, drawn const& b)
{
    if (a.token != b.token || std::memcmp(&a.logprob, &b.logprob, 4) != 0 || a.top.size() != b.top.size()) return false;
    for (std::size_t i = 0; i < a.top.size(); ++i)
        if (a.top[i].token != b.top[i].token || std::memcmp(&a.top[i].logprob, &b.top[i].logprob, 4) != 0) return false;
    return true;
}

// Tokens by logit, ties by id: the definition, by sorting.
std::vector<std::int32_t> ranking(buffer<float> const& logits)
{
    std::vector<std::int32_t> order;
    for (std::size_t t = 0; t < logits.size(); ++t)
        if (logits[t] > -infinity) order.push_back(static_cast<std::int32_t>(t));
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
        float const x = logits[static_cast<std::size_t>(a)];
        float const y = logits[static_cast<std::size_t>(b)];
        return x != y ? x > y : a < b;
    });
    return order;
}

// The whole sampler again, plainly: sorts, filters a list, and takes the best score.
std::int32_t expected_token(buffer<float> logits, sample_params const& p)
{
    auto at = [&](std::int32_t token) -> float& { return logits[static_cast<std::size_t>(token)]; };
    for (int i = 0; i < p.seen_count; ++i) {
        auto [token, count, in_prompt] = p.seen[i];
        float& l = at(token);
        if (count > 0 || in_prompt) l = l > 0 ? l / p.repetition_penalty : l * p.repetition_penalty;
        if (count > 0) l = l - p.frequency_penalty * static_cast<float>(count) - p.presence_penalty;
    }
    for (int i = 0; i < p.bias_count; ++i)
        at(p.biases[i].token) += p.biases[i].bias;
    auto kept = ranking(logits);
    if (p.temperature == 0) return kept[0];
    float const max = at(kept[0]);
    float const inverse = 1 / p.temperature;
    auto weight = [&](std::int32_t token) {
        return host::exp((at(token) - max) * (p.order == filter_order::temperature_first ? inverse : 1.0f));
    };
    if (p.top_k > 0 && static_cast<std::size_t>(p.top_k) < kept.size()) kept.resize(static_cast<std::size_t>(p.top_k));
    if (p.top_p < 1) {
        std::int64_t total = 0;
        for (auto token : kept)
            total += weight_units(weight(token));
        double const wanted = std::max(1.0, std::ceil(static_cast<double>(total) * static_cast<double>(p.top_p)));
        std::int64_t sum = 0;
        std::size_t count = 0;
        while (count < kept.size() && static_cast<double>(sum) < wanted)
            sum += weight_units(weight(kept[count++]));
        kept.resize(count);
    }
    while (kept.size() > 1 && weight(kept.back()) < p.min_p)
        kept.pop_back();
    std::sort(kept.begin(), kept.end());
    std::int32_t best = -1;
    float best_score = 0;
    for (auto token : kept) {
        float score = (at(token) - max) * inverse + gumbel(token_bits(p, token));
        if (best < 0 || score > best_score) {
            best = token;
            best_score = score;
        }
    }
    return best;
}

std::vector<sample_params> settings()
{
    std::vector<sample_params> all;
    for (auto order : {filter_order::temperature_first, filter_order::temperature_last})
        for (float temperature : {0.0f, 0.3f, 0.8f, 2.0f})
            for (std::int32_t top_k : {0, 1, 40, 100000})
                for (float top_p : {1.0f, 0.95f, 0.3f, 0.0f})
                    for (float min_p : {0.0f, 0.05f, 1.0f}) {
                        sample_params p;
                        p.order = order;
                        p.temperature = temperature;
                        p.top_k = top_k;
                        p.top_p = top_p;
                        p.min_p = min_p;
                        p.seed = 0x123456789abcdef0u + all.size();
                        p.sequence = all.size() % 3;
                        p.position = static_cast<std::int32_t>(all.size());
                        all.push_back(p);
                    }
    return all;
}

// Distributions of several kinds: peaked, flat, with ties, with banned tokens, smaller than a block.
std::vector<buffer<float>> rows()
{
    std::vector<buffer<float>> all;
    all.push_back(random_floats(1, 1));
    all.push_back(random_floats(37, 2, 3));
    all.push_back(random_floats(1000, 3, 1));
    all.push_back(random_floats(1003, 4, 6));
    all.push_back(buffer<float>(500, 0.0f));
    auto ties = random_floats(777, 5, 2);
    for (auto& l : ties)
        l = std::round(l);
    ties[5] = -0.0f;
    all.push_back(ties);
    auto banned = random_floats(300, 6, 2);
    for (std::size_t t = 0; t < banned.size(); ++t)
        if (t % 7 != 3) banned[t] = -infinity;
    all.push_back(banned);
    auto negative = random_floats(200, 7, 1);
    for (auto& l : negative)
        l -= 50;
    all.push_back(negative);
    return all;
}

} // namespace

TEST_CASE("Philox gives the numbers that its authors published")
{
    // Known answers of philox4x32-10 in the Random123 distribution.
    std::uint32_t zeros[4] = {};
    philox4x32(zeros, 0, 0);
    CHECK(zeros[0] == 0x6627e8d5u);
    CHECK(zeros[1] == 0xe169c58du);
    CHECK(zeros[2] == 0xbc57ac4cu);
    CHECK(zeros[3] == 0x9b00dbd8u);
    std::uint32_t pi[4] = {0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u};
    philox4x32(pi, 0xa4093822u, 0x299f31d0u);
    CHECK(pi[0] == 0xd16cfe09u);
    CHECK(pi[1] == 0x94fdccebu);
    CHECK(pi[2] == 0x5001e420u);
    CHECK(pi[3] == 0x24126ea1u);
}

TEST_CASE("Gumbel numbers are finite and never above the bound that the draw uses")
{
    CHECK(std::isfinite(gumbel(0)));
    CHECK(gumbel(0xffffffffu) < largest_gumbel);
    CHECK(gumbel(0xffffffffu) > 16.0f);
    CHECK(gumbel(0) < -2.8f);
}

TEST_CASE("the token is the one that sorting and filtering the whole vocabulary gives")
{
    for (auto const& logits : rows())
        for (auto const& p : settings())
            for (auto set : available_isas())
                REQUIRE(draw(set, logits, p).token == expected_token(logits, p));
}

TEST_CASE("penalties and biases change what is drawn, and raw log-probabilities stay")
{
    auto logits = random_floats(1000, 9, 2);
    std::vector<seen_token> seen;
    for (std::int32_t t = 0; t < 1000; t += 3)
        seen.push_back({t, t % 4, t % 2 == 0});
    token_bias const biases[] = {{7, 2.5f}, {9, -infinity}, {0, 1.0f}};
    auto plain = ranking(logits);
    double sum = 0;
    for (float l : logits)
        sum += std::exp(static_cast<double>(l));
    for (auto p : settings()) {
        p.repetition_penalty = 1.3f;
        p.presence_penalty = 0.5f;
        p.frequency_penalty = 0.25f;
        p.seen = seen.data();
        p.seen_count = static_cast<std::int32_t>(seen.size());
        p.biases = biases;
        p.bias_count = 3;
        p.top_logprobs = 5;
        auto first = draw(isa::scalar, logits, p, 8);
        CHECK(first.token == expected_token(logits, p));
        CHECK(first.logprob ==
              doctest::Approx(logits[static_cast<std::size_t>(first.token)] - std::log(sum)).epsilon(1e-5));
        for (std::size_t i = 0; i < 8; ++i) {
            CHECK(first.top[i].token == (i < 5 ? plain[i] : -1));
            if (i < 5)
                CHECK(first.top[i].logprob ==
                      doctest::Approx(logits[static_cast<std::size_t>(plain[i])] - std::log(sum)).epsilon(1e-5));
        }
        for (auto set : available_isas())
            REQUIRE(same(draw(set, logits, p, 8), first));
    }
}

TEST_CASE("repetition counts the prompt, presence and frequency only the output")
{
    buffer<float> logits = {2.0f, 1.9f, -1.0f, -1.1f};
    seen_token const in_prompt[] = {{0, 0, true}};
    seen_token const in_output[] = {{0, 2, false}};
    auto token = [&](seen_token const* seen, float repetition, float presence, float frequency) {
        sample_params p;
        p.seen = seen;
        p.seen_count = 1;
        p.repetition_penalty = repetition;
        p.presence_penalty = presence;
        p.frequency_penalty = frequency;
        return draw(best_isa(), logits, p).token;
    };
    CHECK(token(in_prompt, 1, 0, 0) == 0);
    CHECK(token(in_prompt, 1.1f, 0, 0) == 1);
    CHECK(token(in_prompt, 1, 5, 5) == 0);
    CHECK(token(in_output, 1.1f, 0, 0) == 1);
    CHECK(token(in_output, 1, 0.2f, 0) == 1);
    CHECK(token(in_output, 1, 0, 0.06f) == 1);
    CHECK(token(in_output, 1, 0, 0.04f) == 0);
    logits = {-2.0f, -2.1f, -2.2f, -2.15f};
    CHECK(token(in_prompt, 1.2f, 0, 0) == 1); // a negative logit is multiplied
}

TEST_CASE("rows are drawn apart: order, batch and workers change nothing")
{
    constexpr std::size_t count = 9;
    constexpr std::size_t vocabulary = 500;
    auto logits = random_floats(count * vocabulary, 21, 2);
    std::vector<sample_params> params(count);
    for (std::size_t r = 0; r < count; ++r) {
        params[r].temperature = 0.5f + 0.1f * static_cast<float>(r);
        params[r].top_k = static_cast<std::int32_t>(r % 3 * 20);
        params[r].top_p = r % 2 ? 0.9f : 1.0f;
        params[r].position = static_cast<std::int32_t>(r);
        params[r].seed = 5;
        params[r].top_logprobs = r % 2 ? 3 : -1;
    }
    for (auto set : available_isas())
        for (unsigned workers : {1u, 2u, 4u, 20u}) {
            auto used = logits;
            std::vector<std::int32_t> tokens(count);
            std::vector<float> logprobs(count);
            std::vector<token_logprob> top(count * 3);
            sample_args args;
            args.logits = used.data();
            args.rows = count;
            args.vocabulary = vocabulary;
            args.stride = vocabulary;
            args.params = params.data();
            args.tokens = tokens.data();
            args.logprobs = logprobs.data();
            args.top = top.data();
            args.top_stride = 3;
            run_all(attention_ops(set).sample, args, workers);
            for (std::size_t r = 0; r < count; ++r) {
                buffer<float> row(logits.begin() + static_cast<std::ptrdiff_t>(r * vocabulary),
                                  logits.begin() + static_cast<std::ptrdiff_t>((r + 1) * vocabulary));
                auto alone = draw(isa::scalar, row, params[r], 3);
                CHECK(alone.token == tokens[r]);
                CHECK(std::isnan(logprobs[r]) == (params[r].top_logprobs < 0));
                if (params[r].top_logprobs >= 0) CHECK(logprobs[r] == alone.logprob);
                for (std::size_t i = 0; i < 3; ++i)
                    CHECK(top[r * 3 + i].token == alone.top[i].token);
            }
        }
}

TEST_CASE("the draw follows the distribution")
{
    buffer<float> logits(100, -infinity);
    logits[3] = std::log(0.5f);
    logits[50] = std::log(0.3f);
    logits[99] = std::log(0.2f);
    for (float temperature : {1.0f, 2.0f}) {
        std::map<std::int32_t, int> counts;
        constexpr int draws = 20000;
        for (int i = 0; i < draws; ++i) {
            sample_params p;
            p.temperature = temperature;
            p.seed = 77;
            p.position = i;
            ++counts[draw(best_isa(), logits, p).token];
        }
        double weights[3];
        double const probabilities[3] = {0.5, 0.3, 0.2};
        for (int i = 0; i < 3; ++i)
            weights[i] = std::pow(probabilities[i], 1 / static_cast<double>(temperature));
        double const total = weights[0] + weights[1] + weights[2];
        std::int32_t const tokens[3] = {3, 50, 99};
        for (int i = 0; i < 3; ++i) {
            double p = weights[i] / total;
            double deviation = std::sqrt(draws * p * (1 - p));
            CHECK(std::fabs(counts[tokens[i]] - draws * p) < 5 * deviation);
        }
        CHECK(counts.size() == 3);
    }
}

TEST_CASE("seed, sequence and position each change the draw")
{
    buffer<float> logits(4096, 0.0f);
    sample_params p;
    p.temperature = 1;
    auto token = draw(best_isa(), logits, p).token;
    auto other_seed = p;
    other_seed.seed = std::uint64_t{1} << 40;
    auto other_sequence = p;
    other_sequence.sequence = std::uint64_t{1} << 33;
    auto other_position = p;
    other_position.position = 1;
    for (auto const& other : {other_seed, other_sequence, other_position})
        CHECK(draw(best_isa(), logits, other).token != token);
    CHECK(draw(best_isa(), logits, p).token == token);
}

TEST_CASE("logits that can't be sampled give token -1")
{
    for (auto set : available_isas())
        for (std::size_t where : {0u, 63u, 64u, 129u})
            for (float temperature : {0.0f, 1.0f}) {
                sample_params p;
                p.temperature = temperature;
                p.top_logprobs = 2;
                for (float bad : {not_a_number, infinity}) {
                    auto logits = random_floats(130, 4);
                    logits[where] = bad;
                    auto d = draw(set, logits, p, 2);
                    CHECK(d.token == -1);
                    CHECK(std::isnan(d.logprob));
                    CHECK(d.top[0].token == -1);
                }
                CHECK(draw(set, buffer<float>(130, -infinity), p).token == -1);
                token_bias const bias[] = {{5, not_a_number}};
                p.biases = bias;
                p.bias_count = 1;
                CHECK(draw(set, random_floats(130, 4), p).token == -1);
            }
}

TEST_CASE("infinities of both signs in one block are no NaN")
{
    for (auto set : available_isas()) {
        buffer<float> logits(64, 1.0f);
        logits[1] = -infinity;
        logits[17] = 3e38f;
        logits[33] = 3e38f;
        logits[49] = -infinity;
        CHECK(draw(set, logits, {}).token == 17);
    }
}

TEST_CASE("ids outside the vocabulary are ignored, and extreme parameters are harmless")
{
    auto logits = random_floats(200, 8, 2);
    seen_token const seen[] = {{-1, 1, true}, {200, 1, true}, {2147483647, 1, true}};
    token_bias const biases[] = {{-5, 100}, {1 << 30, 100}};
    sample_params p;
    p.seen = seen;
    p.seen_count = 3;
    p.biases = biases;
    p.bias_count = 2;
    p.repetition_penalty = 2;
    p.top_logprobs = 0;
    auto greedy = draw(best_isa(), logits, p).token;
    CHECK(greedy == ranking(logits)[0]);
    for (auto set : available_isas())
        for (float temperature : {1e-30f, -1.0f, not_a_number, 1e30f, infinity})
            for (float top_p : {-1.0f, -infinity, not_a_number, 2.0f}) {
                auto q = p;
                q.temperature = temperature;
                q.top_p = top_p;
                q.min_p = not_a_number;
                auto d = draw(set, logits, q, 1);
                CHECK(d.token >= 0);
                CHECK(d.token < 200);
                if (!(temperature > 1)) CHECK(d.token == greedy);
                CHECK(d.token == draw(isa::scalar, logits, q, 1).token);
            }
}

TEST_CASE("log-probabilities agree with F64 and have the same bits in every instruction set")
{
    for (auto const& logits : rows()) {
        sample_params p;
        p.top_logprobs = 64;
        auto first = draw(isa::scalar, logits, p, 64);
        double max = *std::max_element(logits.begin(), logits.end());
        double sum = 0;
        for (float l : logits)
            sum += std::exp(l - max);
        auto order = ranking(logits);
        for (std::size_t i = 0; i < 64; ++i) {
            CHECK(first.top[i].token == (i < order.size() ? order[i] : -1));
            if (i < order.size()) {
                double expected = logits[static_cast<std::size_t>(order[i])] - max - std::log(sum);
                CHECK(std::fabs(first.top[i].logprob - expected) < 1e-6 * std::max(1.0, std::fabs(expected)));
            }
        }
        for (auto set : available_isas())
            CHECK(same(draw(set, logits, p, 64), first));
    }
}
