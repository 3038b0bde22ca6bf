#include <plait/actors/error.hpp>
#include <plait/kernels/host/attention_ops.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/tests/support/host_kernels.hpp>

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>

using namespace plait;
using namespace plait::host;
using namespace plait::test;

namespace {

struct shape {
    std::int32_t heads;
    std::int32_t kv_heads;
    std::int32_t dims;
    std::int32_t rope_dims;
    kv_type type = kv_type::f16;
    rope_style style = rope_style::pairs;
    bool norms = false;
    norm_kind norm = norm_kind::rms;
    bool own_weights = false; ///< of each head
};

constexpr std::int32_t rows = 45;
constexpr std::int32_t page_count = 8;
std::int32_t const first_pages[] = {6, 2};
std::int32_t const second_pages[] = {1, 7, 0};
// Rows 0 to 21 are positions 3 to 24 of one sequence, rows 22 to 44 positions 15 to 37 of another.
// Both have a prefix, for the styles that ask; the second has a part of the table to itself.
constexpr std::int32_t second_angles = 40;
sequence_chunk const chunks[] = {{0, 22, 3, first_pages, 9}, {22, 23, 15, second_pages, 20, second_angles}};

struct result {
    buffer<float> qkv;
    buffer<std::byte> pages;
};

struct problem {
    shape s;
    std::size_t width = static_cast<std::size_t>((s.heads + 2 * s.kv_heads) * s.dims);
    rope_table table{rope_frequencies(s.rope_dims, 1e4), 80};
    buffer<float> qkv = random_floats(rows * width, 11);
    buffer<float> query_norm = random_floats(static_cast<std::size_t>(s.heads * s.dims), 12);
    buffer<float> key_norm = random_floats(static_cast<std::size_t>(s.kv_heads * s.dims), 13);

    result run(isa set, unsigned workers) const
    {
        result r{qkv, buffer<std::byte>(page_count * page_bytes(s.type, s.kv_heads, s.dims), std::byte{0xff})};
        rope_args args;
        args.qkv = r.qkv.data();
        args.stride = static_cast<std::int64_t>(width);
        args.heads = s.heads;
        args.kv = {s.type, s.kv_heads, s.dims, r.pages.data(), page_bytes(s.type, s.kv_heads, s.dims)};
        args.rope = table.view();
        args.style = s.style;
        if (s.norms) {
            args.query_norm = query_norm.data();
            args.key_norm = key_norm.data();
            args.norm = s.norm;
            args.norm_per_head_weights = s.own_weights;
            args.norm_eps = 1e-6f;
        }
        args.chunks = chunks;
        run_all(attention_ops(set).rope_and_store, args, workers);
        return r;
    }
};

std::vector<shape> shapes()
{
    std::vector<shape> all;
    for (auto type : {kv_type::f32, kv_type::f16, kv_type::q8})
        for (auto style : {rope_style::pairs, rope_style::halves}) {
            all.push_back({3, 1, 64, 64, type, style});
            all.push_back({4, 2, 80, 20, type, style, true});
            all.push_back({2, 2, 20, 10, type, style});
            all.push_back({1, 1, 32, 0, type, style});
            all.push_back({2, 1, 48, 48, type, style, true, norm_kind::layer});
            all.push_back({4, 2, 20, 20, type, style, true, norm_kind::layer, true});
            all.push_back({3, 3, 64, 32, type, rope_style::two_halves, style == rope_style::pairs});
            all.push_back({2, 1, 20, 10, type, rope_style::two_halves});
        }
    return all;
}

} // namespace

