#pragma once

#include <plait/actors/tasks/frame_pool.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>

namespace plait::detail {

/// Memory that is never given back, in chunks that begin at a multiple of their size. A process that needs much of it
/// gets huge pages, where the system has them: works that wake in any order are everywhere in it, and small pages would
/// cost them a walk through the page tables each.
class growing_memory {
public:
    static constexpr std::size_t chunk = 65536;

    /// Throws std::bad_alloc.
    std::byte* take();

    /// What was taken from it, and in how many maps it comes; from any thread.
    pool_growth taken() const noexcept
    {
        return {taken_.load(std::memory_order_relaxed) * static_cast<std::int64_t>(chunk),
                maps_.load(std::memory_order_relaxed)};
    }

private:
    void grow();
    static std::byte* map_where_huge_pages_begin();

    std::mutex mutex_;
    std::byte* next_ = nullptr;
    std::byte* end_ = nullptr;
    std::atomic<std::int64_t> taken_{0};
    std::atomic<std::int64_t> maps_{0};
};

/// The beginning of a chunk, which is cut into pieces of one size: which of them are free. So they are handed out in
/// the order in which they lie, however they came back, and the processor fetches the next ones by itself. (A list of
/// what came back in any order has it wait for each.)
class chunk_of_pieces {
public:
    /// All of them free.
    static chunk_of_pieces* make(std::byte* memory, std::size_t size) noexcept
    {
        return ::new (memory) chunk_of_pieces(size);
    }
    /// Where a piece is from.
    static chunk_of_pieces& of(void* piece) noexcept
    {
        auto const offset = reinterpret_cast<std::uintptr_t>(piece) % growing_memory::chunk;
        return *reinterpret_cast<chunk_of_pieces*>(static_cast<std::byte*>(piece) - offset);
    }

    std::size_t free() const noexcept { return free_; }

    /// Calls `use` with the first of the free ones, up to `most`. How many there were.
    template<class Use>
    std::size_t take(std::size_t most, Use use) noexcept
    {
        auto const wanted = std::min(most, free_);
        for (std::size_t left = wanted; left > 0; ++first_) {
            auto& word = words_[first_];
            for (; word != 0 && left > 0; --left) {
                auto const bit = static_cast<std::size_t>(std::countr_zero(word));
                word &= word - 1;
                use(piece(64 * first_ + bit));
            }
            if (left == 0) break;
        }
        free_ -= wanted;
        return wanted;
    }

    void give(void* piece) noexcept
    {
        auto const offset = static_cast<std::size_t>(static_cast<std::byte*>(piece) - begin());
        auto const index = offset / size_;
        words_[index / 64] |= std::uint64_t(1) << index % 64;
        first_ = std::min(first_, index / 64);
        ++free_;
    }

    chunk_of_pieces* next = nullptr; ///< of those that have some

private:
    explicit chunk_of_pieces(std::size_t size) noexcept
        : size_(size)
        , free_((growing_memory::chunk - sizeof(chunk_of_pieces)) / size)
    {
        for (std::size_t i = 0; i < free_; ++i)
            words_[i / 64] |= std::uint64_t(1) << i % 64;
    }

    std::byte* begin() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
    std::byte* piece(std::size_t index) noexcept { return begin() + index * size_; }

    std::size_t const size_;
    std::size_t free_;
    std::size_t first_ = 0; ///< no word before this one has a free piece
    alignas(memory_pool::granule) std::array<std::uint64_t, growing_memory::chunk / memory_pool::granule / 64> words_{};
};

} // namespace plait::detail
