#include <plait/kernels/ops.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/host_kernels.hpp>
#include <plait/tests/support/test_gpu.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

using namespace plait;
using namespace plait::test;

namespace {

/// Runs what `put` puts on the stream of a device with three workers, to its end.
task<> run_ops(runtime& rt, std::function<void(flow&, ops&)> put)
{
    auto body = [&](test_gpu& g) -> task<> {
        auto operations = make_host_ops(host::best_isa());
        auto f = g.flow_on(stream_role::compute);
        put(f, *operations);
        co_await f;
    };
    co_await on_test_gpu(rt, 3, body);
}

} // namespace

CO_TEST_CASE("an addition scales what it adds, with its bias, and what is there, each operation rounded")
{
    constexpr std::int64_t rows = 7, cols = 37;
    auto const what = random_floats(rows * cols, 1), bias = random_floats(cols, 2),
               before = random_floats(rows * cols, 3);
    for (bool with_bias : {false, true})
        for (bool scaled : {false, true}) {
            add_args args;
            auto to = before;
            args.what = what.data();
            args.to = to.data();
            args.rows = rows;
            args.cols = cols;
            args.bias = with_bias ? bias.data() : nullptr;
            if (scaled) args.scale = 0.3f, args.residual_scale = 1.9f;
            std::function<void(flow&, ops&)> put = [&](flow& f, ops& on) { on.add(f, args); };
            co_await run_ops(rt, std::move(put));
            int wrong = 0;
            for (std::size_t i = 0; i < to.size(); ++i) {
                float value = with_bias ? what[i] + bias[i % cols] : what[i];
                wrong += to[i] != (scaled ? 1.9f * before[i] + 0.3f * value : before[i] + value);
            }
            CHECK(wrong == 0);
        }
}

CO_TEST_CASE("a mixture of experts on a stream is its sum of weighted experts, whole or as the summands of two ranks")
{
    constexpr std::int64_t rows = 11, cols = 32, hidden = 64;
    constexpr std::int32_t experts = 6, used = 2;
    auto x = random_floats(rows * cols, 1);
    auto const logits = random_floats(rows * experts, 2);
    auto const gate = random_floats(experts * hidden * cols, 3, 0.2f),
               up = random_floats(experts * hidden * cols, 4, 0.2f);
    auto const down = random_floats(experts * cols * hidden, 5, 0.2f);
    auto const down_bytes = host::packed_bytes(weight_format::f32, cols, hidden), gated_bytes = 2 * down_bytes;
    test::buffer<std::byte> gate_up_panels(experts * gated_bytes), down_panels(experts * down_bytes);
    for (std::size_t e = 0; e < experts; ++e) {
        auto pack = [&](test::buffer<float> const& from, std::int64_t outputs, std::int64_t inputs, std::byte* to,
                        host::interleave place) {
            host::pack_rows(weight_format::f32, weight_format::f32, outputs, inputs,
                            reinterpret_cast<std::byte const*>(from.data() + e * hidden * cols), to, 0, place);
        };
        pack(gate, hidden, cols, gate_up_panels.data() + e * gated_bytes, {2, 0});
        pack(up, hidden, cols, gate_up_panels.data() + e * gated_bytes, {2, 1});
        pack(down, cols, hidden, down_panels.data() + e * down_bytes, {});
    }
    test::buffer<std::int32_t> ids(rows * used), first(experts + 1), entries(rows * used);
    test::buffer<float> weights(rows * used), inner(rows * used * hidden), y(rows * used * cols);
    std::vector<test::buffer<float>> sums;
    for (auto [from, count] : {std::pair{0, experts}, std::pair{0, 2}, std::pair{2, 4}}) {
        auto& sum = sums.emplace_back(rows * cols);
        auto const offset = static_cast<std::size_t>(from);
        std::function<void(flow&, ops&)> put = [&](flow& f, ops& on) {
            route_args route;
            route.logits = logits.data();
            route.experts = experts;
            route.choice = {rows, used, from, count, ids.data(), weights.data(), first.data(), entries.data()};
            on.route(f, route);
            expert_gated_args gated;
            gated.choice = route.choice;
            gated.gate_up = {weight_format::f32, 2 * hidden, cols, gate_up_panels.data() + offset * gated_bytes};
            gated.expert_bytes = gated_bytes;
            gated.x = {rows, cols, x.data()};
            gated.out = {rows * used, hidden, inner.data()};
            on.expert_gated(f, gated);
            expert_product_args product;
            product.choice = route.choice;
            product.w = {weight_format::f32, cols, hidden, down_panels.data() + offset * down_bytes};
            product.expert_bytes = down_bytes;
            product.x = gated.out;
            product.out = y.data();
            on.expert_product(f, product);
            expert_sum_args add;
            add.choice = route.choice;
            add.y = y.data();
            add.cols = cols;
            add.to = sum.data();
            on.expert_sum(f, add);
        };
        co_await run_ops(rt, std::move(put));
    }
    double worst = 0, apart = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        std::vector<double> expected(cols);
        auto const* l = logits.data() + row * experts;
        std::vector<std::size_t> order(experts);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](auto a, auto b) { return l[a] > l[b]; });
        double const share = 1 / (1 + std::exp(double(l[order[1]]) - l[order[0]]));
        for (std::size_t s = 0; s < used; ++s)
            for (std::size_t h = 0; h < hidden; ++h) {
                double g = 0, u = 0;
                for (std::size_t c = 0; c < cols; ++c) {
                    g += double(gate[(order[s] * hidden + h) * cols + c]) * x[row * cols + c];
                    u += double(up[(order[s] * hidden + h) * cols + c]) * x[row * cols + c];
                }
                for (std::size_t c = 0; c < cols; ++c)
                    expected[c] += (s == 0 ? share : 1 - share) * g / (1 + std::exp(-g)) * u *
                                   down[(order[s] * cols + c) * hidden + h];
            }
        for (std::size_t c = 0; c < cols; ++c) {
            auto const i = row * cols + c;
            worst = std::max(worst, std::fabs(sums[0][i] - expected[c]));
            apart = std::max(apart, std::fabs(double(sums[1][i]) + sums[2][i] - sums[0][i]));
        }
    }
    CHECK(worst < 1e-5);
    CHECK(apart < 1e-5);
}

CO_TEST_CASE("logits are capped on a stream")
{
    auto x = random_floats(1000, 6, 50);
    auto const before = x;
    soft_cap_args const args{x.data(), 1000, 20, 0.5f};
    std::function<void(flow&, ops&)> put = [&](flow& f, ops& on) { on.soft_cap(f, args); };
    co_await run_ops(rt, std::move(put));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
        worst = std::max(worst, std::fabs(x[i] - 20 * std::tanh(0.5 * before[i] / 20)));
    CHECK(worst < 1e-5);
}
