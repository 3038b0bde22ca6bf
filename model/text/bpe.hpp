#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plait {

/// Byte-level byte-pair encoding (Sennrich et al. 2016, with bytes as in GPT-2): starts from one token a byte and
/// joins neighbours, the pair earliest in the merge list first, the leftmost of equal pairs first, until no
/// neighbours are in the list. Immutable, so any number of threads may encode at once.
class bpe {
public:
    /// `left` followed by `right` may become `product`.
    struct merge {
        std::int32_t left;
        std::int32_t right;
        std::int32_t product;
    };

    /// The working memory of encode; keep one a thread to save allocations.
    class scratch;

    /// `bytes[b]` is the token of byte b, or -1: encoding drops such bytes, and their neighbours become adjacent.
    /// `merges` in order of rank, at most 2^31; of equal pairs the first counts.
    bpe(std::array<std::int32_t, 256> const& bytes, std::span<merge const> merges);

    /// Appends the tokens of `piece` (shorter than 2^31 bytes) to `out`. Takes O(n log n) for n bytes.
    void encode(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const;

private:
    static constexpr std::uint32_t no_rank = ~std::uint32_t{0};
    struct slot {
        std::int32_t left = -1, right = -1, product = -1;
        std::uint32_t rank = no_rank;
    };

    slot const& find(std::int32_t left, std::int32_t right) const noexcept;
    void encode_short(std::string_view piece, std::vector<std::int32_t>& out) const;
    void encode_long(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const;

    std::array<std::int32_t, 256> bytes_;
    std::vector<slot> table_; // open addressing, a power of two, at most half full
    unsigned shift_ = 0;
};

class bpe::scratch {
private:
    friend class bpe;

    struct symbol {
        std::int32_t id;
        std::int32_t previous, next; // neighbours, -1 at the ends
    };
    // The places where one pair stood when they were noted, each the position of its left symbol.
    struct places {
        slot const* pair = nullptr;
        std::vector<std::int32_t> rising; // from `head` on; almost all come in order
        std::size_t head = 0;
        std::vector<std::int32_t> late; // the others, a heap with the least on top
        bool queued = false;

        bool empty() const noexcept { return head == rising.size() && late.empty(); }
        void add(std::int32_t at);
        std::int32_t take_first();
    };

    places& of(slot const& pair);

    std::vector<symbol> symbols_;
    std::vector<places> places_; // the first `used_` of them are in use
    std::size_t used_ = 0;
    std::unordered_map<std::uint32_t, std::uint32_t> by_rank_; // rank to index into places_
    std::vector<std::uint64_t> queue_; // rank and index of places that are not known to be empty; least rank on top
};

} // namespace plait
