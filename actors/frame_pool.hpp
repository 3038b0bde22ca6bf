#pragma once

#include <cstddef>
#include <cstdint>

namespace plait {

/// Coroutine frames alive in the process. Exact while no other thread starts or ends a coroutine; a test ends with the
/// number it began with.
std::int64_t live_frames() noexcept;

namespace detail {

/// Memory for coroutine frames and messages, kept in free lists of the thread in classes of 64 bytes: a steady state
/// allocates nothing. May be freed on another thread. Sanitizer builds go to the heap, so that they see misuse.
void* allocate_frame(std::size_t size);
void free_frame(void* memory, std::size_t size) noexcept;

/// The same memory without the count, for what is not a coroutine.
void* allocate_node(std::size_t size);
void free_node(void* memory, std::size_t size) noexcept;

/// Gives a class its memory from the pool.
struct pooled {
    static void* operator new(std::size_t size) { return allocate_node(size); }
    static void operator delete(void* memory, std::size_t size) noexcept { free_node(memory, size); }
};

} // namespace detail

} // namespace plait
