#include <plait/kernels/host/pack.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/numbers.hpp>

#include <cstring>
#include <string>

namespace plait::host {

namespace {

struct format_layout {
    std::size_t unit_columns; ///< columns of the smallest piece of a row: 1, or a block
    std::size_t file_bytes;   ///< of such a piece in the file
    std::size_t panel_bytes;  ///< of such a piece of 16 rows
};

format_layout layout(weight_format format)
{
    switch (format) {
    case weight_format::f32:
        return {1, 4, 64};
    case weight_format::f16:
    case weight_format::bf16:
        return {1, 2, 32};
    case weight_format::q4_0:
        return {32, 18, 288};
    case weight_format::q4_1:
        return {32, 20, 320};
    case weight_format::q8_0:
        return {32, 34, 544};
    }
    throw error(errc::invalid_argument, "weight format " + std::to_string(static_cast<int>(format)));
}

std::size_t units(format_layout const& form, weight_format format, std::int64_t cols)
{
    if (cols < 0 || static_cast<std::size_t>(cols) % form.unit_columns != 0)
        throw error(errc::invalid_argument,
                    std::to_string(cols) + " columns in blocks of 32 (" + std::string(name(format)) + ")");
    return static_cast<std::size_t>(cols) / form.unit_columns;
}

template<class T>
T load(std::byte const* from) noexcept
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

template<class T>
void store(std::byte* to, T value) noexcept
{
    std::memcpy(to, &value, sizeof value);
}

constexpr std::uint32_t low_halves = 0x0f0f0f0fu;
constexpr std::uint32_t offset_128 = 0x80808080u;

/// The 32 values of a 4-bit block: the file has columns 0 ... 15 in the low halves of its 16 bytes and 16 ... 31 in the
/// high ones; the panel pairs each four columns with the next four. `lane` is the row's first four bytes in the block.
void pack_nibbles(std::byte const* file, std::byte* lane) noexcept
{
    auto a = load<std::uint32_t>(file), b = load<std::uint32_t>(file + 4);
    auto c = load<std::uint32_t>(file + 8), d = load<std::uint32_t>(file + 12);
    store(lane, (a & low_halves) | (b & low_halves) << 4);
    store(lane + 64, (c & low_halves) | (d & low_halves) << 4);
    store(lane + 128, (a >> 4 & low_halves) | (b & ~low_halves));
    store(lane + 192, (c >> 4 & low_halves) | (d & ~low_halves));
}

/// Packs one row in its own format. `panel` is the row's panel, `lane` its place in it.
void pack_row(weight_format format, std::size_t count, std::byte const* file, std::byte* panel, std::size_t lane)
{
    switch (format) {
    case weight_format::f32:
        for (std::size_t i = 0; i < count; ++i)
            std::memcpy(panel + i * 64 + lane * 4, file + i * 4, 4);
        break;
    case weight_format::f16:
    case weight_format::bf16:
        for (std::size_t i = 0; i < count; ++i)
            std::memcpy(panel + i * 32 + lane * 2, file + i * 2, 2);
        break;
    case weight_format::q4_0:
        for (std::size_t i = 0; i < count; ++i, file += 18, panel += 288) {
            std::memcpy(panel + 256 + lane * 2, file, 2);
            pack_nibbles(file + 2, panel + lane * 4);
        }
        break;
    case weight_format::q4_1:
        for (std::size_t i = 0; i < count; ++i, file += 20, panel += 320) {
            std::memcpy(panel + 256 + lane * 2, file, 2);
            std::memcpy(panel + 288 + lane * 2, file + 2, 2);
            pack_nibbles(file + 4, panel + lane * 4);
        }
        break;
    case weight_format::q8_0:
        for (std::size_t i = 0; i < count; ++i, file += 34, panel += 544) {
            std::memcpy(panel + 512 + lane * 2, file, 2);
            for (std::size_t j = 0; j < 8; ++j)
                store(panel + j * 64 + lane * 4, load<std::uint32_t>(file + 2 + j * 4) ^ offset_128);
        }
        break;
    }
}

/// Zeroes one row of a panel: scales and minima of 0, whatever the values.
void clear_row(weight_format format, std::size_t count, std::byte* panel, std::size_t lane)
{
    auto unit = layout(format).panel_bytes;
    for (std::size_t i = 0; i < count; ++i, panel += unit) {
        if (format == weight_format::f32) {
            std::memset(panel + lane * 4, 0, 4);
        } else if (format == weight_format::f16 || format == weight_format::bf16) {
            std::memset(panel + lane * 2, 0, 2);
        } else {
            auto groups = format == weight_format::q8_0 ? 8u : 4u;
            for (std::size_t j = 0; j < groups; ++j)
                std::memset(panel + j * 64 + lane * 4, 0, 4);
            for (auto at = groups * 64; at < unit; at += 32)
                std::memset(panel + at + lane * 2, 0, 2);
        }
    }
}

/// Writes a row of the file to `out`, every `stride`-th float.
void dequantise_row(weight_format format, std::size_t count, std::byte const* file, float* out, std::size_t stride)
{
    for (std::size_t i = 0; i < count; ++i) {
        switch (format) {
        case weight_format::f32:
            out[i * stride] = load<float>(file + i * 4);
            break;
        case weight_format::f16:
            out[i * stride] = f16_to_f32(load<std::uint16_t>(file + i * 2));
            break;
        case weight_format::bf16:
            out[i * stride] = bf16_to_f32(load<std::uint16_t>(file + i * 2));
            break;
        case weight_format::q4_0:
        case weight_format::q4_1: {
            bool minimum = format == weight_format::q4_1;
            auto block = file + i * (minimum ? 20 : 18);
            auto d = f16_to_f32(load<std::uint16_t>(block));
            auto m = minimum ? f16_to_f32(load<std::uint16_t>(block + 2)) : 0.0f;
            auto values = block + (minimum ? 4 : 2);
            for (std::size_t j = 0; j < 16; ++j) {
                auto byte = std::to_integer<int>(values[j]);
                auto low = byte & 15, high = byte >> 4;
                auto to = out + (i * 32 + j) * stride;
                to[0] = minimum ? d * static_cast<float>(low) + m : d * static_cast<float>(low - 8);
                to[16 * stride] = minimum ? d * static_cast<float>(high) + m : d * static_cast<float>(high - 8);
            }
            break;
        }
        case weight_format::q8_0: {
            auto block = file + i * 34;
            auto d = f16_to_f32(load<std::uint16_t>(block));
            for (std::size_t j = 0; j < 32; ++j)
                out[(i * 32 + j) * stride] = d * static_cast<float>(load<std::int8_t>(block + 2 + j));
            break;
        }
        }
    }
}

} // namespace

std::size_t file_row_bytes(weight_format format, std::int64_t cols)
{
    auto form = layout(format);
    return units(form, format, cols) * form.file_bytes;
}

std::size_t panel_bytes(weight_format format, std::int64_t cols)
{
    auto form = layout(format);
    return units(form, format, cols) * form.panel_bytes;
}

std::size_t packed_bytes(weight_format format, std::int64_t rows, std::int64_t cols)
{
    return static_cast<std::size_t>((rows + panel_rows - 1) / panel_rows) * panel_bytes(format, cols);
}

void pack_rows(weight_format file_format, weight_format packed_format, std::int64_t rows, std::int64_t cols,
               std::byte const* file_rows, std::byte* panels, std::int64_t first_row, interleave place)
{
    if (packed_format != file_format && packed_format != weight_format::f32)
        throw error(errc::invalid_argument,
                    std::string(name(file_format)) + " weights packed as " + std::string(name(packed_format)));
    auto file_form = layout(file_format);
    auto file_count = units(file_form, file_format, cols);
    auto packed_count = units(layout(packed_format), packed_format, cols);
    auto panel_size = panel_bytes(packed_format, cols);
    auto panel_of = [&](std::int64_t row) {
        return panels + static_cast<std::size_t>(row / panel_rows * place.step + place.offset) * panel_size;
    };
    auto last = first_row + rows;
    for (auto row = first_row; row < last; ++row, file_rows += file_count * file_form.file_bytes) {
        auto lane = static_cast<std::size_t>(row % panel_rows);
        if (packed_format == file_format)
            pack_row(file_format, file_count, file_rows, panel_of(row), lane);
        else
            dequantise_row(file_format, file_count, file_rows, reinterpret_cast<float*>(panel_of(row)) + lane, 16);
    }
    for (auto row = last; rows > 0 && row % panel_rows != 0; ++row)
        clear_row(packed_format, packed_count, panel_of(row), static_cast<std::size_t>(row % panel_rows));
}

void unpack_row(weight_view const& weights, std::int64_t row, float* out)
{
    auto form = layout(weights.format);
    auto count = units(form, weights.format, weights.cols);
    auto lane = static_cast<std::size_t>(row % panel_rows);
    auto panel = weights.panels + static_cast<std::size_t>(row / panel_rows) * count * form.panel_bytes;
    for (std::size_t i = 0; i < count; ++i, panel += form.panel_bytes) {
        switch (weights.format) {
        case weight_format::f32:
            out[i] = load<float>(panel + lane * 4);
            break;
        case weight_format::f16:
            out[i] = f16_to_f32(load<std::uint16_t>(panel + lane * 2));
            break;
        case weight_format::bf16:
            out[i] = bf16_to_f32(load<std::uint16_t>(panel + lane * 2));
            break;
        case weight_format::q4_0:
        case weight_format::q4_1: {
            bool minimum = weights.format == weight_format::q4_1;
            auto d = f16_to_f32(load<std::uint16_t>(panel + 256 + lane * 2));
            auto m = minimum ? f16_to_f32(load<std::uint16_t>(panel + 288 + lane * 2)) : 0.0f;
            for (std::size_t j = 0; j < 32; ++j) {
                auto byte = std::to_integer<int>(panel[j / 8 * 64 + lane * 4 + j % 4]);
                auto q = j % 8 < 4 ? byte & 15 : byte >> 4;
                out[i * 32 + j] = minimum ? d * static_cast<float>(q) + m : d * static_cast<float>(q - 8);
            }
            break;
        }
        case weight_format::q8_0: {
            auto d = f16_to_f32(load<std::uint16_t>(panel + 512 + lane * 2));
            for (std::size_t j = 0; j < 32; ++j) {
                auto q = std::to_integer<int>(panel[j / 4 * 64 + lane * 4 + j % 4]) - 128;
                out[i * 32 + j] = d * static_cast<float>(q);
            }
            break;
        }
        }
    }
}

} // namespace plait::host
