#pragma once

#include <plait/kernels/host/sample.hpp>

#include <cstdint>

namespace plait::host {

/// Philox4x32-10, a counter-based random number generator (Salmon, Moraes, Dror and Shaw, "Parallel Random Numbers: As
/// Easy as 1, 2, 3", SC 2011). Its 128-bit counter is (16 * (token / 64) + token % 16, position, sequence) and its key
/// the seed; a token takes word token / 16 % 4. So 16 counters side by side give 64 neighbouring tokens.
namespace philox {

inline constexpr std::uint32_t multiplier_0 = 0xd2511f53u;
inline constexpr std::uint32_t multiplier_1 = 0xcd9e8d57u;
inline constexpr std::uint32_t weyl_0 = 0x9e3779b9u;
inline constexpr std::uint32_t weyl_1 = 0xbb67ae85u;
inline constexpr int rounds = 10;

} // namespace philox

/// Four words for one counter and key; replaces `counter`.
static inline void philox4x32(std::uint32_t (&counter)[4], std::uint32_t key_0, std::uint32_t key_1) noexcept
{
    for (int round = 0; round < philox::rounds; ++round) {
        auto a = static_cast<std::uint64_t>(philox::multiplier_0) * counter[0];
        auto b = static_cast<std::uint64_t>(philox::multiplier_1) * counter[2];
        counter[0] = static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key_0;
        counter[1] = static_cast<std::uint32_t>(b);
        counter[2] = static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key_1;
        counter[3] = static_cast<std::uint32_t>(a);
        key_0 += philox::weyl_0;
        key_1 += philox::weyl_1;
    }
}

/// The random word of a token.
static inline std::uint32_t token_bits(sample_params const& params, std::int32_t token) noexcept
{
    std::uint32_t counter[4] = {
        static_cast<std::uint32_t>(token / 64 * 16 + token % 16), static_cast<std::uint32_t>(params.position),
        static_cast<std::uint32_t>(params.sequence), static_cast<std::uint32_t>(params.sequence >> 32)};
    philox4x32(counter, static_cast<std::uint32_t>(params.seed), static_cast<std::uint32_t>(params.seed >> 32));
    return counter[token / 16 % 4];
}

} // namespace plait::host
