#include <plait/kernels/host/attention_ops.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <cmath>
#include <doctest/doctest.h>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

TEST_CASE("a soft cap follows its formula, with the same bits in every instruction set and nothing beyond the last")
{
    for (std::size_t count : {1, 15, 16, 17, 100, 1000})
        for (float cap : {0.0f, 30.0f})
            for (float scale : {1.0f, 0.0625f}) {
                auto const x = random_floats(count + 1, 1, 60);
                buffer<float> expected;
                for (auto set : available_isas())
                    for (unsigned workers : {1u, 2u, 7u}) {
                        auto out = x;
                        run_all(attention_ops(set).soft_cap,
                                soft_cap_args{out.data(), static_cast<std::int64_t>(count), cap, scale}, workers);
                        if (expected.empty()) expected = out;
                        REQUIRE(same_bits(out, expected));
                    }
                REQUIRE(expected.back() == x.back());
                for (std::size_t i = 0; i < count; ++i) {
                    double value = static_cast<double>(scale) * x[i];
                    if (cap > 0) value = cap * std::tanh(value / cap);
                    REQUIRE(std::fabs(expected[i] - value) <= 1e-6 * std::fabs(value));
                }
            }
}
