#include <plait/model/weights.hpp>

#include <plait/actors/runtime/runtime.hpp>
#include <plait/kv/kv_storage.hpp>
#include <plait/model/kv_layers.hpp>
#include <plait/tests/support/co_test.hpp>
#include <plait/tests/support/test_gpu.hpp>
#include <plait/tests/support/tiny_model.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace plait;
using namespace plait::test;

namespace {

/// Eight heads, each with its own keys and values; its norms are less than a thousandth of it.
tiny_model_options eight_heads(ggml_type weights)
{
    return {.width = 512, .heads = 8, .kv_heads = 8, .ffn = 1024, .vocabulary = 1024, .weights = weights};
}

/// What a rank's device has handed out for its weights, once they are loaded, and for KV pages.
struct held {
    std::int64_t weights = 0;
    std::int64_t kv = 0;
};

task<held> held_by(runtime& rt, std::filesystem::path const& path, parallelism const& spread, std::int32_t rank)
{
    held out;
    auto body = [&](test_gpu& g) -> task<> {
        auto file = gguf_file::open(path);
        auto const model = describe(file);
        auto const part = divide(spread, model.spec)[static_cast<std::size_t>(rank)];
        auto const allocated = [&] {
            return static_cast<std::int64_t>(static_cast<host::host_device&>(g.dev()).allocated());
        };
        model_weights weights(g.dev(), file, model, numerics::native, part);
        std::int64_t planned = 0;
        for (auto const& line : model_weights::plan(file, model, numerics::native, part))
            planned += line.bytes;
        CHECK(allocated() == planned);
        auto const operations = make_host_ops(host::best_isa());
        auto f = g.flow_on(stream_role::compute);
        for (double done = 0; done < 1;)
            done = co_await weights.load_next(f, *operations, file);
        out.weights = allocated();
        CHECK(out.weights == weights.bytes()); // the slice of the file is gone
        kv_storage const kv(g.dev(), kv_geometry_of(model.spec, kv_type::f16, part), 10);
        out.kv = allocated() - out.weights;
    };
    co_await on_test_gpu(rt, 1, body);
    co_return out;
}

} // namespace

CO_TEST_CASE("each of n ranks holds an n-th of the weights and of the KV pages")
{
    for (auto weights : {ggml_type::f32, ggml_type::q4_1, ggml_type::q8_0, ggml_type::q4_k, ggml_type::q6_k}) {
        temporary_file const file(tiny_model_bytes(eight_heads(weights)));
        parallelism const alone;
        auto const whole = co_await held_by(rt, file.path(), alone, 0);
        for (std::int32_t ranks : {2, 4, 8}) {
            // Two blocks of 256 are cut once.
            if (layout(weights).block == 256 && ranks > 2) continue;
            for (std::int32_t rank : {0, ranks - 1}) {
                CAPTURE(ranks);
                parallelism spread;
                spread.tensor = ranks;
                auto const part = co_await held_by(rt, file.path(), spread, rank);
                auto const share = static_cast<double>(whole.weights) / ranks;
                CHECK(static_cast<double>(part.weights) >= share);
                CHECK(static_cast<double>(part.weights) <= 1.05 * share);
                CHECK(part.kv == whole.kv / ranks);
            }
        }
    }
}
