#pragma once

#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/pack.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

/// Rows of weights as GGUF files have them, in every format.
namespace plait::test {

inline constexpr std::array<weight_format, weight_format_count> all_weight_formats = [] {
    std::array<weight_format, weight_format_count> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
        all[i] = static_cast<weight_format>(i);
    return all;
}();

/// The least number of columns from `cols` on that a matrix of the format can have.
constexpr std::int64_t columns_from(weight_format format, std::int64_t cols)
{
    auto block = columns_of_block(format);
    return (cols + block - 1) / block * block;
}

/// Where a block of a file has its F16 scale, and the one of its minima; -1 where it has none.
struct scale_places {
    int d = -1;
    int minimum = -1;
};

constexpr scale_places places_of_scales(weight_format format)
{
    switch (format) {
    case weight_format::q4_1:
    case weight_format::q5_1:
    case weight_format::q4_k:
    case weight_format::q5_k:
        return {0, 2};
    case weight_format::q2_k:
        return {80, 82};
    case weight_format::q3_k:
        return {108, -1};
    case weight_format::q6_k:
        return {208, -1};
    case weight_format::mxfp4:
        return {};
    default:
        return {0, -1};
    }
}

/// A weight's greatest value, in units of its block's d.
constexpr float largest_of_d(weight_format format)
{
    switch (format) {
    case weight_format::q4_0:
    case weight_format::q4_1:
        return 8;
    case weight_format::q5_0:
    case weight_format::q5_1:
        return 16;
    case weight_format::q8_0:
    case weight_format::iq4_nl:
        return 127;
    case weight_format::q2_k:
        return 45;
    case weight_format::q3_k:
        return 128;
    case weight_format::q4_k:
        return 945;
    case weight_format::q5_k:
        return 1953;
    case weight_format::q6_k:
        return 4096;
    case weight_format::iq4_xs:
        return 4064;
    default:
        return 1;
    }
}

/// Random weights of about 0.05, all codes and scales of runs alike. The same arguments give the same bytes.
inline std::vector<std::byte> random_weights(weight_format format, std::int64_t rows, std::int64_t cols, unsigned seed)
{
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    auto block = host::file_row_bytes(format, columns_of_block(format));
    std::vector<std::byte> file(static_cast<std::size_t>(rows) * host::file_row_bytes(format, cols));
    for (auto& byte : file)
        byte = static_cast<std::byte>(random());
    auto put_half = [&](std::size_t where, float value) {
        auto half = host::f32_to_f16(value);
        std::memcpy(file.data() + where, &half, 2);
    };
    auto places = places_of_scales(format);
    for (std::size_t i = 0; i < file.size(); i += block) {
        auto value = normal(random) * 0.05f;
        if (format == weight_format::f32) {
            std::memcpy(file.data() + i, &value, 4);
        } else if (format == weight_format::bf16) {
            auto half = host::f32_to_bf16(value);
            std::memcpy(file.data() + i, &half, 2);
        } else if (format == weight_format::mxfp4) {
            file[i] = static_cast<std::byte>(120 + random() % 4);
        } else if (places.minimum < 0) {
            put_half(i + static_cast<std::size_t>(places.d), value * 4 / largest_of_d(format));
        } else {
            auto d = (std::fabs(value) + 0.001f) * 4 / largest_of_d(format);
            put_half(i + static_cast<std::size_t>(places.d), d);
            // Of the K formats it is taken off, in units of their small minima.
            bool k = columns_of_block(format) == 256;
            auto half_range = static_cast<float>(format == weight_format::q5_1 || format == weight_format::q5_k ? 15.5
                                                 : format == weight_format::q2_k                                ? 1.5
                                                                                                                : 7.5);
            put_half(i + static_cast<std::size_t>(places.minimum), k ? d * half_range : -d * half_range);
        }
    }
    return file;
}

} // namespace plait::test
