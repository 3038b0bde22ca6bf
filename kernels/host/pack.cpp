#include <plait/kernels/host/pack.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/block_layout.hpp>
#include <plait/kernels/host/block_rows.hpp>
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
    if (static_cast<int>(format) >= weight_format_count)
        throw error(errc::invalid_argument, "weight format " + std::to_string(static_cast<int>(format)));
    if (format == weight_format::f32) return {1, 4, 64};
    if (!takes_q8(format)) return {1, 2, 32};
    auto block = layout_of(format);
    return {static_cast<std::size_t>(block.columns), static_cast<std::size_t>(block.file_bytes),
            static_cast<std::size_t>(block.panel_bytes())};
}

std::size_t units(format_layout const& form, weight_format format, std::int64_t cols)
{
    if (cols < 0 || static_cast<std::size_t>(cols) % form.unit_columns != 0)
        throw error(errc::invalid_argument, std::to_string(cols) + " columns in blocks of " +
                                                std::to_string(form.unit_columns) + " (" + std::string(name(format)) +
                                                ")");
    return static_cast<std::size_t>(cols) / form.unit_columns;
}

template<class T>
T load(std::byte const* from) noexcept
{
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

/// Packs one row in its own format. `panel` is the row's panel, `lane` its place in it.
void pack_row(weight_format format, std::size_t count, std::byte const* file, std::byte* panel, std::size_t lane)
{
    if (takes_q8(format)) return rows_of_blocks(format).pack(count, file, panel, lane);
    std::size_t const bytes = format == weight_format::f32 ? 4 : 2;
    for (std::size_t i = 0; i < count; ++i)
        std::memcpy(panel + (i * 16 + lane) * bytes, file + i * bytes, bytes);
}

/// Zeroes one row of a panel.
void clear_row(weight_format format, std::size_t count, std::byte* panel, std::size_t lane)
{
    if (takes_q8(format)) return rows_of_blocks(format).clear(count, panel, lane);
    std::size_t const bytes = format == weight_format::f32 ? 4 : 2;
    for (std::size_t i = 0; i < count; ++i)
        std::memset(panel + (i * 16 + lane) * bytes, 0, bytes);
}

/// One number of a format without blocks.
float float_at(weight_format format, std::byte const* from) noexcept
{
    if (format == weight_format::f32) return load<float>(from);
    auto half = load<std::uint16_t>(from);
    return format == weight_format::f16 ? f16_to_f32(half) : bf16_to_f32(half);
}

/// Writes a row of the file to `out`, every `stride`-th float.
void dequantise_row(weight_format format, std::size_t count, std::byte const* file, float* out, std::size_t stride)
{
    if (takes_q8(format)) return rows_of_blocks(format).dequantise(count, file, out, stride);
    std::size_t const bytes = format == weight_format::f32 ? 4 : 2;
    for (std::size_t i = 0; i < count; ++i)
        out[i * stride] = float_at(format, file + i * bytes);
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
    if (takes_q8(weights.format)) return rows_of_blocks(weights.format).unpack(count, panel, lane, out);
    for (std::size_t i = 0; i < count; ++i)
        out[i] = float_at(weights.format, panel + i * form.panel_bytes + lane * form.file_bytes);
}

} // namespace plait::host
