#include <plait/actors/frame_pool.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PLAIT_NO_POOL 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define PLAIT_NO_POOL 1
#endif
#endif

namespace plait {

namespace {

[[maybe_unused]] constexpr std::size_t granule = 64;
constexpr std::size_t classes = 16;              // up to 1 KiB; larger frames are rare and go to the heap
[[maybe_unused]] constexpr unsigned kept = 1024; // per class and thread: bounds what a thread that only frees hoards

struct free_block {
    free_block* next;
};

/// The pool and the counters of one thread.
struct thread_cache {
    std::array<free_block*, classes> free{};
    std::array<unsigned, classes> count{};
    std::atomic<std::int64_t> live{0}; // written by its thread only
    thread_cache* next = nullptr;
    thread_cache** previous = nullptr;

    thread_cache();
    ~thread_cache();
};

struct registry {
    std::mutex mutex;
    thread_cache* first = nullptr;
    std::atomic<std::int64_t> live{0}; // of threads that have ended, and of frames outside any cache
};

registry& all() noexcept
{
    static registry& instance = *new registry; // outlives every thread
    return instance;
}

/// Null before the first use and after the thread's destructors have run.
constinit thread_local thread_cache* mine = nullptr;
constinit thread_local bool ended = false;

thread_cache::thread_cache()
{
    auto& r = all();
    std::lock_guard lock(r.mutex);
    next = r.first;
    previous = &r.first;
    if (next) next->previous = &next;
    r.first = this;
}

thread_cache::~thread_cache()
{
    mine = nullptr;
    ended = true;
    for (auto* block : free) {
        while (block) {
            auto* after = block->next;
            ::operator delete(block);
            block = after;
        }
    }
    auto& r = all();
    std::lock_guard lock(r.mutex);
    *previous = next;
    if (next) next->previous = previous;
    r.live.fetch_add(live.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

thread_cache* cache() noexcept
{
    if (!mine && !ended) {
        thread_local thread_cache instance;
        mine = &instance;
    }
    return mine;
}

void count(int change) noexcept
{
    if (auto* c = cache()) {
        c->live.store(c->live.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
    } else {
        all().live.fetch_add(change, std::memory_order_relaxed);
    }
}

} // namespace

std::int64_t live_frames() noexcept
{
    auto& r = all();
    std::lock_guard lock(r.mutex);
    auto sum = r.live.load(std::memory_order_relaxed);
    for (auto* c = r.first; c; c = c->next) {
        sum += c->live.load(std::memory_order_relaxed);
    }
    return sum;
}

namespace detail {

void* allocate_node(std::size_t size)
{
#ifndef PLAIT_NO_POOL
    auto index = (size - 1) / granule;
    if (index < classes) {
        if (auto* c = cache()) {
            if (auto* block = c->free[index]) {
                c->free[index] = block->next;
                --c->count[index];
                return block;
            }
        }
        return ::operator new((index + 1) * granule);
    }
#endif
    return ::operator new(size);
}

void free_node(void* memory, [[maybe_unused]] std::size_t size) noexcept
{
#ifndef PLAIT_NO_POOL
    auto index = (size - 1) / granule;
    if (index < classes) {
        auto* c = cache();
        if (c && c->count[index] < kept) {
            c->free[index] = ::new (memory) free_block{c->free[index]};
            ++c->count[index];
            return;
        }
    }
#endif
    ::operator delete(memory);
}

void* allocate_frame(std::size_t size)
{
    auto* memory = allocate_node(size);
    count(1);
    return memory;
}

void free_frame(void* memory, std::size_t size) noexcept
{
    count(-1);
    free_node(memory, size);
}

} // namespace detail

} // namespace plait
