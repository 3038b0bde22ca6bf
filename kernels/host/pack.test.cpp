#include <plait/kernels/host/pack.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/tests/support/golden.hpp>
#include <plait/tests/support/paths.hpp>
#include <plait/tests/support/random_weights.hpp>

#include <bit>
#include <cmath>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <set>
#include <string>
#include <vector>

using namespace plait;
using namespace plait::host;

namespace {

constexpr auto formats = test::all_weight_formats;

std::vector<std::byte> random_file(weight_format format, std::int64_t rows, std::int64_t cols, unsigned seed)
{
    return test::random_weights(format, rows, cols, seed);
}

float half_at(std::byte const* at)
{
    std::uint16_t bits;
    std::memcpy(&bits, at, 2);
    return f16_to_f32(bits);
}

/// Element by element from the description of the GGUF block formats, sharing nothing with the code under test, for
/// formats of 32 columns; of the others `dequantised` is held against goldens.
float file_weight(weight_format format, std::byte const* row, std::int64_t column)
{
    auto block = column / 32, within = column % 32;
    auto nibble = [&](std::byte const* values) {
        auto byte = static_cast<unsigned>(values[within % 16]);
        return static_cast<float>(within < 16 ? byte & 15u : byte >> 4);
    };
    switch (format) {
    case weight_format::f32: {
        float value;
        std::memcpy(&value, row + column * 4, 4);
        return value;
    }
    case weight_format::f16:
        return half_at(row + column * 2);
    case weight_format::bf16: {
        std::uint16_t bits;
        std::memcpy(&bits, row + column * 2, 2);
        return std::bit_cast<float>(std::uint32_t{bits} << 16);
    }
    case weight_format::q4_0: {
        auto at = row + block * 18;
        return half_at(at) * (nibble(at + 2) - 8);
    }
    case weight_format::q4_1: {
        auto at = row + block * 20;
        float scaled = half_at(at) * nibble(at + 4);
        return scaled + half_at(at + 2);
    }
    case weight_format::q8_0: {
        auto at = row + block * 34;
        return half_at(at) * static_cast<float>(static_cast<signed char>(at[2 + within]));
    }
    default:
        return std::numeric_limits<float>::quiet_NaN();
    }
}

/// A row of a file as the code under test dequantises it.
std::vector<float> dequantised(weight_format format, std::byte const* row, std::int64_t cols)
{
    auto size = static_cast<std::size_t>(cols);
    std::vector<float> panel(size * 16), out(size);
    pack_rows(format, weight_format::f32, 1, cols, row, reinterpret_cast<std::byte*>(panel.data()), 0);
    for (std::size_t i = 0; i < size; ++i)
        out[i] = panel[i * 16];
    return out;
}

bool has_definition(weight_format format)
{
    return format <= weight_format::q4_1 || format == weight_format::q8_0;
}

struct packed_matrix {
    std::vector<std::byte> bytes;
    weight_view view;
};

packed_matrix pack(weight_format file_format, weight_format format, std::int64_t rows, std::int64_t cols,
                   std::byte const* file)
{
    packed_matrix m;
    m.bytes.assign(packed_bytes(format, rows, cols), std::byte{0xee});
    pack_rows(file_format, format, rows, cols, file, m.bytes.data(), 0);
    m.view = {format, rows, cols, m.bytes.data()};
    return m;
}

void check_row(weight_view const& view, std::int64_t packed_row, weight_format format, std::byte const* file_row)
{
    std::vector<float> row(static_cast<std::size_t>(view.cols));
    unpack_row(view, packed_row, row.data());
    auto expected = dequantised(format, file_row, view.cols);
    if (has_definition(format))
        for (std::int64_t c = 0; c < view.cols; ++c)
            expected[static_cast<std::size_t>(c)] = file_weight(format, file_row, c);
    int wrong = 0;
    for (std::size_t c = 0; c < row.size(); ++c)
        wrong += std::bit_cast<std::uint32_t>(expected[c]) != std::bit_cast<std::uint32_t>(row[c]);
    CHECK_MESSAGE(wrong == 0, name(format), " row ", packed_row);
}

} // namespace

