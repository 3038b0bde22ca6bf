#include <plait/kernels/host/pack.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/numbers.hpp>

#include <bit>
#include <cstring>
#include <doctest/doctest.h>
#include <limits>
#include <random>
#include <vector>

using namespace plait;
using namespace plait::host;

namespace {

constexpr weight_format formats[] = {weight_format::f32,  weight_format::f16,  weight_format::bf16,
                                     weight_format::q4_0, weight_format::q4_1, weight_format::q8_0};

std::vector<std::byte> random_file(weight_format format, std::int64_t rows, std::int64_t cols, unsigned seed)
{
    std::mt19937 random(seed);
    std::vector<std::byte> file(static_cast<std::size_t>(rows) * file_row_bytes(format, cols));
    for (auto& byte : file)
        byte = static_cast<std::byte>(random());
    // Any bits are a number; keep exponents small so that none is an infinity or a NaN, which equal nothing.
    if (format == weight_format::f32)
        for (std::size_t i = 3; i < file.size(); i += 4)
            file[i] &= std::byte{0xbf};
    if (format == weight_format::f16 || format == weight_format::bf16)
        for (std::size_t i = 1; i < file.size(); i += 2)
            file[i] &= std::byte{0xbf};
    auto block = format == weight_format::q4_0 ? 18u : format == weight_format::q4_1 ? 20u : 34u;
    if (takes_q8(format))
        for (std::size_t i = 0; i < file.size(); i += block) {
            file[i + 1] &= std::byte{0xbf};
            if (format == weight_format::q4_1) file[i + 3] &= std::byte{0xbf};
        }
    return file;
}

float half_at(std::byte const* at)
{
    std::uint16_t bits;
    std::memcpy(&bits, at, 2);
    return f16_to_f32(bits);
}

/// Element by element from the description of the GGUF block formats, sharing nothing with the code under test.
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
    }
    return 0;
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
    int wrong = 0;
    for (std::int64_t c = 0; c < view.cols; ++c) {
        auto expected = file_weight(format, file_row, c);
        wrong +=
            std::bit_cast<std::uint32_t>(expected) != std::bit_cast<std::uint32_t>(row[static_cast<std::size_t>(c)]);
    }
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
    // Rows that fill panels cost what they cost in the file.
    for (auto format : formats)
        CHECK(packed_bytes(format, 32, 96) == 32 * file_row_bytes(format, 96));
}

TEST_CASE("a packed row dequantises to the reference's values, whatever the format")
{
    for (auto format : formats)
        for (std::int64_t rows : {1, 15, 16, 17, 40}) {
            std::int64_t cols = takes_q8(format) ? 96 : 37;
            auto file = random_file(format, rows, cols, 7);
            auto m = pack(format, format, rows, cols, file.data());
            for (std::int64_t r = 0; r < rows; ++r)
                check_row(m.view, r, format, file.data() + static_cast<std::size_t>(r) * file_row_bytes(format, cols));
        }
}

TEST_CASE("any file format packs as f32, exactly dequantised")
{
    for (auto format : formats) {
        auto file = random_file(format, 21, 64, 8);
        auto m = pack(format, weight_format::f32, 21, 64, file.data());
        for (std::int64_t r = 0; r < 21; ++r)
            check_row(m.view, r, format, file.data() + static_cast<std::size_t>(r) * file_row_bytes(format, 64));
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
        std::int64_t const rows[] = {20, 7, 9}, cols = 64;
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
            std::vector<float> row(64, 1.0f);
            unpack_row(view, first, row.data());
            for (auto value : row)
                CHECK(value == 0.0f);
        }
    }
}

TEST_CASE("a gate and an up projection alternate panel by panel")
{
    for (auto format : formats) {
        std::int64_t const rows = 40, cols = 32;
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
        auto file = random_file(format, 50, 64, 40);
        auto whole = pack(format, format, 50, 64, file.data());
        std::vector<std::byte> shifted(file.size() + 1);
        std::memcpy(shifted.data() + 1, file.data(), file.size());
        std::vector<std::byte> pieces(whole.bytes.size(), std::byte{0x11});
        for (std::int64_t first = 48; first >= 0; first -= 16)
            pack_rows(format, format, std::min<std::int64_t>(16, 50 - first), 64,
                      shifted.data() + 1 + static_cast<std::size_t>(first) * file_row_bytes(format, 64), pieces.data(),
                      first);
        CHECK(pieces == whole.bytes);
    }
}

TEST_CASE("a matrix that can't be packed is refused with its reason")
{
    std::byte nothing[64] = {};
    CHECK_THROWS_WITH_AS(file_row_bytes(weight_format::q4_1, 48), doctest::Contains("48 columns"), error);
    CHECK_THROWS_AS(packed_bytes(weight_format::q8_0, 4, -32), error);
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
}
