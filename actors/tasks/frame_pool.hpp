#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

namespace plait {

/// Coroutine frames alive in the process. Exact while no other thread starts or ends a coroutine; a test ends with the
/// number it began with.
std::int64_t live_frames() noexcept;

namespace detail {

/// Sanitizer builds take all memory from the heap, so that they see misuse.
inline constexpr bool frames_on_heap =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
    true;
#else
    false;
#endif
#else
    false;
#endif

/// The free memory of one thread, in classes of 64 bytes and on lines of their own. It comes from a reserve that all
/// threads share, in batches, and goes back there: a thread that only frees feeds those that only allocate. What was
/// needed once is kept for the process.
class memory_pool {
public:
    static constexpr std::size_t granule = 64;
    static constexpr std::size_t classes = 16; // up to 1 KiB; what is larger is rare and goes to the heap

    /// Null when there is none.
    void* take(std::size_t which) noexcept
    {
        auto& l = lists_[which];
        auto* b = l.first;
        if (!b) return nullptr;
        l.first = b->next;
        __builtin_prefetch(b->next, 1); // comes while this one is used
        // Not counted down: a sum in memory that every call changes would be what all of them wait for.
        l.count.store(b->count - 1, std::memory_order_relaxed);
        return b;
    }

    /// False when it has enough: then `give_batch` goes first.
    bool give(std::size_t which, void* memory) noexcept
    {
        auto& l = lists_[which];
        auto const count = l.first ? l.first->count : 0;
        if (count == most) return false;
        auto* const b = ::new (memory) block;
        b->next = l.first;
        b->count = count + 1;
        l.first = b;
        l.count.store(count + 1, std::memory_order_relaxed);
        return true;
    }

    /// How many pieces of memory are free; from any thread.
    std::int64_t free() const noexcept;

    /// What threads share.
    class reserve;
    void take_batch(std::size_t which, reserve& from);
    void give_batch(std::size_t which, reserve& to) noexcept;
    /// All of it.
    void give_all(reserve& to) noexcept;

private:
    static constexpr std::size_t batch = 64;
    static constexpr std::size_t most = 4 * batch; ///< a full mailbox of 256 goes round without the reserve

    struct block {
        block* next;
        std::size_t count; ///< of this and those after it
    };
    struct list {
        block* first = nullptr;
        std::atomic<std::size_t> count{0}; ///< written by its thread only
    };
    std::array<list, classes> lists_{};
};

/// A thread's pools.
struct frame_cache {
    memory_pool frames;
    memory_pool nodes;
    std::atomic<std::int64_t> large{0}; ///< frames that it has taken from the heap; written by its thread only

    /// Null before the thread's first use and after its destructors have run.
    static constinit thread_local frame_cache* mine;
};

/// What pools have taken from the system so far.
struct pool_growth {
    std::int64_t bytes = 0;
    std::int64_t maps = 0;
};
/// The pools of all threads together.
pool_growth taken_by_pools() noexcept;

void* allocate_frame_slowly(std::size_t size);
void free_frame_slowly(void* memory, std::size_t size) noexcept;
void* allocate_node_slowly(std::size_t size);
void free_node_slowly(void* memory, std::size_t size) noexcept;

/// Free memory of the calling thread, from one of its pools; null when there is none.
inline void* take_free(memory_pool frame_cache::* pool, std::size_t size) noexcept
{
    auto const which = (size - 1) / memory_pool::granule;
    auto* c = frame_cache::mine;
    return !frames_on_heap && which < memory_pool::classes && c ? (c->*pool).take(which) : nullptr;
}

/// False when the pool has enough, or there is none.
inline bool give_free(memory_pool frame_cache::* pool, void* memory, std::size_t size) noexcept
{
    auto const which = (size - 1) / memory_pool::granule;
    auto* c = frame_cache::mine;
    return !frames_on_heap && which < memory_pool::classes && c && (c->*pool).give(which, memory);
}

/// Memory for a coroutine's frame, which `live_frames` counts.
inline void* allocate_frame(std::size_t size)
{
    if (auto* memory = take_free(&frame_cache::frames, size)) return memory;
    return allocate_frame_slowly(size);
}

inline void free_frame(void* memory, std::size_t size) noexcept
{
    if (!give_free(&frame_cache::frames, memory, size)) free_frame_slowly(memory, size);
}

/// The same for what is not a coroutine, and not counted.
inline void* allocate_node(std::size_t size)
{
    if (auto* memory = take_free(&frame_cache::nodes, size)) return memory;
    return allocate_node_slowly(size);
}

inline void free_node(void* memory, std::size_t size) noexcept
{
    if (!give_free(&frame_cache::nodes, memory, size)) free_node_slowly(memory, size);
}

/// Gives a class its memory from the pool.
struct pooled {
    static void* operator new(std::size_t size) { return allocate_node(size); }
    static void operator delete(void* memory, std::size_t size) noexcept { free_node(memory, size); }
    // What wants a line of its own has it; what wants more is rare.
    static void* operator new(std::size_t size, std::align_val_t a)
    {
        return a <= std::align_val_t{memory_pool::granule} ? allocate_node(size) : ::operator new(size, a);
    }
    static void operator delete(void* memory, std::size_t size, std::align_val_t a) noexcept
    {
        if (a <= std::align_val_t{memory_pool::granule}) {
            free_node(memory, size);
        } else {
            ::operator delete(memory, a);
        }
    }
    static void* operator new(std::size_t, void* place) noexcept { return place; }
    static void operator delete(void*, void*) noexcept {}
};

} // namespace detail

} // namespace plait