TEST_CASE("sizes follow the GGUF blocks and the panels")
{
    CHECK(file_row_bytes(weight_format::q4_0, 64) == 36);
    CHECK(file_row_bytes(weight_format::q4_1, 64) == 40);
    CHECK(file_row_bytes(weight_format::q8_0, 64) == 68);
    CHECK(file_row_bytes(weight_format::f32, 7) == 28);
    CHECK(file_row_bytes(weight_format::bf16, 7) == 14);
    CHECK(packed_bytes(weight_format::q4_1, 17, 576) == 2 * 18 * 320);
    CHECK(packed_bytes(weight_format::q8_0, 16, 576) == 18 * 544);
    CHECK(packed_bytes(weight_format::f16, 0, 576) == 0);
    CHECK(file_row_bytes(weight_format::q6_k, 512) == 420);
    CHECK(packed_bytes(weight_format::q4_k, 17, 512) == 2 * 2 * 2368);
    // Rows that fill panels cost what they cost in the file, and 4% more at most where scales of 6 bits become bytes.
    for (auto format : formats) {
        auto panels = packed_bytes(format, 32, 768), file = 32 * file_row_bytes(format, 768);
        CHECK(panels >= file);
        CHECK(panels <= file + file * 4 / 100);
        bool six_bits = format >= weight_format::q3_k && format <= weight_format::q5_k;
        if (!six_bits && format != weight_format::iq4_xs) CHECK(panels == file);
        CHECK(file_row_bytes(format, columns_of_block(format)) * 2 ==
              file_row_bytes(format, 2 * columns_of_block(format)));
    }
}

TEST_CASE("a packed row dequantises to the reference's values, whatever the format")
{
    for (auto format : formats)
        for (std::int64_t rows : {1, 15, 16, 17, 40}) {
            std::int64_t cols = takes_q8(format) ? test::columns_from(format, 96) : 37;
            auto file = random_file(format, rows, cols, 7);
            auto m = pack(format, format, rows, cols, file.data());
            for (std::int64_t r = 0; r < rows; ++r)
                check_row(m.view, r, format, file.data() + static_cast<std::size_t>(r) * file_row_bytes(format, cols));
        }
}

TEST_CASE("any file format packs as f32, exactly dequantised")
{
    for (auto format : formats) {
        auto cols = test::columns_from(format, 64);
        auto file = random_file(format, 21, cols, 8);
        auto m = pack(format, weight_format::f32, 21, cols, file.data());
        for (std::int64_t r = 0; r < 21; ++r)
            check_row(m.view, r, format, file.data() + static_cast<std::size_t>(r) * file_row_bytes(format, cols));
    }
}

TEST_CASE("every block dequantises to the bits of the gguf package, whatever its codes and scales")
{
    test::golden_file const golden(test::test_data("weights/blocks.golden"));
    for (auto format : formats) {
        if (!takes_q8(format)) continue;
        std::string const array(name(format));
        CAPTURE(array);
        auto file = golden.values<std::uint8_t>(array + "/file");
        auto expected = golden.values<float>(array + "/f32");
        auto rows = static_cast<std::int64_t>(golden.shape(array + "/file")[0]);
        auto cols = static_cast<std::int64_t>(golden.shape(array + "/f32")[1]);
        REQUIRE(cols == columns_of_block(format));
        REQUIRE(file.size() == static_cast<std::size_t>(rows) * file_row_bytes(format, cols));
        auto bytes = reinterpret_cast<std::byte const*>(file.data());
        auto packed = pack(format, format, rows, cols, bytes);
        int wrong = 0, wrong_in_panel = 0, numbers = 0;
        std::vector<float> unpacked(static_cast<std::size_t>(cols));
        for (std::int64_t r = 0; r < rows; ++r) {
            auto row = dequantised(format, bytes + static_cast<std::size_t>(r) * file_row_bytes(format, cols), cols);
            unpack_row(packed.view, r, unpacked.data());
            for (std::size_t c = 0; c < row.size(); ++c) {
                auto reference = expected[static_cast<std::size_t>(r) * row.size() + c];
                auto same = [&](float value) {
                    if (std::isnan(reference)) return std::isnan(value);
                    return std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(reference);
                };
                numbers += !std::isnan(reference);
                wrong += !same(row[c]);
                wrong_in_panel += !same(unpacked[c]);
            }
        }
        CHECK(wrong == 0);
        CHECK(wrong_in_panel == 0);
        CHECK(numbers > rows * cols / 2);
    }
}

