#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace plait {

/// Byte-pair encoding (Sennrich et al. 2016): starts from a sequence of symbols, such as one token a byte as in GPT-2,
/// and joins neighbours, the pair of the least rank first, the leftmost of equal ranks first, until no neighbours can
/// be joined. Immutable, so any number of threads may encode at once.
class bpe {
public:
    /// `left` followed by `right` may become `product`.
    struct merge {
        std::int32_t left;
        std::int32_t right;
        std::int32_t product;
    };
    /// A merge and its place in the order; many may share one.
    struct ranked_merge {
        merge what;
        std::uint32_t rank; ///< below 2^32 - 1
    };

    /// The working memory of encode; keep one a thread to save allocations.
    class scratch;

    /// `bytes[b]` is the token of byte b, or -1: encoding drops such bytes, and their neighbours become adjacent.
    /// `merges` in order of rank, at most 2^31; of equal pairs the first counts.
    bpe(std::array<std::int32_t, 256> const& bytes, std::span<merge const> merges);

    /// For symbols that are not bytes. Of equal pairs the first counts.
    explicit bpe(std::span<ranked_merge const> merges);

    /// Appends the tokens of `piece` (shorter than 2^31 bytes) to `out`. Takes O(n log n) for n bytes.
    void encode(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const;

    /// Joins `symbols` (fewer than 2^31, none of them -1) and appends what is left to `out`. Takes O(n log n).
    void join(std::span<std::int32_t const> symbols, std::vector<std::int32_t>& out, scratch& memory) const;

private:
    static constexpr std::uint32_t no_rank = ~std::uint32_t{0};
    struct slot {
        std::int32_t left = -1, right = -1, product = -1;
        std::uint32_t rank = no_rank;
    };

    void make_table(std::size_t merges);
    void add(merge const& m, std::uint32_t rank) noexcept;
    slot const& find(std::int32_t left, std::int32_t right) const noexcept;
    std::size_t join_short(std::int32_t* ids, std::size_t count, scratch& memory) const;
    void join_long(std::vector<std::int32_t>& out, scratch& memory) const;

    std::array<std::int32_t, 256> bytes_;
    std::vector<slot> table_; // open addressing, a power of two, at most half full
    unsigned shift_ = 0;
};

class bpe::scratch {
public:
    /// How many pairs were looked up and places tried so far: what time is spent on.
    std::uint64_t steps() const noexcept { return steps_; }
    /// Room for the symbols of a piece, for callers of join().
    std::vector<std::int32_t>& characters() noexcept { return characters_; }

private:
    friend class bpe;

    struct symbol {
        std::int32_t id;
        std::int32_t previous, next; // neighbours, -1 at the ends
    };
    // The places where pairs of one rank stood when they were noted, each the position of its left symbol.
    struct places {
        std::uint32_t rank = no_rank;
        std::vector<std::int32_t> rising; // from `head` on; almost all come in order
        std::size_t head = 0;
        std::vector<std::int32_t> late; // the others, a heap with the least on top
        bool queued = false;

        bool empty() const noexcept { return head == rising.size() && late.empty(); }
        void add(std::int32_t at);
        std::int32_t take_first();
    };

    places& of(std::uint32_t rank);

    std::vector<symbol> symbols_;
    std::vector<places> places_; // the first `used_` of them are in use
    std::size_t used_ = 0;
    std::unordered_map<std::uint32_t, std::uint32_t> by_rank_; // rank to index into places_
    std::uint64_t steps_ = 0;
    std::vector<std::int32_t> characters_;
    std::vector<std::uint64_t> queue_; // rank and index of places that are not known to be empty; least rank on top
};

} // namespace plait
