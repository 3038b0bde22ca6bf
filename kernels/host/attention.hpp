#pragma once

#include <plait/kernels/host/types.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/streams/share.hpp>

#include <span>

namespace plait::host {

/// Keys of one step of the online softmax: tile t holds positions 64t … 64t + 63 whatever the chunk, so that a prompt
/// gives the same bits in one piece or in many.
inline constexpr std::int64_t attention_tile = 64;

/// Causal attention over pages, grouped heads: query head h reads KV head h / (heads / kv_heads).
///
/// For a query at position p the visible keys are max(0, p - window + 1) … max(p, prefix - 1), with the prefix of its
/// chunk. In F32, every rounding written down:
/// - score(k): a = fma(q[d], key[d], a), d ascending from a = 0; for `q8`, a = a * key scale; then a * scale;
///   with a soft cap c: c * tanh(a * (1 / c)).
/// - tiles ascending, those without a visible key skipped: m' = max(m, the tile's scores); f = exp(m - m');
///   w(k) = exp(score(k) - m'); lane l = k % 16 of the denominator: l = l * f, then l = l + w(k), k ascending;
///   output d: o = o * f, then o = fma(w(k), value[d], o), k ascending; for `q8`, w(k) * value scale takes w(k)'s
///   place.
/// - result: o * (1 / s), s = `sum_lanes`(l); with a sink (a score without a value) s + exp(sink - m).
/// Hidden keys take no part, whatever the page holds there. (Milakov and Gimelshein, arXiv:1805.02867; Dao,
/// arXiv:2307.08691.)
struct attention_args {
    float const* queries = nullptr; ///< rows x heads * head_dim, normalised and rotated
    std::int64_t stride = 0;        ///< floats from one row to the next
    std::int32_t heads = 0;         ///< a multiple of kv.kv_heads
    paged_kv kv;                    ///< head_dim is at most 512
    std::span<sequence_chunk const> chunks;
    float scale = 1;
    float soft_cap = 0;           ///< 0: none
    std::int32_t window = 0;      ///< keys a query sees up to its own, itself included; 0: all
    activation_view out;          ///< rows x heads * head_dim; F32, quantised (head_dim a multiple of 32), or both
    float const* sinks = nullptr; ///< of each head, or null: none (Xiao et al., arXiv:2309.17453; gpt-oss)
};

/// The position after the last one that a row of a chunk sees.
static inline std::int32_t visible_end(sequence_chunk const& chunk, std::int32_t position) noexcept
{
    return chunk.prefix > position ? chunk.prefix : position + 1;
}

namespace scalar {
void attention(attention_args const& args, share part);
}
namespace avx2 {
void attention(attention_args const& args, share part);
}
namespace avx512 {
void attention(attention_args const& args, share part);
}

} // namespace plait::host
