#include <plait/model/text/bpe.hpp>

#include <algorithm>
#include <bit>
#include <functional>

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
    make_table(merges.size());
    for (std::size_t rank = 0; rank < merges.size(); ++rank)
        add(merges[rank], static_cast<std::uint32_t>(rank));
}

bpe::bpe(std::span<ranked_merge const> merges)
{
    bytes_.fill(-1);
    make_table(merges.size());
    for (auto const& m : merges)
        add(m.what, m.rank);
}

void bpe::make_table(std::size_t merges)
{
    std::size_t const slots = std::bit_ceil(2 * merges + 2);
    table_.resize(slots);
    shift_ = 64u - static_cast<unsigned>(std::countr_zero(slots));
}

void bpe::add(merge const& m, std::uint32_t rank) noexcept
{
    std::size_t i = hash(m.left, m.right) >> shift_;
    while (table_[i].rank != no_rank && (table_[i].left != m.left || table_[i].right != m.right))
        i = (i + 1) & (table_.size() - 1);
    if (table_[i].rank == no_rank) table_[i] = {m.left, m.right, m.product, rank};
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
        std::int32_t ids[short_piece];
        std::size_t count = 0;
        for (char const c : piece) {
            auto const id = bytes_[static_cast<unsigned char>(c)];
            if (id >= 0) ids[count++] = id;
        }
        count = join_short(ids, count, memory);
        out.insert(out.end(), ids, ids + count);
        return;
    }
    memory.symbols_.clear();
    for (char const c : piece) {
        auto const id = bytes_[static_cast<unsigned char>(c)];
        if (id >= 0) memory.symbols_.push_back({id, 0, 0});
    }
    join_long(out, memory);
}

void bpe::join(std::span<std::int32_t const> symbols, std::vector<std::int32_t>& out, scratch& memory) const
{
    if (symbols.size() <= short_piece) {
        std::int32_t ids[short_piece];
        std::copy(symbols.begin(), symbols.end(), ids);
        std::size_t const count = join_short(ids, symbols.size(), memory);
        out.insert(out.end(), ids, ids + count);
        return;
    }
    memory.symbols_.clear();
    memory.symbols_.reserve(symbols.size());
    for (auto const id : symbols)
        memory.symbols_.push_back({id, 0, 0});
    join_long(out, memory);
}

// Joins `count` symbols in place and returns how many are left.
std::size_t bpe::join_short(std::int32_t* ids, std::size_t count, scratch& memory) const
{
    slot const* pairs[short_piece]; // pairs[i]: what ids[i] and ids[i + 1] would become
    memory.steps_ += count;
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
        memory.steps_ += 2;
        if (best > 0) pairs[best - 1] = &find(ids[best - 1], ids[best]);
        if (best + 1 < count) pairs[best] = &find(ids[best], ids[best + 1]);
    }
    return count;
}

void bpe::scratch::places::add(std::int32_t at)
{
    if (head == rising.size() || rising.back() <= at) {
        rising.push_back(at);
        return;
    }
    late.push_back(at);
    std::push_heap(late.begin(), late.end(), std::greater<>());
}

std::int32_t bpe::scratch::places::take_first()
{
    if (head < rising.size() && (late.empty() || rising[head] <= late.front())) return rising[head++];
    std::pop_heap(late.begin(), late.end(), std::greater<>());
    auto const at = late.back();
    late.pop_back();
    return at;
}

bpe::scratch::places& bpe::scratch::of(std::uint32_t rank)
{
    auto const [found, fresh] = by_rank_.try_emplace(rank, static_cast<std::uint32_t>(used_));
    if (fresh) {
        if (used_ == places_.size()) places_.emplace_back();
        auto& p = places_[used_++];
        p.rank = rank;
        p.rising.clear();
        p.head = 0;
        p.late.clear();
        p.queued = false;
    }
    auto& p = places_[found->second];
    if (!p.queued) {
        p.queued = true;
        queue_.push_back(static_cast<std::uint64_t>(rank) << 32 | found->second);
        std::push_heap(queue_.begin(), queue_.end(), std::greater<>());
    }
    return p;
}

// The order is by rank, then by position. So there is one queue of places for each rank that occurs, and a heap of the
// ranks: long runs of the same pair, which is what long pieces are made of, cost no heap operation a place.
void bpe::join_long(std::vector<std::int32_t>& out, scratch& memory) const
{
    auto& symbols = memory.symbols_;
    auto& queue = memory.queue_;
    queue.clear();
    memory.by_rank_.clear();
    memory.used_ = 0;
    if (symbols.empty()) return;
    auto const symbol = [&](std::int32_t at) -> scratch::symbol& { return symbols[static_cast<std::size_t>(at)]; };
    auto const note = [&](std::int32_t left) {
        if (left < 0 || symbol(left).next < 0) return;
        ++memory.steps_;
        auto const& pair = find(symbol(left).id, symbol(symbol(left).next).id);
        if (pair.rank != no_rank) memory.of(pair.rank).add(left);
    };

    for (std::size_t i = 0; i < symbols.size(); ++i) {
        symbols[i].previous = static_cast<std::int32_t>(i) - 1;
        symbols[i].next = static_cast<std::int32_t>(i) + 1;
    }
    symbols.back().next = -1;
    for (std::size_t i = 0; i < symbols.size(); ++i)
        note(static_cast<std::int32_t>(i));

    while (!queue.empty()) {
        auto& places = memory.places_[queue.front() & 0xFFFFFFFFu];
        if (places.empty()) {
            std::pop_heap(queue.begin(), queue.end(), std::greater<>());
            queue.pop_back();
            places.queued = false;
            continue;
        }
        // A place is out of date where the pair that stands there now has another rank. A symbol that was joined to
        // its left neighbour has id -1, which no pair has.
        auto const rank = places.rank;
        auto const at = places.take_first();
        auto& left = symbol(at);
        ++memory.steps_;
        if (left.id == -1 || left.next < 0) continue;
        auto const& pair = find(left.id, symbol(left.next).id);
        if (pair.rank != rank) continue;
        auto& right = symbol(left.next);
        left.id = pair.product;
        left.next = right.next;
        right.id = -1;
        if (left.next >= 0) symbol(left.next).previous = at;
        note(left.previous);
        note(at);
    }
    for (std::int32_t at = 0; at >= 0; at = symbol(at).next)
        out.push_back(symbol(at).id);
}

} // namespace plait
