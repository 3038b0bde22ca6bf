#include <plait/model/convert/row_codec.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/pack.hpp>
#include <plait/kernels/host/quantise_weights.hpp>

#include <algorithm>
#include <cstring>
#include <string>

namespace plait {
namespace {

template<class Value, class Convert>
void convert(std::span<float const> values, std::byte* out, Convert to)
{
    for (std::size_t i = 0; i < values.size(); ++i) {
        Value const value = to(values[i]);
        std::memcpy(out + i * sizeof value, &value, sizeof value);
    }
}

} // namespace

void row_codec::decode(weight_format from, std::int64_t rows, std::int64_t cols, std::byte const* stored, float* out)
{
    // By way of a panel: what reads every format's block is there already.
    auto const row_bytes = host::file_row_bytes(from, cols);
    panel_.resize(host::panel_bytes(weight_format::f32, cols));
    for (std::int64_t row = 0; row < rows; row += panel_rows) {
        auto const some = std::min(panel_rows, rows - row);
        host::pack_rows(from, weight_format::f32, some, cols, stored + static_cast<std::size_t>(row) * row_bytes,
                        panel_.data(), 0);
        weight_view const panel{weight_format::f32, some, cols, panel_.data()};
        for (std::int64_t i = 0; i < some; ++i)
            host::unpack_row(panel, i, out + (row + i) * cols);
    }
}

bool row_codec::can_encode(ggml_type to) noexcept
{
    auto const format = computable(to);
    return to == ggml_type::f32 || to == ggml_type::f16 || to == ggml_type::bf16 ||
           (format && host::can_quantise_to(*format));
}

std::size_t row_codec::row_bytes(ggml_type to, std::int64_t cols) noexcept
{
    auto const& how = layout(to);
    return static_cast<std::size_t>(cols) / how.block * how.bytes;
}

void row_codec::encode(ggml_type to, std::int64_t cols, std::span<float const> values, std::byte* out)
{
    if (to == ggml_type::f32)
        std::memcpy(out, values.data(), values.size_bytes());
    else if (to == ggml_type::f16)
        convert<std::uint16_t>(values, out, [](float v) { return host::f32_to_f16(v); });
    else if (to == ggml_type::bf16)
        convert<std::uint16_t>(values, out, [](float v) { return host::f32_to_bf16(v); });
    else if (can_encode(to))
        for (std::size_t at = 0; at < values.size(); at += static_cast<std::size_t>(cols), out += row_bytes(to, cols))
            host::quantise_weights(*computable(to), cols, values.data() + at, out);
    else
        throw error(errc::invalid_argument, "type: " + std::string(layout(to).name) + " is not written");
}

} // namespace plait