TEST_CASE("rotation turns each pair by position times frequency and passes the other dimensions")
{
    for (auto const& s : shapes()) {
        problem p{s};
        auto out = p.run(isa::scalar, 1).qkv;
        auto frequencies = rope_frequencies(s.rope_dims, 1e4);
        double worst = 0;
        for (auto const& chunk : chunks)
            for (std::int32_t r = 0; r < chunk.rows; ++r)
                for (std::int32_t head = 0; head < s.heads + 2 * s.kv_heads; ++head) {
                    auto at = static_cast<std::size_t>(chunk.first_row + r) * p.width +
                              static_cast<std::size_t>(head * s.dims);
                    std::vector<double> x(p.qkv.begin() + static_cast<std::ptrdiff_t>(at),
                                          p.qkv.begin() + static_cast<std::ptrdiff_t>(at) + s.dims);
                    bool const query = head < s.heads;
                    if (s.norms && head < s.heads + s.kv_heads) {
                        auto const* weight = (query ? p.query_norm : p.key_norm).data();
                        if (s.own_weights) weight += (query ? head : head - s.heads) * s.dims;
                        double mean = 0, sum = 0;
                        for (double v : x)
                            mean += s.norm == norm_kind::layer ? v / s.dims : 0;
                        for (double v : x)
                            sum += (v - mean) * (v - mean);
                        for (std::size_t d = 0; d < x.size(); ++d)
                            x[d] = (x[d] - mean) * weight[d] / std::sqrt(sum / s.dims + 1e-6);
                    }
                    auto turn = [&](std::size_t first, std::int32_t position) {
                        for (std::size_t i = 0; i < frequencies.size(); ++i) {
                            bool const pairs = s.style == rope_style::pairs;
                            auto a = first + (pairs ? 2 * i : i);
                            auto b = first + (pairs ? 2 * i + 1 : i + frequencies.size());
                            double angle = (position + chunk.rope_table_offset) * frequencies[i];
                            double turned = x[a] * std::cos(angle) - x[b] * std::sin(angle);
                            x[b] = x[a] * std::sin(angle) + x[b] * std::cos(angle);
                            x[a] = turned;
                        }
                    };
                    auto position = chunk.first_position + r;
                    if (head >= s.heads + s.kv_heads) {
                        // values stay as they are
                    } else if (s.style == rope_style::two_halves) {
                        turn(0, std::min(position, chunk.prefix - 1));
                        turn(2 * frequencies.size(), std::max(0, position - (chunk.prefix - 1)));
                    } else {
                        turn(0, position);
                    }
                    for (std::size_t d = 0; d < x.size(); ++d)
                        worst = std::max(worst, std::fabs(out[at + d] - x[d]));
                }
        CHECK(worst < 4e-6);
    }
}

TEST_CASE("two-dimensional positions are those of ChatGLM-6B: up to the prompt's last but one, then by blocks")
{
    // A prompt of three tokens: positions 0, 1, 1, 1 and blocks 0, 0, 1, 2.
    sequence_chunk const chunk{5, 4, 0, nullptr, 2};
    rope_args args;
    args.style = rope_style::two_halves;
    std::int64_t const first[] = {0, 1, 1, 1}, second[] = {0, 0, 1, 2};
    for (std::int64_t r = 0; r < 4; ++r) {
        CHECK(rope_rows_of(args, chunk, 5 + r).first == first[r]);
        CHECK(rope_rows_of(args, chunk, 5 + r).second == second[r]);
    }
}

TEST_CASE("keys and values are found at their place in the page, in the stored type")
{
    for (auto const& s : shapes()) {
        problem p{s};
        auto out = p.run(isa::scalar, 1);
        auto layout = layout_of(s.type, s.dims);
        auto dims = static_cast<std::size_t>(s.dims);
        int wrong = 0;
        for (auto const& chunk : chunks)
            for (std::int32_t r = 0; r < chunk.rows; ++r)
                for (std::size_t head = 0; head < static_cast<std::size_t>(s.kv_heads); ++head)
                    for (bool value : {false, true}) {
                        auto position = static_cast<std::size_t>(chunk.first_position + r);
                        auto slot = position % 16;
                        auto page = static_cast<std::size_t>(chunk.pages[position / 16]);
                        auto const* part =
                            out.pages.data() + page * page_bytes(s.type, s.kv_heads, s.dims) + head * layout.head_bytes;
                        float const* x = out.qkv.data() + static_cast<std::size_t>(chunk.first_row + r) * p.width +
                                         (static_cast<std::size_t>(s.heads + (value ? s.kv_heads : 0)) + head) * dims;
                        float scale = 0;
                        float largest = 0;
                        if (s.type == kv_type::q8) {
                            std::memcpy(&scale, part + layout.scales_offset + ((value ? 16 : 0) + slot) * 4, 4);
                            for (std::size_t d = 0; d < dims; ++d)
                                largest = std::max(largest, std::fabs(x[d]));
                            wrong += scale != largest / 127.0f;
                        }
                        for (std::size_t d = 0; d < dims; ++d) {
                            auto const* from = part + (value ? layout.values_offset : 0) +
                                               (value ? slot * dims + d : d * 16 + slot) * element_bytes(s.type);
                            if (s.type == kv_type::f32) wrong += std::memcmp(from, x + d, 4) != 0;
                            if (s.type == kv_type::f16) {
                                std::uint16_t half = f32_to_f16(x[d]);
                                wrong += std::memcmp(from, &half, 2) != 0;
                            }
                            if (s.type == kv_type::q8) {
                                auto stored = static_cast<float>(static_cast<std::int8_t>(*from)) * scale;
                                wrong += !(std::fabs(stored - x[d]) <= 0.5001f * scale);
                            }
                        }
                    }
        CHECK(wrong == 0);
    }
}

