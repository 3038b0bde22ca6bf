#include <plait/actors/tasks/memory_chunks.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

using namespace plait;
using detail::chunk_of_pieces;
using detail::growing_memory;

namespace {

std::vector<std::byte*> take(chunk_of_pieces& from, std::size_t most)
{
    std::vector<std::byte*> out;
    auto const count = from.take(most, [&](std::byte* piece) { out.push_back(piece); });
    CHECK(out.size() == count);
    return out;
}

} // namespace

TEST_CASE("pieces of a chunk are handed out in the order in which they lie, in whatever order they came back")
{
    growing_memory memory;
    std::mt19937 random(7); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same in every run
    for (std::size_t const size : {64, 128, 448, 1024}) {
        CAPTURE(size);
        auto& chunk = *chunk_of_pieces::make(memory.take(), size);
        auto const all = chunk.free();
        CHECK(all == (growing_memory::chunk - sizeof(chunk_of_pieces)) / size);
        auto pieces = take(chunk, all + 5);
        REQUIRE(pieces.size() == all);
        CHECK(chunk.free() == 0);
        CHECK(take(chunk, 1).empty());
        // They do not overlap, lie within the chunk, and know it.
        for (std::size_t i = 0; i < all; ++i) {
            CHECK(&chunk_of_pieces::of(pieces[i]) == &chunk);
            CHECK(reinterpret_cast<std::uintptr_t>(pieces[i]) % detail::memory_pool::granule == 0);
            if (i > 0) CHECK(pieces[i] == pieces[i - 1] + size);
        }
        CHECK(pieces.back() + size <= reinterpret_cast<std::byte*>(&chunk) + growing_memory::chunk);

        for (int round = 0; round < 20; ++round) {
            std::shuffle(pieces.begin(), pieces.end(), random);
            auto const back = random() % all + 1;
            for (std::size_t i = 0; i < back; ++i)
                chunk.give(pieces[i]);
            CHECK(chunk.free() == back);
            std::vector<std::byte*> const given(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(back));
            auto again = take(chunk, back / 2);
            auto const rest = take(chunk, all);
            again.insert(again.end(), rest.begin(), rest.end());
            CHECK(std::ranges::is_sorted(again));
            CHECK(std::ranges::is_permutation(again, given));
        }
    }
}

TEST_CASE("a chunk begins at a multiple of its size")
{
    growing_memory memory;
    std::vector<std::byte*> chunks;
    for (int i = 0; i < 100; ++i)
        chunks.push_back(memory.take());
    for (auto* chunk : chunks) {
        CHECK(reinterpret_cast<std::uintptr_t>(chunk) % growing_memory::chunk == 0);
        chunk[0] = chunk[growing_memory::chunk - 1] = std::byte(1);
    }
    std::ranges::sort(chunks);
    CHECK(std::ranges::adjacent_find(chunks) == chunks.end());
    CHECK(memory.taken().bytes == 100 * static_cast<std::int64_t>(growing_memory::chunk));
    CHECK(memory.taken().maps == 4);
}

TEST_CASE("memory that came back at random is handed out in order again, and the same memory")
{
    if (detail::frames_on_heap) return;
    constexpr std::size_t count = 20'000;
    constexpr std::size_t size = 320;
    auto allocate = [] {
        std::vector<void*> out(count);
        for (auto& piece : out)
            piece = detail::allocate_node(size);
        return out;
    };
    auto pieces = allocate();
    auto const grown = detail::taken_by_pools().bytes;
    std::mt19937 random(7); // NOLINT(cert-msc32-c,cert-msc51-cpp): the same in every run
    for (int round = 0; round < 3; ++round) {
        std::shuffle(pieces.begin(), pieces.end(), random);
        for (auto* piece : pieces)
            detail::free_node(piece, size);
        pieces = allocate();
        // But for what this thread kept, and where it goes from one chunk to another.
        std::size_t behind = 0;
        for (std::size_t i = 1; i < count; ++i)
            behind += static_cast<std::byte*>(pieces[i]) == static_cast<std::byte*>(pieces[i - 1]) + size ? 1 : 0;
        CHECK(behind > count * 9 / 10);
    }
    CHECK(detail::taken_by_pools().bytes == grown);
    for (auto* piece : pieces)
        detail::free_node(piece, size);
}
