#pragma once

#include <plait/kernels/host/gumbel.hpp>
#include <plait/kernels/host/sample.hpp>
#include <plait/kernels/host/wide/rows.hpp>

namespace plait::host::wide {

template<class L>
struct sampling {
    using vector = typename L::vector;
    using words = typename L::words;

    // Up to 16 logits; the lanes beyond `count` are -infinity.
    static vector load_logits(float const* p, std::int64_t count) noexcept
    {
        if (count >= 16) return L::load(p);
        return L::keep(load_part<L>(p, count), 0, static_cast<int>(count), L::set(-math::infinity));
    }

    static bool block_maxima(float const* logits, std::int64_t vocabulary, float* maxima) noexcept
    {
        std::uint32_t unordered = 0;
        std::int64_t first = 0;
        for (; first + 64 <= vocabulary; first += 64) {
            auto a = L::load(logits + first);
            auto b = L::load(logits + first + 16);
            auto c = L::load(logits + first + 32);
            auto d = L::load(logits + first + 48);
            // The sum is NaN if one is; it is also if infinities of both signs meet, so that is looked into below.
            unordered |= L::unordered(L::add(L::add(a, b), L::add(c, d)));
            maxima[first / 64] = L::largest(L::max(L::max(a, b), L::max(c, d)));
        }
        if (first < vocabulary) {
            auto largest = L::set(-math::infinity);
            for (auto t = first; t < vocabulary; t += 16) {
                auto v = load_logits(logits + t, vocabulary - t);
                unordered |= L::unordered(v);
                largest = L::max(largest, v);
            }
            maxima[first / 64] = L::largest(largest);
        }
        if (unordered == 0) return true;
        for (std::int64_t t = 0; t < vocabulary; t += 16)
            if (L::unordered(load_logits(logits + t, vocabulary - t))) return false;
        return true;
    }

    static float exp_sum(float const* logits, std::int64_t vocabulary, float max) noexcept
    {
        auto const m = L::set(max);
        auto sum = L::set(0);
        for (std::int64_t t = 0; t < vocabulary; t += 16)
            sum = L::add(sum, L::exp(L::sub(load_logits(logits + t, vocabulary - t), m)));
        return L::sum(sum);
    }

    static void weigh(float const* logits, std::int64_t count, float max, float inverse_temperature,
                      std::int64_t* units) noexcept
    {
        auto const m = L::set(max);
        auto const t = L::set(inverse_temperature);
        std::int64_t i = 0;
        for (; i + 16 <= count; i += 16)
            L::store_units(units + i, L::exp(L::mul(L::sub(L::load(logits + i), m), t)));
        if (i == count) return;
        std::int64_t part[16];
        L::store_units(part, L::exp(L::mul(L::sub(load_logits(logits + i, count - i), m), t)));
        std::memcpy(units + i, part, static_cast<std::size_t>(count - i) * sizeof(std::int64_t));
    }

    static std::uint64_t match(float const* logits, std::int64_t count, float lowest, float highest) noexcept
    {
        auto const low = L::set(lowest);
        auto const high = L::set(highest);
        std::uint64_t bits = 0;
        for (std::int64_t i = 0; i < count; i += 16) {
            auto v = load_logits(logits + i, count - i);
            auto outside = L::greater(low, v) | L::greater(v, high);
            bits |= static_cast<std::uint64_t>(~outside & 0xffffu) << i;
        }
        return bits;
    }

    static vector gumbel(words bits) noexcept
    {
        auto u = L::fma(L::to_float(L::template shift_right<9>(bits)), L::set(0x1p-23f), L::set(0x1p-24f));
        return L::negate(L::log(L::negate(L::log(u))));
    }

    // The words of the 64 tokens of a block: random[i] for its tokens 16 i … 16 i + 15.
    static void random_words(sample_params const& params, std::int64_t block, words (&random)[4]) noexcept
    {
        auto counter_0 = L::add(L::count_up(), L::set_words(static_cast<std::uint32_t>(block * 16)));
        auto counter_1 = L::set_words(static_cast<std::uint32_t>(params.position));
        auto counter_2 = L::set_words(static_cast<std::uint32_t>(params.sequence));
        auto counter_3 = L::set_words(static_cast<std::uint32_t>(params.sequence >> 32));
        auto key_0 = static_cast<std::uint32_t>(params.seed);
        auto key_1 = static_cast<std::uint32_t>(params.seed >> 32);
        auto const multiplier_0 = L::set_words(philox::multiplier_0);
        auto const multiplier_1 = L::set_words(philox::multiplier_1);
        for (int round = 0; round < philox::rounds; ++round) {
            words high_0, low_0, high_1, low_1;
            L::multiply(counter_0, multiplier_0, high_0, low_0);
            L::multiply(counter_2, multiplier_1, high_1, low_1);
            counter_0 = L::exclusive_or(L::exclusive_or(high_1, counter_1), L::set_words(key_0));
            counter_1 = low_1;
            counter_2 = L::exclusive_or(L::exclusive_or(high_0, counter_3), L::set_words(key_1));
            counter_3 = low_0;
            key_0 += philox::weyl_0;
            key_1 += philox::weyl_1;
        }
        random[0] = counter_0;
        random[1] = counter_1;
        random[2] = counter_2;
        random[3] = counter_3;
    }

    static std::int32_t draw(float const* logits, std::int64_t vocabulary, float const* maxima, draw_range const& range,
                             sample_params const& params) noexcept
    {
        auto const max = L::set(range.max);
        auto const inverse = L::set(range.inverse_temperature);
        auto const lowest = L::set(range.lowest);
        auto const last = L::set_words(static_cast<std::uint32_t>(range.last_token));
        auto best_scores = L::set(-math::infinity);
        auto best_tokens = L::set_words(~0u);
        float best = -math::infinity;
        for (std::int64_t block = 0; block * 64 < vocabulary; ++block) {
            if (!(maxima[block] >= range.lowest)) continue;
            // Rounding is monotonic, so no score of the block is above this.
            if ((maxima[block] - range.max) * range.inverse_temperature + largest_gumbel < best) continue;
            words random[4];
            random_words(params, block, random);
            for (int w = 0; w < 4; ++w) {
                auto first = block * 64 + 16 * w;
                if (first >= vocabulary) break;
                auto v = load_logits(logits + first, vocabulary - first);
                auto tokens = L::add(L::count_up(), L::set_words(static_cast<std::uint32_t>(first)));
                auto kept = L::greater(v, lowest) | (L::equal(v, lowest) & ~L::greater(tokens, last));
                if (kept == 0) continue;
                auto scores = L::add(L::mul(L::sub(v, max), inverse), gumbel(random[w]));
                auto better = L::greater(scores, best_scores) & kept;
                if (better == 0) continue;
                best_scores = L::select(better, scores, best_scores);
                best_tokens = L::select(better, tokens, best_tokens);
                best = L::largest(best_scores);
            }
        }
        float scores[16];
        std::int32_t tokens[16];
        L::store(scores, best_scores);
        L::store_words(tokens, best_tokens);
        std::int32_t token = -1;
        for (int i = 0; i < 16; ++i)
            if (tokens[i] >= 0 && (token < 0 || scores[i] > best || (scores[i] == best && tokens[i] < token))) {
                token = tokens[i];
                best = scores[i];
            }
        return token;
    }

    static constexpr sample_kernels kernels = {block_maxima, exp_sum, weigh, match, draw};
};

} // namespace plait::host::wide