TEST_CASE("every bit pattern of an 8-bit weight and a 4-bit pair survives the panels")
{
    std::vector<std::byte> file(8 * 34);
    for (int block = 0; block < 8; ++block) {
        file[static_cast<std::size_t>(block * 34 + 1)] = std::byte{0x3c}; // 1.0
        for (int i = 0; i < 32; ++i)
            file[static_cast<std::size_t>(block * 34 + 2 + i)] = static_cast<std::byte>(block * 32 + i);
    }
    check_row(pack(weight_format::q8_0, weight_format::q8_0, 1, 256, file.data()).view, 0, weight_format::q8_0,
              file.data());

    std::vector<std::byte> nibbles(16 * 18);
    for (int block = 0; block < 16; ++block) {
        nibbles[static_cast<std::size_t>(block * 18 + 1)] = std::byte{0x3c};
        for (int i = 0; i < 16; ++i)
            nibbles[static_cast<std::size_t>(block * 18 + 2 + i)] = static_cast<std::byte>(block * 16 + i);
    }
    check_row(pack(weight_format::q4_0, weight_format::q4_0, 1, 512, nibbles.data()).view, 0, weight_format::q4_0,
              nibbles.data());
}

TEST_CASE("matrices are concatenated at any row and padded with zero weights")
{
    for (auto format : formats) {
        std::int64_t const rows[] = {20, 7, 9}, cols = test::columns_from(format, 64);
        std::vector<std::byte> panels(packed_bytes(format, 36, cols), std::byte{0xee});
        std::vector<std::byte> files[3];
        std::int64_t first = 0;
        for (int i = 0; i < 3; ++i) {
            files[i] = random_file(format, rows[i], cols, 20u + static_cast<unsigned>(i));
            pack_rows(format, format, rows[i], cols, files[i].data(), panels.data(), first);
            first += rows[i];
        }
        weight_view view{format, 48, cols, panels.data()};
        first = 0;
        for (int i = 0; i < 3; ++i)
            for (std::int64_t r = 0; r < rows[i]; ++r)
                check_row(view, first++, format,
                          files[i].data() + static_cast<std::size_t>(r) * file_row_bytes(format, cols));
        for (; first < 48; ++first) {
            std::vector<float> row(static_cast<std::size_t>(cols), 1.0f);
            unpack_row(view, first, row.data());
            for (auto value : row)
                CHECK(value == 0.0f);
        }
    }
}

TEST_CASE("a gate and an up projection alternate panel by panel")
{
    for (auto format : formats) {
        std::int64_t const rows = 40, cols = test::columns_from(format, 32);
        auto gate = random_file(format, rows, cols, 31), up = random_file(format, rows, cols, 32);
        std::vector<std::byte> panels(2 * packed_bytes(format, rows, cols), std::byte{0xee});
        pack_rows(format, format, rows, cols, gate.data(), panels.data(), 0, {2, 0});
        pack_rows(format, format, rows, cols, up.data(), panels.data(), 0, {2, 1});
        weight_view view{format, 96, cols, panels.data()};
        for (std::int64_t r = 0; r < rows; ++r) {
            auto at = static_cast<std::size_t>(r) * file_row_bytes(format, cols);
            check_row(view, r / 16 * 32 + r % 16, format, gate.data() + at);
            check_row(view, r / 16 * 32 + 16 + r % 16, format, up.data() + at);
        }
    }
}

