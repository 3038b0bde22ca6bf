#include <plait/actors/tasks/frame_pool.hpp>

#include <plait/actors/tasks/memory_chunks.hpp>

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

namespace plait {

namespace detail {

constinit thread_local frame_cache* frame_cache::mine = nullptr;

/// Free memory of all threads, which take and give it in batches.
class memory_pool::reserve {
public:
    /// A chain of up to `batch` pieces, each with its count.
    block* take(std::size_t which)
    {
        auto& l = lists_[which];
        std::lock_guard lock(l.mutex);
        if (!l.first) grow(l, which);
        std::array<std::byte*, batch> pieces{};
        std::size_t count = 0;
        while (l.first && count < batch) {
            l.first->take(batch - count, [&](std::byte* piece) { pieces[count++] = piece; });
            if (l.first->free() == 0) l.first = l.first->next;
        }
        free_.fetch_sub(static_cast<std::int64_t>(count), std::memory_order_relaxed);
        block* chain = nullptr;
        for (std::size_t behind = 0; behind < count; ++behind)
            chain = ::new (pieces[count - 1 - behind]) block{chain, behind + 1};
        return chain;
    }

    void give(std::size_t which, block* chain) noexcept
    {
        auto& l = lists_[which];
        std::lock_guard lock(l.mutex);
        free_.fetch_add(static_cast<std::int64_t>(chain->count), std::memory_order_relaxed);
        while (chain) {
            auto* const piece = std::exchange(chain, chain->next);
            auto& from = chunk_of_pieces::of(piece);
            if (from.free() == 0) from.next = std::exchange(l.first, &from);
            from.give(piece);
        }
    }

    pool_growth taken() const noexcept { return memory_.taken(); }

    /// Pieces that are alive, in whatever thread's pool, or used.
    std::int64_t out() const noexcept
    {
        return cut_.load(std::memory_order_relaxed) - free_.load(std::memory_order_relaxed);
    }

private:
    struct list {
        std::mutex mutex;
        chunk_of_pieces* first = nullptr; ///< of those with free pieces
    };

    void grow(list& l, std::size_t which)
    {
        l.first = chunk_of_pieces::make(memory_.take(), (which + 1) * granule);
        auto const count = static_cast<std::int64_t>(l.first->free());
        cut_.fetch_add(count, std::memory_order_relaxed);
        free_.fetch_add(count, std::memory_order_relaxed);
    }

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
    auto const kept = newest->count / 2;
    // The newest stay here, where they are in the processor's cache; those before them go.
    auto* last = newest;
    for (std::size_t i = 1; i < kept; ++i)
        last = last->next;
    auto* const chain = last->next;
    last->next = nullptr;
    for (auto* b = newest; b; b = b->next)
        b->count -= chain->count;
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
    return {frames.bytes + nodes.bytes, frames.maps + nodes.maps};
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
