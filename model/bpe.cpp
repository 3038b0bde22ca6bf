#include <plait/model/bpe.hpp>

#include <algorithm>
#include <bit>

namespace plait {
namespace {

// Below this many bytes a scan for the best pair is faster than a heap, and the work fits on the stack.
constexpr std::size_t short_piece = 48;

std::uint64_t hash(std::int32_t left, std::int32_t right) noexcept
{
    auto const key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
    return (key ^ key >> 29) * 0x9E3779B97F4A7C15u;
}

} // namespace

bpe::bpe(std::array<std::int32_t, 256> const& bytes, std::span<merge const> merges)
    : bytes_(bytes)
{
    std::size_t const slots = std::bit_ceil(2 * merges.size() + 2);
    table_.resize(slots);
    shift_ = 64u - static_cast<unsigned>(std::countr_zero(slots));
    for (std::size_t rank = 0; rank < merges.size(); ++rank) {
        auto const& m = merges[rank];
        std::size_t i = hash(m.left, m.right) >> shift_;
        while (table_[i].rank != no_rank && (table_[i].left != m.left || table_[i].right != m.right)) {
            i = (i + 1) & (slots - 1);
        }
        if (table_[i].rank == no_rank) table_[i] = {m.left, m.right, m.product, static_cast<std::uint32_t>(rank)};
    }
}

bpe::slot const& bpe::find(std::int32_t left, std::int32_t right) const noexcept
{
    std::size_t i = hash(left, right) >> shift_;
    while (table_[i].rank != no_rank && (table_[i].left != left || table_[i].right != right)) {
        i = (i + 1) & (table_.size() - 1);
    }
    return table_[i];
}

void bpe::encode(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const
{
    if (piece.size() <= short_piece) {
        encode_short(piece, out);
    } else {
        encode_long(piece, out, memory);
    }
}

void bpe::encode_short(std::string_view piece, std::vector<std::int32_t>& out) const
{
    std::int32_t ids[short_piece];
    slot const* pairs[short_piece]; // pairs[i]: what ids[i] and ids[i + 1] would become
    std::size_t count = 0;
    for (char const c : piece) {
        auto const id = bytes_[static_cast<unsigned char>(c)];
        if (id >= 0) ids[count++] = id;
    }
    for (std::size_t i = 0; i + 1 < count; ++i)
        pairs[i] = &find(ids[i], ids[i + 1]);
    while (count > 1) {
        std::size_t best = 0;
        for (std::size_t i = 1; i + 1 < count; ++i) {
            if (pairs[i]->rank < pairs[best]->rank) best = i;
        }
        if (pairs[best]->rank == no_rank) break;
        ids[best] = pairs[best]->product;
        std::copy(ids + best + 2, ids + count, ids + best + 1);
        if (best + 2 < count) std::copy(pairs + best + 2, pairs + count - 1, pairs + best + 1);
        --count;
        if (best > 0) pairs[best - 1] = &find(ids[best - 1], ids[best]);
        if (best + 1 < count) pairs[best] = &find(ids[best], ids[best + 1]);
    }
    out.insert(out.end(), ids, ids + count);
}

void bpe::encode_long(std::string_view piece, std::vector<std::int32_t>& out, scratch& memory) const
{
    auto& symbols = memory.symbols;
    auto& heap = memory.heap;
    symbols.clear();
    heap.clear();
    auto const later = [](auto const& a, auto const& b) { return a.order > b.order; };
    auto const candidate = [&](std::int32_t left) -> scratch::candidate {
        auto const& a = symbols[static_cast<std::size_t>(left)];
        auto const& b = symbols[static_cast<std::size_t>(a.next)];
        auto const rank = find(a.id, b.id).rank;
        // A rank of "none" is the greatest, so such pairs are told by it.
        return {static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(left), a.id, b.id};
    };
    auto const joins = [](scratch::candidate const& c) { return c.order >> 32 != no_rank; };

    for (char const c : piece) {
        auto const id = bytes_[static_cast<unsigned char>(c)];
        auto const at = static_cast<std::int32_t>(symbols.size());
        if (id >= 0) symbols.push_back({id, at - 1, at + 1});
    }
    if (symbols.empty()) return;
    symbols.back().next = -1;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
        auto const c = candidate(static_cast<std::int32_t>(i));
        if (joins(c)) heap.push_back(c);
    }
    std::make_heap(heap.begin(), heap.end(), later);

    while (!heap.empty()) {
        std::pop_heap(heap.begin(), heap.end(), later);
        auto const top = heap.back();
        heap.pop_back();
        auto const left = static_cast<std::int32_t>(top.order & 0xFFFFFFFFu);
        auto& a = symbols[static_cast<std::size_t>(left)];
        // Symbols only grow, so an entry is out of date exactly when either id has changed. A symbol that was
        // joined to its left neighbour has id -1.
        if (a.id != top.left_id || a.next < 0) continue;
        auto& b = symbols[static_cast<std::size_t>(a.next)];
        if (b.id != top.right_id) continue;

        a.id = find(a.id, b.id).product;
        a.next = b.next;
        b.id = -1;
        if (a.next >= 0) symbols[static_cast<std::size_t>(a.next)].previous = left;
        for (std::int32_t const at : {a.previous, left}) {
            if (at < 0 || symbols[static_cast<std::size_t>(at)].next < 0) continue;
            auto const c = candidate(at);
            if (!joins(c)) continue;
            heap.push_back(c);
            std::push_heap(heap.begin(), heap.end(), later);
        }
    }
    for (std::int32_t i = 0; i >= 0; i = symbols[static_cast<std::size_t>(i)].next) {
        out.push_back(symbols[static_cast<std::size_t>(i)].id);
    }
}

} // namespace plait