TEST_CASE("rows packed a panel at a time give the same bytes, and the file needs no alignment")
{
    for (auto format : formats) {
        auto cols = test::columns_from(format, 64);
        auto file = random_file(format, 50, cols, 40);
        auto whole = pack(format, format, 50, cols, file.data());
        std::vector<std::byte> shifted(file.size() + 1);
        std::memcpy(shifted.data() + 1, file.data(), file.size());
        std::vector<std::byte> pieces(whole.bytes.size(), std::byte{0x11});
        for (std::int64_t first = 48; first >= 0; first -= 16)
            pack_rows(format, format, std::min<std::int64_t>(16, 50 - first), cols,
                      shifted.data() + 1 + static_cast<std::size_t>(first) * file_row_bytes(format, cols),
                      pieces.data(), first);
        CHECK(pieces == whole.bytes);
    }
}

TEST_CASE("a matrix that can't be packed is refused with its reason")
{
    std::byte nothing[64] = {};
    CHECK_THROWS_WITH_AS(file_row_bytes(weight_format::q4_1, 48), doctest::Contains("48 columns"), error);
    CHECK_THROWS_AS(packed_bytes(weight_format::q8_0, 4, -32), error);
    CHECK_THROWS_WITH_AS(packed_bytes(weight_format::q4_k, 4, 288), doctest::Contains("288 columns in blocks of 256"),
                         error);
    CHECK_THROWS_WITH_AS(pack_rows(weight_format::q4_0, weight_format::q8_0, 0, 32, nothing, nothing, 0),
                         doctest::Contains("q4_0 weights packed as q8_0"), error);
    CHECK_THROWS_AS(packed_bytes(static_cast<weight_format>(99), 4, 32), error);
}

TEST_CASE("a 16-bit float is read exactly and written to the nearest, ties to even")
{
    CHECK(f16_to_f32(0x3c00) == 1.0f);
    CHECK(f16_to_f32(0x0001) == 0x1p-24f);
    CHECK(f16_to_f32(0x7bff) == 65504.0f);
    CHECK(f16_to_f32(0xfc00) == -std::numeric_limits<float>::infinity());
    CHECK(std::bit_cast<std::uint32_t>(f16_to_f32(0x8000)) == 0x80000000u);
    CHECK(f32_to_f16(65519.996f) == 0x7bff);
    CHECK(f32_to_f16(65520.0f) == 0x7c00);
    CHECK(f32_to_f16(0x1p-25f) == 0);            // a tie, to even
    CHECK(f32_to_f16(0x1.8p-24f) == 2);          // another
    CHECK(f32_to_f16(0x1.000002p-25f) == 1);     // just above
    CHECK(f32_to_f16(0x1.ffdp0f) == 0x3ffe + 1); // exact
    CHECK(f32_to_f16(0x1.002p0f) == 0x3c00);     // a tie
    CHECK(f32_to_f16(0x1.006p0f) == 0x3c02);
    CHECK(e8m0_half_to_f32(0) == 0x1p-128f);
    CHECK(e8m0_half_to_f32(1) == 0x1p-127f);
    CHECK(e8m0_half_to_f32(2) == 0x1p-126f);
    CHECK(e8m0_half_to_f32(127) == 0.5f);
    CHECK(e8m0_half_to_f32(255) == 0x1p127f);
    CHECK(f32_to_bf16(1.0f) == 0x3f80);
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
    CHECK(f32_to_bf16(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
    CHECK(f32_to_bf16(std::numeric_limits<float>::max()) == 0x7f80);
    for (unsigned h = 0; h < 65536; ++h) {
        auto half = static_cast<std::uint16_t>(h);
        bool nan = (h & 0x7c00u) == 0x7c00u && (h & 0x3ffu) != 0;
        CHECK(f32_to_f16(f16_to_f32(half)) == (nan ? h | 0x200u : h));
    }
}

TEST_CASE("weight formats have names")
{
    CHECK(name(weight_format::q4_1) == "q4_1");
    CHECK(name(weight_format::bf16) == "bf16");
    CHECK(name(weight_format::mxfp4) == "mxfp4");
    std::set<std::string_view> names;
    for (auto format : formats)
        names.insert(name(format));
    CHECK(names.size() == formats.size());
    CHECK(!names.contains("unknown"));
}
