#include <plait/actors/frame_pool.hpp>

#include <mutex>

namespace plait {

namespace detail {

constinit thread_local frame_cache* frame_cache::mine = nullptr;

void to_heap(void* memory) noexcept
{
    ::operator delete(memory, std::align_val_t{memory_pool::granule});
}

std::int64_t memory_pool::free() const noexcept
{
    std::size_t sum = 0;
    for (auto const& l : lists_)
        sum += l.count.load(std::memory_order_relaxed);
    return static_cast<std::int64_t>(sum);
}

void memory_pool::clear() noexcept
{
    for (auto& l : lists_) {
        while (auto* b = l.first) {
            l.first = b->next;
            to_heap(b);
        }
        l.count.store(0, std::memory_order_relaxed);
    }
}

} // namespace detail

namespace {

using detail::frame_cache;
using detail::memory_pool;

/// A thread's cache, known to all.
struct listed_cache : frame_cache {
    listed_cache();
    ~listed_cache();

    std::int64_t balance() const noexcept { return from_heap.load(std::memory_order_relaxed) - frames.free(); }

    listed_cache* next = nullptr;
    listed_cache** previous = nullptr;
};

struct registry {
    std::mutex mutex;
    listed_cache* first = nullptr;
    std::atomic<std::int64_t> live{0}; // of threads that have ended, and of frames outside any cache
};

registry& all() noexcept
{
    static registry& instance = *new registry; // outlives every thread
    return instance;
}

constinit thread_local bool ended = false;

listed_cache::listed_cache()
{
    auto& r = all();
    std::lock_guard lock(r.mutex);
    next = r.first;
    previous = &r.first;
    if (next) next->previous = &next;
    r.first = this;
}

listed_cache::~listed_cache()
{
    mine = nullptr;
    ended = true;
    auto& r = all();
    std::lock_guard lock(r.mutex);
    *previous = next;
    if (next) next->previous = previous;
    r.live.fetch_add(balance(), std::memory_order_relaxed);
    frames.clear();
    nodes.clear();
}

/// Null where the thread is about to end.
frame_cache* cache() noexcept
{
    if (!frame_cache::mine && !ended) {
        thread_local listed_cache instance;
        frame_cache::mine = &instance;
    }
    return frame_cache::mine;
}

/// Frames that come from the heap, or go there.
void count(int change) noexcept
{
    if (auto* c = cache()) {
        c->from_heap.store(c->from_heap.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
    } else {
        all().live.fetch_add(change, std::memory_order_relaxed);
    }
}

/// Of its whole class, so that it can go to a pool.
void* from_heap(std::size_t size)
{
#ifndef PLAIT_FRAMES_ON_HEAP
    auto const which = (size - 1) / memory_pool::granule;
    if (which < memory_pool::classes) size = (which + 1) * memory_pool::granule;
#endif
    return ::operator new(size, std::align_val_t{memory_pool::granule});
}

} // namespace

std::int64_t live_frames() noexcept
{
    auto& r = all();
    std::lock_guard lock(r.mutex);
    auto sum = r.live.load(std::memory_order_relaxed);
    for (auto* c = r.first; c; c = c->next) {
        sum += c->balance();
    }
    return sum;
}

namespace detail {

void* allocate_frame_slowly(std::size_t size)
{
    auto* memory = from_heap(size);
    count(1);
    return memory;
}

void free_frame_slowly(void* memory, std::size_t) noexcept
{
    count(-1);
    to_heap(memory);
}

void* allocate_node_slowly(std::size_t size)
{
    cache();
    return from_heap(size);
}

} // namespace detail

} // namespace plait
