#include <doctest/doctest.h>

#include <plait/actors/error.hpp>
#include <plait/kv/planner.hpp>

using namespace plait;

namespace {

constexpr std::int64_t gib = std::int64_t(1) << 30;

/// LLaMA-2-70B's KV cache: 80 layers, 64 heads over `kv_heads` KV heads of 128.
memory_request llama_70b(int kv_heads, kv_type type)
{
    memory_request request;
    request.memory = 4096 * gib;
    request.kv = kv_geometry::of(std::vector<kv_layer>(80, {kv_heads, 128, 0}), type);
    request.context = 4096;
    request.sequences = 64;
    return request;
}

std::int64_t values(memory_plan const& plan)
{
    for (auto const& line : plan.lines)
        if (line.name == "KV cache") return line.bytes;
    return 0;
}

} // namespace

TEST_CASE("the planner derives LLaMA-2-70B's KV cache: 327,680 bytes a token")
{
    auto plan = plan_memory(llama_70b(8, kv_type::f16));
    CHECK(values(plan) == 80 * gib);
    CHECK(to_table(plan).find("80 layers × 8 KV heads × 128 × 2 (K, V) × 2 B = 327,680 B a token × 262,144 tokens") !=
          std::string::npos);
    CHECK(values(plan_memory(llama_70b(8, kv_type::q8))) == 40 * gib);
    CHECK(values(plan_memory(llama_70b(64, kv_type::f16))) == 640 * gib);
}

TEST_CASE("the scales of 8-bit values stand on a line of their own, and the lines add up")
{
    auto plan = plan_memory(llama_70b(8, kv_type::q8));
    std::int64_t total = 0, scales = 0;
    for (auto const& line : plan.lines) {
        total += line.bytes;
        if (line.name == "KV cache scales") scales = line.bytes;
    }
    // A scale of 4 bytes for each token, KV head, and one of K and V.
    CHECK(scales == std::int64_t(64) * 4096 * 80 * 8 * 2 * 4);
    CHECK(total == plan.total);
}

TEST_CASE("the cache takes what is left when not every sequence can be as long as the context")
{
    auto request = llama_70b(8, kv_type::f16);
    request.fixed = {{"weights", "some", 10 * gib}};
    request.memory = 50 * gib;
    auto plan = plan_memory(request);
    CHECK(plan.total <= plan.memory);
    CHECK(plan.memory - plan.total < 16 * 327680);
    CHECK(plan.kv_tokens() >= 4096);
}

TEST_CASE("what can never fit is refused with the derivation")
{
    auto request = llama_70b(8, kv_type::f16);
    request.fixed = {{"weights", "some", 10 * gib}};
    request.memory = 11 * gib;
    try {
        plan_memory(request);
        FAIL("it was accepted");
    } catch (error const& e) {
        CHECK(e.condition() == errc::never_fits);
        std::string text = e.what();
        CHECK(text.find("327,680 B a token × 4,096 tokens") != std::string::npos);
        CHECK(text.find("too much") != std::string::npos);
    }
}

TEST_CASE("a number of KV tokens that was asked for is given or refused, never lowered")
{
    auto request = llama_70b(8, kv_type::f16);
    request.kv_tokens = 1000;
    CHECK(plan_memory(request).pages == 63);
    request.kv_tokens = 10'000'000;
    request.memory = 100 * gib;
    CHECK_THROWS_AS(plan_memory(request), error);
}

TEST_CASE("layers that look equally far back share page tables")
{
    std::vector<kv_layer> layers;
    for (int i = 0; i < 6; ++i)
        layers.push_back({2, 64, i % 3 == 2 ? 0 : 512});
    auto kv = kv_geometry::of(layers, kv_type::f16);
    REQUIRE(kv.groups.size() == 2);
    CHECK(kv.groups[0].layers == std::vector<int>{0, 1, 3, 4});
    CHECK(kv.groups[1].layers == std::vector<int>{2, 5});
    CHECK(kv.bytes_per_token() == 6 * 2 * 64 * 2 * 2);
}

TEST_CASE("requests that make no sense are refused")
{
    auto request = llama_70b(8, kv_type::f16);
    request.context = 0;
    CHECK_THROWS_AS(plan_memory(request), error);
    request = llama_70b(8, kv_type::f16);
    request.sequences = -1;
    CHECK_THROWS_AS(plan_memory(request), error);
    request = llama_70b(8, kv_type::f16);
    request.kv_tokens = -5;
    CHECK_THROWS_AS(plan_memory(request), error);
}

TEST_CASE("bytes are written for people")
{
    CHECK(human_bytes(512) == "512 B");
    CHECK(human_bytes(1536) == "1.5 KiB");
    CHECK(human_bytes(std::int64_t(100) << 20) == "100 MiB");
    CHECK(human_bytes(80 * gib) == "80.0 GiB");
}
