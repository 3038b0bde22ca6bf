#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/experts.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/tests/support/host_kernels.hpp>
#include <plait/tests/support/random_weights.hpp>

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

namespace {

constexpr weight_format formats[] = {weight_format::f32, weight_format::bf16, weight_format::q4_0, weight_format::q8_0,
                                     weight_format::mxfp4};
constexpr std::int32_t experts = 7, used = 3;
constexpr std::int64_t cols = 64, hidden = 96, width = 50;

std::size_t at(std::int64_t i)
{
    return static_cast<std::size_t>(i);
}

/// Rows of features with their quantised form.
struct features {
    std::int64_t rows, cols;
    buffer<float> f32;
    buffer<std::int8_t> q8 = buffer<std::int8_t>(f32.size(), 99);
    buffer<float> scales = buffer<float>(f32.size() / 32, -9.0f);
    buffer<float> sums = scales;

    void quantise()
    {
        for (std::int64_t r = 0; r < rows; ++r)
            products(isa::scalar)
                .quantise_row(f32.data() + r * cols, cols, q8.data() + r * cols, scales.data() + r * (cols / 32),
                              sums.data() + r * (cols / 32));
    }

    activation_view all() { return {rows, cols, f32.data(), q8.data(), scales.data(), sums.data()}; }

    activation_view row(std::int64_t r)
    {
        return {1,
                cols,
                f32.data() + r * cols,
                q8.data() + r * cols,
                scales.data() + r * (cols / 32),
                sums.data() + r * (cols / 32)};
    }
};

features random_features(std::int64_t rows, std::int64_t columns, unsigned seed)
{
    features out{rows, columns, random_floats(at(rows * columns), seed)};
    out.quantise();
    return out;
}

bool same(features const& a, features const& b)
{
    return same_bits(a.f32, b.f32) && same_bits(a.q8, b.q8) && same_bits(a.scales, b.scales) &&
           same_bits(a.sums, b.sums);
}

/// A mixture's weights, and a choice of its experts for some rows. Expert 2 is never chosen.
struct mixture {
    weight_format format;
    std::int64_t rows;
    std::size_t gated_bytes = 2 * packed_bytes(format, hidden, cols), down_bytes = packed_bytes(format, width, hidden);
    buffer<std::byte> gate_up = buffer<std::byte>(experts * gated_bytes);
    buffer<std::byte> down = buffer<std::byte>(experts * down_bytes);
    buffer<float> gate_bias = random_floats(experts * hidden, 1), up_bias = random_floats(experts * hidden, 2);
    buffer<float> down_bias = random_floats(experts * width, 3);
    features x = random_features(rows, cols, 4);
    features inner = random_features(rows * used, hidden, 5);
    std::vector<std::int32_t> ids, first = std::vector<std::int32_t>(experts + 1), entries;
    buffer<float> weights = random_floats(at(rows * used), 6);

    mixture(weight_format f, std::int64_t r)
        : format(f)
        , rows(r)
    {
        for (std::int32_t e = 0; e < experts; ++e) {
            auto const seed = static_cast<unsigned>(10 * e);
            auto const gate = random_weights(format, hidden, cols, seed),
                       up = random_weights(format, hidden, cols, seed + 1);
            auto* panels = gate_up.data() + at(e) * gated_bytes;
            pack_rows(format, format, hidden, cols, gate.data(), panels, 0, {2, 0});
            pack_rows(format, format, hidden, cols, up.data(), panels, 0, {2, 1});
            auto const file = random_weights(format, width, hidden, seed + 2);
            pack_rows(format, format, width, hidden, file.data(), down.data() + at(e) * down_bytes, 0);
        }
        std::mt19937 random(7);
        for (std::int64_t row = 0; row < rows; ++row) {
            std::vector<std::int32_t> order = {0, 1, 3, 4, 5, 6};
            std::shuffle(order.begin(), order.end(), random);
            std::sort(order.begin(), order.begin() + used);
            ids.insert(ids.end(), order.begin(), order.begin() + used);
        }
        entries.resize(ids.size());
    }

