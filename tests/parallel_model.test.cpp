#include <plait/actors/runtime/runtime.hpp>
#include <plait/actors/simulation/simulation.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/nmse.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::test;

namespace {

std::vector<std::int32_t> some_tokens(std::size_t count, std::uint32_t seed, std::uint32_t vocabulary = 253)
{
    std::mt19937 random(seed);
    std::vector<std::int32_t> out(count);
    for (auto& token : out)
        token = static_cast<std::int32_t>(3 + random() % (vocabulary - 3));
    return out;
}

using passes = std::vector<std::vector<probe_chunk>>;

/// A prefill of two sequences, and a step that decodes one beside more of the other.
std::vector<passes> two_steps(std::uint32_t vocabulary = 253)
{
    std::vector<passes> out(2);
    auto a = some_tokens(23, 1, vocabulary), b = some_tokens(40, 2, vocabulary);
    out[0].resize(1);
    out[0][0].emplace_back(0, 0, a);
    out[0][0].emplace_back(1, 0, b, false);
    out[1].resize(1);
    out[1][0].emplace_back(0, 23, some_tokens(1, 3, vocabulary));
    out[1][0].emplace_back(1, 40, some_tokens(9, 4, vocabulary));
    return out;
}

/// The logits of every step, one after the other.
task<std::vector<float>> logits_of(runtime& rt, model_probe::options how, std::vector<passes> steps)
{
    auto probes = make_probes(rt, 2, how.spread.tensor);
    co_await load_probes(probes, how);
    std::vector<float> out;
    std::vector<stream_role> const one_lane(1, stream_role::compute);
    for (auto const& step : steps) {
        auto logits = co_await run_probes(probes, step, one_lane);
        for (auto const& pass : logits)
            out.insert(out.end(), pass.begin(), pass.end());
    }
    co_await stop_probes(probes);
    co_return out;
}

tiny_model_options eight_heads(ggml_type weights, std::uint32_t kv_heads)
{
    return {.width = 256, .heads = 8, .kv_heads = kv_heads, .ffn = 512, .vocabulary = 320, .weights = weights};
}

} // namespace

CO_TEST_CASE("with sums of as many parts every degree of tensor parallelism gives the bits of one device")
{
    for (auto weights : {ggml_type::f32, ggml_type::q4_1, ggml_type::q8_0, ggml_type::bf16})
        for (std::uint32_t kv_heads : {8u, 2u}) {
            temporary_file file(tiny_model_bytes(eight_heads(weights, kv_heads)));
            model_probe::options how(file.path());
            how.positions = 128;
            how.spread = {1, 1, 8};
            auto expected = co_await logits_of(rt, how, two_steps());
            for (std::int32_t tensor : {2, 4, 8}) {
                CAPTURE(tensor);
                how.spread.tensor = tensor;
                auto found = co_await logits_of(rt, how, two_steps());
                CHECK(found == expected);
            }
            how.spread = {};
            auto plain = co_await logits_of(rt, how, two_steps());
            CHECK(plain != expected); // another order of summation: the parts are there
        }
}

CO_TEST_CASE("weights in blocks of 256 are cut between them, mixed with others, and give the bits of one device")
{
    auto shape = eight_heads(ggml_type::q4_k, 4);
    shape.width = 512;
    shape.types = {{"blk.0.ffn_down.weight", ggml_type::q6_k},
                   {"blk.1.attn_output.weight", ggml_type::q8_0},
                   {"blk.1.attn_v.weight", ggml_type::q6_k},
                   {"token_embd.weight", ggml_type::q6_k}};
    temporary_file file(tiny_model_bytes(shape));
    model_probe::options how(file.path());
    how.positions = 128;
    how.spread = {1, 1, 2};
    auto expected = co_await logits_of(rt, how, two_steps());
    how.spread.tensor = 2;
    auto found = co_await logits_of(rt, how, two_steps());
    CHECK(found == expected);
    how.spread = {};
    auto plain = co_await logits_of(rt, how, two_steps());
    CHECK(plain != expected);
}

namespace {

/// A mixture and the greatest degree that divides its experts.
struct mixture_case {
    char const* folder;
    std::int32_t most;
};
constexpr mixture_case mixtures[] = {{"mixtral", 4}, {"qwen3_moe", 2}, {"glm4_moe", 2}, {"gpt_oss", 4}};

} // namespace

