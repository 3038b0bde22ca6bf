#include <plait/actors/tasks/frame_pool.hpp>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include <sys/mman.h>

namespace plait {

namespace detail {

constinit thread_local frame_cache* frame_cache::mine = nullptr;

namespace {

/// Memory that is never given back, in pieces. A process that needs much of it gets huge pages,
/// where the system has them: works that wake in any order are everywhere in it, and small pages would cost them a walk
/// through the page tables each.
class growing_memory {
public:
    /// `size` bytes on a line of their own.
    std::byte* take(std::size_t size)
    {
        std::lock_guard lock(mutex_);
        if (static_cast<std::size_t>(end_ - next_) < size) grow();
        return std::exchange(next_, next_ + size);
    }

    /// What it has taken from the system; from any thread.
    pool_growth taken() const noexcept
    {
        return {bytes_.load(std::memory_order_relaxed), pieces_.load(std::memory_order_relaxed)};
    }

private:
    static constexpr std::size_t huge_page = std::size_t(2) << 20;
    static constexpr std::size_t small_piece = 65536; ///< more than the largest batch
    static constexpr std::int64_t little = 4 << 20;

    /// What is left of the last piece, less than the largest batch, is lost.
    void grow()
    {
        if (bytes_.load(std::memory_order_relaxed) >= little && use(map_huge(), huge_page)) return;
        if (!use(map(small_piece), small_piece)) throw std::bad_alloc();
    }

    bool use(std::byte* memory, std::size_t bytes) noexcept
    {
        if (memory == nullptr) return false;
        next_ = memory;
        end_ = memory + bytes;
        bytes_.fetch_add(static_cast<std::int64_t>(bytes), std::memory_order_relaxed);
        pieces_.fetch_add(1, std::memory_order_relaxed);
        return true;
    }

    static std::byte* map(std::size_t bytes) noexcept
    {
        auto* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        return memory == MAP_FAILED ? nullptr : static_cast<std::byte*>(memory);
    }

    /// One that begins where a huge page does; what is around it goes back.
    static std::byte* map_huge() noexcept
    {
        auto* const memory = map(2 * huge_page);
        if (memory == nullptr) return nullptr;
        auto const before = (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
        if (before > 0) ::munmap(memory, before);
        ::munmap(memory + before + huge_page, huge_page - before);
#ifdef MADV_HUGEPAGE
        ::madvise(memory + before, huge_page, MADV_HUGEPAGE); // a wish: without it all is as right
#endif
        return memory + before;
    }

    std::mutex mutex_;
    std::byte* next_ = nullptr;
    std::byte* end_ = nullptr;
    std::atomic<std::int64_t> bytes_{0};
    std::atomic<std::int64_t> pieces_{0};
};

} // namespace

/// Free memory in batches. Where it has none it cuts some from memory that grows.
class memory_pool::reserve {
public:
    /// A chain of up to `batch` pieces, each with its count.
    block* take(std::size_t which)
    {
        auto& l = lists_[which];
        {
            std::lock_guard lock(l.mutex);
            if (auto* chain = l.top) {
                l.top = chain->below;
                free_.fetch_sub(static_cast<std::int64_t>(chain->count), std::memory_order_relaxed);
                return chain;
            }
        }
        return cut(which);
    }

    void give(std::size_t which, block* chain) noexcept
    {
        auto& l = lists_[which];
        std::lock_guard lock(l.mutex);
        free_.fetch_add(static_cast<std::int64_t>(chain->count), std::memory_order_relaxed);
        chain->below = l.top;
        l.top = chain;
    }

    pool_growth taken() const noexcept { return memory_.taken(); }

    /// Pieces that are alive, in whatever thread's pool, or used.
    std::int64_t out() const noexcept
    {
        return cut_.load(std::memory_order_relaxed) - free_.load(std::memory_order_relaxed);
    }

private:
    block* cut(std::size_t which)
    {
        constexpr std::size_t most_bytes = 16384;
        auto const size = (which + 1) * granule;
        auto const count = std::clamp<std::size_t>(most_bytes / size, 1, batch);
        auto* const memory = memory_.take(count * size);
        block* chain = nullptr;
        for (std::size_t i = 0; i < count; ++i)
            chain = ::new (memory + (count - 1 - i) * size) block{chain, i + 1, nullptr};
        cut_.fetch_add(static_cast<std::int64_t>(count), std::memory_order_relaxed);
        return chain;
    }