    expert_choice choice(std::int32_t from, std::int32_t count)
    {
        expert_choice out{rows, used, from, count, ids.data(), weights.data(), first.data(), entries.data()};
        run_all(list_experts, out);
        return out;
    }

    expert_gated_args gated(std::int32_t from, std::int32_t count)
    {
        expert_gated_args args;
        args.choice = choice(from, count);
        args.gate_up = {format, 2 * hidden, cols, gate_up.data() + at(from) * gated_bytes};
        args.expert_bytes = gated_bytes;
        args.x = x.all();
        args.gate_bias = gate_bias.data() + from * hidden;
        args.up_bias = up_bias.data() + from * hidden;
        args.function = activation::swiglu_clamped;
        args.alpha = 1.702f;
        args.limit = 1;
        return args;
    }
};

std::pair<std::int32_t, std::int32_t> const parts[] = {{0, experts}, {0, 3}, {3, 4}, {2, 1}};

} // namespace

TEST_CASE("a slot gets its expert's gated layer of its row, and one whose expert is elsewhere stays as it is")
{
    for (auto format : formats)
        for (std::int64_t rows : {1, 6, 70})
            for (bool bias : {false, true}) {
                CAPTURE(name(format));
                CAPTURE(rows);
                mixture m(format, rows);
                features alone{rows * used, hidden, buffer<float>(at(rows * used * hidden), 5.0f)};
                for (std::int64_t slot = 0; slot < rows * used; ++slot) {
                    auto const e = m.ids[at(slot)];
                    auto const like = m.gated(e, 1);
                    gated_args args;
                    args.gate_up = like.gate_up;
                    args.x = m.x.row(slot / used);
                    args.out = alone.row(slot);
                    args.function = bias ? like.function : activation::silu;
                    args.gate_bias = bias ? like.gate_bias : nullptr;
                    args.up_bias = bias ? like.up_bias : nullptr;
                    args.alpha = like.alpha;
                    args.limit = like.limit;
                    run_all(products(isa::scalar).gated, args);
                }
                for (auto [from, count] : parts) {
                    features expected{rows * used, hidden, buffer<float>(alone.f32.size(), 5.0f)};
                    for (std::int64_t slot = 0; slot < rows * used; ++slot)
                        if (m.ids[at(slot)] >= from && m.ids[at(slot)] < from + count) {
                            auto source = alone.row(slot), to = expected.row(slot);
                            std::copy_n(source.f32, hidden, to.f32);
                            std::copy_n(source.q8, hidden, to.q8);
                            std::copy_n(source.scales, hidden / 32, to.scales);
                            std::copy_n(source.sums, hidden / 32, to.sums);
                        }
                    for (auto set : available_isas())
                        for (unsigned workers : {1u, 2u, 5u, 40u}) {
                            features out{rows * used, hidden, buffer<float>(alone.f32.size(), 5.0f)};
                            auto args = m.gated(from, count);
                            args.out = out.all();
                            if (!bias) {
                                args.gate_bias = args.up_bias = nullptr;
                                args.function = activation::silu;
                            }
                            run_all(products(set).expert_gated, args, workers);
                            CHECK_MESSAGE(same(out, expected), name(set), ", ", workers, " workers");
                        }
                }
            }
}

TEST_CASE("a slot gets its expert's product with the slot's own features, and its bias")
{
    for (auto format : formats)
        for (std::int64_t rows : {1, 6, 70})
            for (bool bias : {false, true}) {
                CAPTURE(name(format));
                CAPTURE(rows);
                mixture m(format, rows);
                buffer<float> alone(at(rows * used * width));
                for (std::int64_t slot = 0; slot < rows * used; ++slot) {
                    auto const e = m.ids[at(slot)];
                    product_args args;
                    args.w = {format, width, hidden, m.down.data() + at(e) * m.down_bytes};
                    args.x = m.inner.row(slot);
                    args.out = alone.data() + slot * width;
                    args.out_stride = width;
                    args.bias = bias ? m.down_bias.data() + e * width : nullptr;
                    run_all(products(isa::scalar).product, args);
                }
                for (auto [from, count] : parts) {
                    auto expected = alone;
                    for (std::int64_t slot = 0; slot < rows * used; ++slot)
                        if (m.ids[at(slot)] < from || m.ids[at(slot)] >= from + count)
                            std::fill_n(expected.data() + slot * width, width, -3.0f);
                    for (auto set : available_isas())
                        for (unsigned workers : {1u, 3u, 40u}) {
                            buffer<float> out(alone.size(), -3.0f);
                            expert_product_args args;
                            args.choice = m.choice(from, count);
                            args.w = {format, width, hidden, m.down.data() + at(from) * m.down_bytes};
                            args.expert_bytes = m.down_bytes;
                            args.x = m.inner.all();
                            args.bias = bias ? m.down_bias.data() + from * width : nullptr;
                            args.out = out.data();
                            run_all(products(set).expert_product, args, workers);
                            CHECK_MESSAGE(same_bits(out, expected), name(set), ", ", workers, " workers");
                        }
                }
            }
}

