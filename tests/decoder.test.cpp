#include <doctest/doctest.h>

#include <cmath>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/model_probe.hpp>
#include <plait/tests/support/nmse.hpp>
#include <plait/tests/support/tiny_model.hpp>

using namespace plait;
using namespace plait::test;

namespace {

std::vector<std::int32_t> some_tokens(std::size_t count, std::int32_t seed)
{
    std::vector<std::int32_t> out;
    for (std::size_t i = 0; i < count; ++i)
        out.push_back(3 + static_cast<std::int32_t>((i * 37 + static_cast<std::size_t>(seed) * 11) % 250));
    return out;
}

} // namespace

CO_TEST_CASE("logits are the same bits whatever the chunks, the neighbours, the threads and the instruction set")
{
    for (auto type : {ggml_type::q4_0, ggml_type::q4_1, ggml_type::q8_0, ggml_type::q4_k, ggml_type::q6_k,
                      ggml_type::f16, ggml_type::bf16, ggml_type::f32}) {
        tiny_model_options shape;
        if (layout(type).block == 256) shape.width = shape.ffn = 256;
        shape.weights = type;
        temporary_file file(tiny_model_bytes(shape));
        auto tokens = some_tokens(90, 1);
        auto expected = co_await logits_of(rt, model_probe::options(file.path()), tokens, 0, 1);
        auto row = expected.size() / tokens.size();
        for (auto set : host::available_isas()) {
            CAPTURE(host::name(set));
            auto probe = make_probe(rt, 2);
            model_probe::options how(file.path());
            how.set = set;
            co_await ask<&model_probe::load>(probe, std::move(how));
            for (std::size_t chunk : {std::size_t(1), std::size_t(7), std::size_t(64)}) {
                CAPTURE(chunk);
                std::vector<float> got;
                for (std::size_t at = 0; at < tokens.size(); at += chunk) {
                    auto end = std::min(tokens.size(), at + chunk);
                    std::vector<probe_chunk> step;
                    // Neighbours before and behind, in other sequences, of other lengths each time.
                    step.emplace_back(1, 0, some_tokens(1 + at % 5, static_cast<std::int32_t>(at)));
                    step.emplace_back(0, static_cast<std::int32_t>(at),
                                      std::vector<std::int32_t>(tokens.begin() + static_cast<std::ptrdiff_t>(at),
                                                                tokens.begin() + static_cast<std::ptrdiff_t>(end)));
                    step.emplace_back(2, 0, some_tokens(1 + at % 3, 9));
                    auto logits = co_await ask<&model_probe::run>(probe, std::move(step));
                    auto from = logits.begin() + static_cast<std::ptrdiff_t>((1 + at % 5) * row);
                    got.insert(got.end(), from, from + static_cast<std::ptrdiff_t>((end - at) * row));
                }
                CHECK(got == expected);
            }
            co_await stop(probe);
        }
    }
}

CO_TEST_CASE("the F32 path of a file is the native path of the same weights in F32")
{
    tiny_model_options shape;
    shape.weights = ggml_type::q4_1;
    temporary_file file(tiny_model_bytes(shape));
    auto tokens = some_tokens(40, 2);
    model_probe::options exact(file.path());
    exact.mode = numerics::f32;
    exact.kv = kv_type::f32;
    auto reference = co_await logits_of(rt, exact, tokens, 0, 1);
    auto native = co_await logits_of(rt, model_probe::options(file.path()), tokens, 0, 1);
    auto difference = nmse(native, reference);
    CHECK(difference > 0);
    CHECK(difference < 1e-2);
}

CO_TEST_CASE("keys and values in 16 and in 8 bits stay close to those in F32")
{
    temporary_file file(tiny_model_bytes({}));
    auto tokens = some_tokens(100, 3);
    model_probe::options how(file.path());
    how.kv = kv_type::f32;
    auto reference = co_await logits_of(rt, how, tokens, 0, 1);
    how.kv = kv_type::f16;
    auto half = co_await logits_of(rt, how, tokens, 0, 1);
    how.kv = kv_type::q8;
    auto eighth = co_await logits_of(rt, how, tokens, 0, 1);
    CHECK(nmse(half, reference) < 1e-6);
    CHECK(nmse(eighth, reference) < 1e-2);
    CHECK(nmse(half, reference) < nmse(eighth, reference));
}

CO_TEST_CASE("norm placement decides what a model computes: pre-norm weights run as post-norm are another model")
{
    temporary_file file(tiny_model_bytes({}));
    auto tokens = some_tokens(20, 4);
    auto reference = co_await logits_of(rt, model_probe::options(file.path()), tokens, 0, 1);
    model_probe::options flipped(file.path());
    flipped.change = [](model_spec& spec) {
        for (auto& layer : spec.layers)
            layer.placement = norm_placement::post_add;
    };
    auto other = co_await logits_of(rt, flipped, tokens, 0, 1);
    CHECK(nmse(other, reference) > 0.05);
}

CO_TEST_CASE("a window, a soft cap, a rotation and a scale each change the logits")
{
    temporary_file file(tiny_model_bytes({}));
    auto tokens = some_tokens(60, 5);
    auto reference = co_await logits_of(rt, model_probe::options(file.path()), tokens, 0, 1);
    std::vector<std::function<void(attention_spec&)>> const changes = {
        [](attention_spec& a) { a.window = 8; },
        [](attention_spec& a) { a.soft_cap = 0.5f; },
        [](attention_spec& a) { a.rope.style = rope_style::halves; },
        [](attention_spec& a) { a.rope.linear_scale = 4; },
        [](attention_spec& a) { a.rope.factors.assign(static_cast<std::size_t>(a.rope.dims / 2), 3.0f); },
        [](attention_spec& a) { a.scale *= 2; },
    };
    for (auto const& change : changes) {
        model_probe::options how(file.path());
        how.change = [&change](model_spec& spec) {
            for (auto& layer : spec.layers)
                change(layer.attention);
        };
        auto other = co_await logits_of(rt, how, tokens, 0, 1);
        CHECK(nmse(other, reference) > 1e-6);
    }
}