CO_TEST_CASE("experts are divided among the ranks, and every degree gives the bits of one device")
{
    for (auto const& mixture : mixtures)
        for (auto mode : {numerics::native, numerics::f32}) {
            auto const most = mixture.most;
            CAPTURE(mixture.folder);
            model_probe::options how(test_data("families") / mixture.folder);
            how.mode = mode;
            how.positions = 128;
            how.spread = {1, 1, most};
            auto expected = co_await logits_of(rt, how, two_steps(96));
            for (std::int32_t tensor = 2; tensor <= most; tensor *= 2) {
                how.spread = {tensor, 1, most};
                auto found = co_await logits_of(rt, how, two_steps(96));
                CHECK(found == expected);
            }
            how.spread = {};
            auto plain = co_await logits_of(rt, how, two_steps(96));
            CHECK(plain != expected); // another order of summation: the parts are there
            CHECK(nmse(plain, expected) <= 1e-10);
        }
}

TEST_CASE("a degree that does not divide the experts is refused with their number")
{
    auto const files = open_model(test_data("families/qwen3_moe"));
    auto const model = describe(files);
    std::string what;
    try {
        check(parallelism{4}, files.tensors(), model);
    } catch (error const& e) {
        CHECK(e.condition() == errc::invalid_argument);
        what = e.what();
    }
    CHECK(what.find("tensor parallelism of 4 does not divide experts 6") != std::string::npos);
    CHECK(what.find("degrees that do: 1, 2") != std::string::npos);
}

CO_TEST_CASE("without sums of parts the logits differ from one device's by rounding only")
{
    for (std::uint64_t seed = 1; seed <= 3; ++seed)
        for (std::int32_t tensor : {2, 4, 8}) {
            auto shape = eight_heads(ggml_type::f32, 4);
            shape.seed = seed;
            temporary_file file(tiny_model_bytes(shape));
            model_probe::options how(file.path());
            how.positions = 128;
            auto expected = co_await logits_of(rt, how, two_steps());
            how.spread.tensor = tensor;
            auto found = co_await logits_of(rt, how, two_steps());
            CHECK(nmse(found, expected) <= 1e-10);
            CHECK(nmse(found, expected) > 0);
        }
}

CO_TEST_CASE("passes of one plan give the bits of one after the other, in any number of lanes and on any streams")
{
    temporary_file file(tiny_model_bytes(eight_heads(ggml_type::q8_0, 2)));
    auto prompt = some_tokens(90, 5);
    auto part = [&](int from, int to) { return std::vector<std::int32_t>(prompt.begin() + from, prompt.begin() + to); };
    passes plan(4);
    plan[0].emplace_back(0, 0, part(0, 37));
    plan[1].emplace_back(0, 37, part(37, 64));
    plan[2].emplace_back(0, 64, part(64, 90));
    plan[3].emplace_back(1, 0, some_tokens(31, 6));
    passes whole(1);
    whole[0].emplace_back(0, 0, prompt);
    whole[0].emplace_back(1, 0, some_tokens(31, 6));

    for (std::int32_t tensor : {1, 2}) {
        model_probe::options how(file.path());
        how.positions = 128;
        how.spread = {tensor, 1, 2};
        std::vector<passes> one;
        one.push_back(whole);
        auto expected = co_await logits_of(rt, how, one);
        how.lanes = 4;
        constexpr auto c = stream_role::compute, u = stream_role::urgent;
        for (auto lanes : {std::vector{c}, std::vector{c, c}, std::vector{u, c}, std::vector{c, u, c},
                           std::vector{c, c, c, c}, std::vector{u, c, u, c}}) {
            CAPTURE(lanes.size());
            auto probes = make_probes(rt, 2, tensor);
            co_await load_probes(probes, how);
            for (int again = 0; again < 2; ++again) { // the second time over the first one's pages and activations
                auto logits = co_await run_probes(probes, plan, lanes);
                std::vector<float> found;
                for (auto const& pass : logits)
                    found.insert(found.end(), pass.begin(), pass.end());
                CHECK(found == expected);
            }
            co_await stop_probes(probes);
        }
    }
}

CO_TEST_CASE("an order of lanes in which pages would be read before they are written is reported, not computed")
{
    temporary_file file(tiny_model_bytes(eight_heads(ggml_type::f32, 2)));
    auto prompt = some_tokens(40, 5);
    passes plan(2);
    plan[0].emplace_back(0, 20, std::vector<std::int32_t>(prompt.begin() + 20, prompt.end()));
    plan[1].emplace_back(0, 0, std::vector<std::int32_t>(prompt.begin(), prompt.begin() + 20));
    for (std::size_t lanes : {1u, 2u}) {
        model_probe::options how(file.path());
        how.positions = 128;
        how.lanes = 2;
        auto probes = make_probes(rt, 1, 1);
        co_await load_probes(probes, how);
        auto outcome =
            co_await as_result(run_probes(probes, plan, std::vector<stream_role>(lanes, stream_role::compute)));
        CHECK(outcome.error() == errc::bad_plan);
        co_await stop_probes(probes);
    }
}
