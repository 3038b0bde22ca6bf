#include <algorithm>
#include <cstdint>
#include <cstring>

#include <plait/streams/host/carry_out.hpp>
#include <plait/streams/host/compute_pool.hpp>

namespace plait::host {

namespace {

/// Elements of a sum that are added at once: small enough for the first cache beside a summand.
constexpr std::int64_t chunk = 2048;

/// Shares are whole cache lines of the smallest element.
constexpr std::int64_t grain = 64;

using calls = std::span<collective_call const>;

/// Adds the elements from `at` on of every summand of every rank, in order; `size` elements are a summand.
void sum(float* __restrict to, calls all, std::int64_t size, std::int64_t at, std::int64_t count) noexcept
{
    bool first = true;
    for (auto const& call : all)
        for (std::int32_t part = 0; part < call.parts; ++part) {
            auto const* __restrict from = static_cast<float const*>(call.in) + part * size + at;
            if (std::exchange(first, false)) {
                std::copy_n(from, count, to);
            } else {
                for (std::int64_t i = 0; i < count; ++i)
                    to[i] += from[i];
            }
        }
}

void write(void* to, std::int64_t at, void const* from, std::int64_t from_at, std::int64_t count,
           element_kind element) noexcept
{
    auto const bytes = bytes_of(element);
    auto* const out = static_cast<std::byte*>(to) + at * bytes;
    auto const* const in = static_cast<std::byte const*>(from) + from_at * bytes;
    if (out != in) std::memcpy(out, in, static_cast<std::size_t>(count * bytes));
}

/// Each chunk is whole before any of it is written: `out` may be `in`.
void all_reduce(calls all, share part) noexcept
{
    auto const count = all[0].count;
    auto* const total = reinterpret_cast<float*>(part.scratch.data());
    auto const [first, last] = part.range(count, grain);
    for (auto at = first; at < last; at += chunk) {
        auto const n = std::min(chunk, last - at);
        sum(total, all, count, at, n);
        for (auto const& call : all)
            write(call.out, at, total, 0, n, element_kind::f32);
    }
}

/// Calls `visit` with a rank, an offset and a number of elements, for all of what `ranks` pieces of `count` elements
/// are, in the share's part of it.
template<class Visit>
void each_piece(std::int64_t ranks, std::int64_t count, share part, Visit visit) noexcept
{
    auto const [first, last] = part.range(ranks * count, grain);
    for (auto at = first; at < last;) {
        auto const rank = at / count;
        auto const n = std::min(last, (rank + 1) * count) - at;
        visit(rank, at - rank * count, n);
        at += n;
    }
}

void reduce_scatter(calls all, share part) noexcept
{
    auto const count = all[0].count;
    auto const size = count * static_cast<std::int64_t>(all.size());
    each_piece(std::ssize(all), count, part, [&](std::int64_t rank, std::int64_t from, std::int64_t n) {
        auto* const out = static_cast<float*>(all[static_cast<std::size_t>(rank)].out);
        for (std::int64_t at = 0; at < n; at += chunk)
            sum(out + from + at, all, size, rank * count + from + at, std::min(chunk, n - at));
    });
}

void all_gather(calls all, share part) noexcept
{
    auto const count = all[0].count;
    each_piece(std::ssize(all), count, part, [&](std::int64_t rank, std::int64_t from, std::int64_t n) {
        auto const& source = all[static_cast<std::size_t>(rank)];
        for (auto const& call : all)
            write(call.out, rank * count + from, source.in, from, n, source.element);
    });
}

void all_to_all(calls all, share part) noexcept
{
    auto const ranks = std::ssize(all);
    auto const count = all[0].count;
    // Piece i is what rank i / ranks gives rank i % ranks.
    each_piece(ranks * ranks, count, part, [&](std::int64_t piece, std::int64_t from, std::int64_t n) {
        auto const source = piece / ranks, target = piece % ranks;
        auto const& giver = all[static_cast<std::size_t>(source)];
        write(all[static_cast<std::size_t>(target)].out, source * count + from, giver.in, target * count + from, n,
              giver.element);
    });
}

/// From one to all others.
void copy(calls all, std::size_t source, share part) noexcept
{
    auto const& from = all[source];
    auto const [first, last] = part.range(from.count, grain);
    for (auto const& call : all)
        if (call.out != nullptr && first < last) write(call.out, first, from.in, first, last - first, from.element);
}

} // namespace

void carry_out(calls all, compute_pool& pool) noexcept
{
    if (all[0].count == 0) return;
    pool.run(
        [](void const* arguments, share part) {
            auto const all = *static_cast<calls const*>(arguments);
            switch (all[0].kind) {
            case collective_kind::all_reduce:
                return all_reduce(all, part);
            case collective_kind::all_gather:
                return all_gather(all, part);
            case collective_kind::reduce_scatter:
                return reduce_scatter(all, part);
            case collective_kind::all_to_all:
                return all_to_all(all, part);
            case collective_kind::broadcast:
                return copy(all, static_cast<std::size_t>(all[0].peer), part);
            case collective_kind::send:
            case collective_kind::receive:
                return copy(all, 0, part);
            }
        },
        &all);
}

} // namespace plait::host
