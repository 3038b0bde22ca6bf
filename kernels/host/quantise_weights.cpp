#include <plait/kernels/host/quantise_weights.hpp>

#include <plait/actors/error.hpp>
#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/pack.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace plait::host {

namespace {

constexpr int block = 32;

void store_half(std::byte* to, float value) noexcept
{
    auto half = f32_to_f16(value);
    std::memcpy(to, &half, sizeof half);
}

/// 1 / d, or 0 where that is no finite number: what is quantised with it becomes 0.
float inverse_of(float d) noexcept
{
    auto inverse = 1.0f / d;
    return std::isfinite(inverse) && std::isfinite(d) ? inverse : 0.0f;
}

void block_of_q8_0(float const* x, std::byte* to) noexcept
{
    float most = 0;
    for (int i = 0; i < block; ++i)
        most = std::max(most, std::fabs(x[i]));
    auto d = most / 127.0f;
    auto inverse = inverse_of(d);
    store_half(to, d);
    for (int i = 0; i < block; ++i)
        to[2 + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::round(x[i] * inverse)));
}

void block_of_q4_1(float const* x, std::byte* to) noexcept
{
    auto [least, most] = std::minmax_element(x, x + block);
    auto d = (*most - *least) / 15.0f;
    auto inverse = inverse_of(d);
    store_half(to, d);
    store_half(to + 2, *least);
    auto quantised = [&](float value) {
        if (inverse == 0) return 0;
        return std::min(15, static_cast<int>(std::floor((value - *least) * inverse + 0.5f)));
    };
    for (int i = 0; i < block / 2; ++i)
        to[4 + i] = static_cast<std::byte>(quantised(x[i]) | quantised(x[block / 2 + i]) << 4);
}

/// Scales of NaN, values of 0.
void block_of_nan(std::byte* to, std::size_t bytes, bool minimum) noexcept
{
    std::memset(to, 0, bytes);
    store_half(to, std::numeric_limits<float>::quiet_NaN());
    if (minimum) store_half(to + 2, std::numeric_limits<float>::quiet_NaN());
}

} // namespace

void quantise_weights(weight_format format, std::int64_t cols, float const* x, std::byte* file_row)
{
    if (!can_quantise_to(format))
        throw error(errc::invalid_argument, "weights quantised to " + std::string(name(format)));
    auto bytes = file_row_bytes(format, block);
    auto blocks = file_row_bytes(format, cols) / bytes;
    bool minimum = format == weight_format::q4_1;
    for (std::size_t i = 0; i < blocks; ++i, x += block, file_row += bytes) {
        if (!std::all_of(x, x + block, [](float value) { return std::isfinite(value); }))
            block_of_nan(file_row, bytes, minimum);
        else if (minimum)
            block_of_q4_1(x, file_row);
        else
            block_of_q8_0(x, file_row);
    }
}

} // namespace plait::host