TEST_CASE("rotating and storing has the same bits in every instruction set and for any number of workers")
{
    for (auto const& s : shapes()) {
        problem p{s};
        auto expected = p.run(isa::scalar, 1);
        for (auto set : available_isas())
            for (unsigned workers : {1u, 2u, 3u, 16u}) {
                auto out = p.run(set, workers);
                REQUIRE(same_bits(out.qkv, expected.qkv));
                REQUIRE(same_bits(out.pages, expected.pages));
            }
    }
}

TEST_CASE("8-bit keys of zeros, of tiny numbers and with a NaN are stored with scales 0, 0 and NaN")
{
    problem p{{1, 1, 32, 0, kv_type::q8}};
    auto set_key = [&](std::size_t row, float value) {
        for (std::size_t d = 0; d < 32; ++d)
            p.qkv[row * p.width + 32 + d] = value;
    };
    set_key(0, 0.0f);
    set_key(1, 1e-38f);
    set_key(2, 1.0f);
    p.qkv[2 * p.width + 32 + 31] = std::numeric_limits<float>::quiet_NaN();
    set_key(3, 1.0f);
    p.qkv[3 * p.width + 32 + 7] = -std::numeric_limits<float>::infinity();
    auto layout = layout_of(kv_type::q8, 32);
    buffer<std::byte> expected;
    for (auto set : available_isas()) {
        auto out = p.run(set, 1).pages;
        auto const* part = out.data() + 6 * layout.head_bytes;
        float scales[4];
        std::memcpy(scales, part + layout.scales_offset + 3 * 4, sizeof scales);
        CHECK(scales[0] == 0);
        CHECK(scales[1] == 0);
        CHECK(std::isnan(scales[2]));
        CHECK(std::isnan(scales[3]));
        for (std::size_t d = 0; d < 32; ++d)
            for (std::size_t slot = 3; slot < 7; ++slot)
                CHECK(part[d * 16 + slot] == std::byte{0});
        if (expected.empty()) expected = out;
        CHECK(same_bits(out, expected));
    }
}

TEST_CASE("rope positions of their own move the angles, not the slots")
{
    problem p{{2, 1, 32, 32, kv_type::f32}};
    std::vector<std::int32_t> positions(rows);
    for (std::size_t i = 0; i < rows; ++i)
        positions[i] = static_cast<std::int32_t>(i % 5);
    for (auto set : available_isas()) {
        auto x = p.qkv;
        buffer<std::byte> pages(page_count * page_bytes(kv_type::f32, 1, 32));
        rope_args args;
        args.qkv = x.data();
        args.stride = static_cast<std::int64_t>(p.width);
        args.heads = 2;
        args.kv = {kv_type::f32, 1, 32, pages.data(), page_bytes(kv_type::f32, 1, 32)};
        args.rope = p.table.view();
        args.chunks = chunks;
        args.rope_positions = positions.data();
        run_all(attention_ops(set).rope_and_store, args);
        // Rows 0, 5, 10 … turn by nothing; row 1 turns its first pair by one radian.
        CHECK(std::memcmp(x.data() + 5 * p.width, p.qkv.data() + 5 * p.width, 64 * 4) == 0);
        float a = p.qkv[p.width];
        float b = p.qkv[p.width + 1];
        CHECK(x[p.width] == doctest::Approx(a * std::cos(1.0) - b * std::sin(1.0)));
        float first_key = 0; // position 3 of the first sequence
        std::memcpy(&first_key, pages.data() + 6 * page_bytes(kv_type::f32, 1, 32) + 3 * 4, 4);
        CHECK(first_key == x[2 * 32]);
    }
}

TEST_CASE("bad rope parameters are refused")
{
    CHECK_THROWS_AS(rope_frequencies(7, 1e4), error);
    CHECK_THROWS_AS(rope_frequencies(-2, 1e4), error);
    CHECK_THROWS_AS(rope_frequencies(8, 0), error);
    CHECK_THROWS_AS(rope_table(rope_frequencies(8, 1e4), -1), error);
}

TEST_CASE("rope frequencies fall from 1 to the base's inverse, and a magnitude scales both functions")
{
    auto frequencies = rope_frequencies(64, 1e5);
    CHECK(frequencies.size() == 32);
    CHECK(frequencies[0] == 1.0);
    CHECK(frequencies[16] == doctest::Approx(std::pow(1e5, -0.5)));
    rope_table table(frequencies, 4, 2.0);
    CHECK(table.view().dims == 64);
    CHECK(table.view().positions == 4);
    CHECK(table.view().cos[0] == 2.0f);
    CHECK(table.view().sin[3 * 32] == static_cast<float>(2 * std::sin(3.0)));
}
