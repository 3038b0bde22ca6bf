// The small model over three devices: the logits of one, and a refusal where it can't be divided.

#include <plait/actors/error.hpp>
#include <plait/engine/engine.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/golden.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/nmse.hpp>
#include <plait/tests/support/paths.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::test;

namespace {

std::optional<std::filesystem::path> small_model()
{
    auto out = model_file("smollm2-135m-instruct-q4_1.gguf");
    if (!out) MESSAGE("skipped: not found: smollm2-135m-instruct-q4_1.gguf");
    return out;
}

/// The logits of every token of some text.
task<std::vector<float>> logits_over(runtime& rt, model_probe::options how)
{
    auto probes = make_probes(rt, 2, how.spread.tensor);
    co_await load_probes(probes, how);
    std::vector<std::int32_t> tokens;
    for (std::int32_t i = 0; i < 160; ++i)
        tokens.push_back(100 + i * i * 37 % 40'000);
    std::vector<std::vector<probe_chunk>> pass(1);
    pass[0].emplace_back(0, 0, std::move(tokens));
    std::vector<stream_role> const one_lane(1, stream_role::compute);
    auto logits = co_await run_probes(probes, pass, one_lane);
    co_await stop_probes(probes);
    co_return std::move(logits.front());
}

/// Of each position.
std::vector<double> errors_of(std::vector<float> const& a, std::vector<float> const& reference, std::size_t positions)
{
    std::vector<double> out;
    auto const width = reference.size() / positions;
    for (std::size_t p = 0; p < positions; ++p)
        out.push_back(nmse(std::span(a).subspan(p * width, width), std::span(reference).subspan(p * width, width)));
    return out;
}

} // namespace

CO_TEST_CASE("the small model on three devices: with sums of three parts the bits of one, without them rounding")
{
    auto const file = small_model();
    if (!file) co_return;
    model_probe::options how(*file);
    how.sequences = 1;
    how.positions = 256;
    auto const one = co_await logits_over(rt, how);
    how.spread = {1, 1, 3};
    auto const in_parts = co_await logits_over(rt, how);
    how.spread = {3, 1, 3};
    auto const three = co_await logits_over(rt, how);
    CHECK(three == in_parts);
    CHECK(one != in_parts);

    how.mode = numerics::f32;
    how.kv = kv_type::f32; // rounding keys to 16 bits would make much of little
    how.spread = parallelism();
    auto const exact = co_await logits_over(rt, how);
    how.spread = {3, 1};
    auto const divided = co_await logits_over(rt, how);
    auto const errors = errors_of(divided, exact, 160);
    double mean = 0;
    for (auto e : errors)
        mean += e / static_cast<double>(errors.size());
    MESSAGE("F32 on three devices against one: NMSE at worst " << *std::ranges::max_element(errors) << ", mean "
                                                               << mean);
    CHECK(*std::ranges::max_element(errors) <= 1e-9);
    CHECK(mean <= 1e-10);
    CHECK(mean > 0);
}

TEST_CASE("nine devices can't share the small model, and the refusal says why")
{
    auto const file = small_model();
    if (!file) return;
    engine_options options;
    options.model = *file;
    options.spread.tensor = 9;
    std::string why;
    try {
        (void)plan(options);
    } catch (error const& e) {
        CHECK(e.condition() == errc::invalid_argument);
        why = e.what();
    }
    CHECK(why.find("1536") != std::string::npos);
    CHECK(why.find("49152") != std::string::npos);
    CHECK(why.find("degrees that do: 1, 3") != std::string::npos);
    options.spread.tensor = 3;
    CHECK(plan(options).pages > 0);
}
