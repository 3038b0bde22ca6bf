#include <plait/kernels/ops.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/host_kernels.hpp>
#include <plait/tests/support/test_gpu.hpp>

#include <functional>

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