TEST_CASE("what the experts of a row have made is added in the order of their slots, and those elsewhere are left out")
{
    constexpr std::int64_t rows = 9;
    for (std::int64_t columns : {1, 50, 512, 1300})
        for (auto [from, count] : parts)
            for (bool with_residual : {false, true})
                for (unsigned workers : {1u, 4u}) {
                    mixture m(weight_format::f32, rows);
                    auto y = random_floats(at(rows * used * columns), 8);
                    auto const before = random_floats(at(rows * columns), 9);
                    for (std::int64_t slot = 0; slot < rows * used; ++slot)
                        if (m.ids[at(slot)] < from || m.ids[at(slot)] >= from + count)
                            std::fill_n(y.data() + slot * columns, columns, std::nanf("")); // never written
                    auto out = before;
                    expert_sum_args args;
                    args.choice = m.choice(from, count);
                    args.y = y.data();
                    args.cols = columns;
                    args.residual = with_residual ? out.data() : nullptr;
                    args.to = out.data();
                    args.residual_scale = 0.8f;
                    args.scale = 1.5f;
                    run_all(expert_sum, args, workers);
                    int wrong = 0;
                    for (std::int64_t row = 0; row < rows; ++row)
                        for (std::int64_t c = 0; c < columns; ++c) {
                            float sum = 0;
                            for (auto slot = row * used; slot < (row + 1) * used; ++slot)
                                if (m.ids[at(slot)] >= from && m.ids[at(slot)] < from + count)
                                    sum += m.weights[at(slot)] * y[at(slot * columns + c)];
                            auto const i = at(row * columns + c);
                            sum = 1.5f * sum;
                            wrong += out[i] != (with_residual ? 0.8f * before[i] + sum : sum);
                        }
                    CHECK(wrong == 0);
                }
}

TEST_CASE("many rows of one expert, and none, are work that is dealt out whole")
{
    for (auto format : {weight_format::f32, weight_format::q8_0}) {
        constexpr std::int64_t rows = 700;
        mixture m(format, rows);
        for (std::int64_t row = 0; row < rows; ++row) {
            auto* ids = m.ids.data() + row * used;
            ids[0] = 0, ids[1] = 1, ids[2] = 6;
        }
        buffer<float> expected;
        for (auto set : available_isas())
            for (unsigned workers : {1u, 6u}) {
                if (set == isa::scalar && workers > 1) continue;
                features out{rows * used, hidden, buffer<float>(at(rows * used * hidden), 5.0f)};
                auto args = m.gated(1, 5); // of which only the first is chosen
                args.out = out.all();
                run_all(products(set).expert_gated, args, workers);
                if (expected.empty()) {
                    expected = out.f32;
                    for (std::int64_t slot = 0; slot < rows * used; ++slot)
                        CHECK(std::count(out.f32.begin() + slot * hidden, out.f32.begin() + (slot + 1) * hidden,
                                         5.0f) == (slot % used == 1 ? 0 : hidden));
                }
                CHECK(same_bits(out.f32, expected));

                auto none = m.gated(2, 3);
                none.out = out.all();
                run_all(products(set).expert_gated, none, workers);
                CHECK(same_bits(out.f32, expected));
            }
    }
}