    struct list {
        std::mutex mutex;
        block* top = nullptr; ///< of a pile of chains
    };
    std::array<list, classes> lists_;
    growing_memory memory_;
    std::atomic<std::int64_t> cut_{0};
    std::atomic<std::int64_t> free_{0};
};

std::int64_t memory_pool::free() const noexcept
{
    std::size_t sum = 0;
    for (auto const& l : lists_)
        sum += l.count.load(std::memory_order_relaxed);
    return static_cast<std::int64_t>(sum);
}

void memory_pool::take_batch(std::size_t which, reserve& from)
{
    auto& l = lists_[which];
    l.first = from.take(which);
    l.count.store(l.first->count, std::memory_order_relaxed);
}

void memory_pool::give_batch(std::size_t which, reserve& to) noexcept
{
    auto& l = lists_[which];
    auto* const newest = l.first;
    auto const kept = newest->count - batch;
    // The newest stay here, where they are in the processor's cache; those before them go.
    auto* last = newest;
    for (std::size_t i = 1; i < kept; ++i)
        last = last->next;
    auto* const chain = last->next;
    last->next = nullptr;
    for (auto* b = newest; b; b = b->next)
        b->count -= batch;
    l.count.store(kept, std::memory_order_relaxed);
    to.give(which, chain);
}

void memory_pool::give_all(reserve& to) noexcept
{
    for (std::size_t which = 0; which < classes; ++which) {
        auto& l = lists_[which];
        if (l.first) to.give(which, std::exchange(l.first, nullptr));
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

    listed_cache* next = nullptr;
    listed_cache** previous = nullptr;
};

struct registry {
    std::mutex mutex;
    listed_cache* first = nullptr;
    std::atomic<std::int64_t> large{0}; // frames from the heap, of threads that have ended or are about to
    memory_pool::reserve frames;
    memory_pool::reserve nodes;
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
    r.large.fetch_add(large.load(std::memory_order_relaxed), std::memory_order_relaxed);
    frames.give_all(r.frames);
    nodes.give_all(r.nodes);
}

/// Null where the thread is about to end.
frame_cache* cache()
{
    if (!frame_cache::mine && !ended) {
        thread_local listed_cache instance;
        frame_cache::mine = &instance;
    }
    return frame_cache::mine;
}

constexpr bool pooled_size(std::size_t size) noexcept
{
    return !detail::frames_on_heap && size <= memory_pool::classes * memory_pool::granule;
}

void count_large(int change)
{
    if (auto* c = cache()) {
        c->large.store(c->large.load(std::memory_order_relaxed) + change, std::memory_order_relaxed);
    } else {
        all().large.fetch_add(change, std::memory_order_relaxed);
    }
}

/// A thread that is about to end has no pool: it borrows one for the moment.
template<class Use>
auto with_pool(memory_pool* own, memory_pool::reserve& all, Use use)
{
    if (own) return use(*own);
    memory_pool borrowed;
    auto out = use(borrowed);
    borrowed.give_all(all);
    return out;
}

void* take(memory_pool* from, memory_pool::reserve& all, std::size_t size)
{
    return with_pool(from, all, [&](memory_pool& pool) {
        auto const which = (size - 1) / memory_pool::granule;
        pool.take_batch(which, all);
        return pool.take(which);
    });
}

void give(memory_pool* to, memory_pool::reserve& all, void* memory, std::size_t size) noexcept
{
    with_pool(to, all, [&](memory_pool& pool) {
        auto const which = (size - 1) / memory_pool::granule;
        if (pool.give(which, memory)) return true;
        pool.give_batch(which, all);
        return pool.give(which, memory);
    });
}

} // namespace

std::int64_t live_frames() noexcept
{
    auto& r = all();
    std::lock_guard lock(r.mutex);
    auto sum = r.large.load(std::memory_order_relaxed) + r.frames.out();
    for (auto* c = r.first; c; c = c->next)
        sum += c->large.load(std::memory_order_relaxed) - c->frames.free();
    return sum;
}

namespace detail {

pool_growth taken_by_pools() noexcept
{
    auto const frames = all().frames.taken();
    auto const nodes = all().nodes.taken();
    return {frames.bytes + nodes.bytes, frames.pieces + nodes.pieces};
}

void* allocate_frame_slowly(std::size_t size)
{
    if (pooled_size(size)) {
        auto* c = cache();
        return take(c ? &c->frames : nullptr, all().frames, size);
    }
    auto* memory = ::operator new(size);
    count_large(1);
    return memory;
}

void free_frame_slowly(void* memory, std::size_t size) noexcept
{
    if (pooled_size(size)) {
        auto* c = cache();
        give(c ? &c->frames : nullptr, all().frames, memory, size);
        return;
    }
    count_large(-1);
    ::operator delete(memory);
}

void* allocate_node_slowly(std::size_t size)
{
    if (!pooled_size(size)) return ::operator new(size, std::align_val_t{memory_pool::granule});
    auto* c = cache();
    return take(c ? &c->nodes : nullptr, all().nodes, size);
}

void free_node_slowly(void* memory, std::size_t size) noexcept
{
    if (pooled_size(size)) {
        auto* c = cache();
        give(c ? &c->nodes : nullptr, all().nodes, memory, size);
    } else {
        ::operator delete(memory, std::align_val_t{memory_pool::granule});
    }
}

} // namespace detail

} // namespace plait
