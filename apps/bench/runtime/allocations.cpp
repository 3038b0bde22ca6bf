#include <plait/apps/bench/runtime/allocations.hpp>

#include <plait/actors/tasks/frame_pool.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

#include <dlfcn.h>
#include <malloc.h>

namespace {

constinit std::atomic<bool> counting{false};
constinit std::atomic<std::int64_t> count{0};
constinit std::atomic<std::int64_t> bytes{0};

[[maybe_unused]] void note(void* memory) noexcept
{
    if (!counting.load(std::memory_order_relaxed)) return;
    count.fetch_add(1, std::memory_order_relaxed);
    bytes.fetch_add(static_cast<std::int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
}

[[maybe_unused]] void* checked(void* memory)
{
    if (!memory) throw std::bad_alloc();
    note(memory);
    return memory;
}

[[maybe_unused]] void release(void* memory) noexcept
{
    if (memory && counting.load(std::memory_order_relaxed))
        bytes.fetch_sub(static_cast<std::int64_t>(malloc_usable_size(memory)), std::memory_order_relaxed);
    std::free(memory);
}

} // namespace

#if PLAIT_BENCH_COUNTS

// The array, nothrow and sized forms of the standard library call these.
void* operator new(std::size_t size)
{
    return checked(std::malloc(size ? size : 1));
}

void* operator new(std::size_t size, std::align_val_t alignment)
{
    auto const step = static_cast<std::size_t>(alignment);
    return checked(std::aligned_alloc(step, (size + step - 1) / step * step));
}

void operator delete(void* memory) noexcept
{
    release(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    release(memory);
}

void operator delete(void* memory, std::align_val_t) noexcept
{
    release(memory);
}

void operator delete(void* memory, std::size_t, std::align_val_t) noexcept
{
    release(memory);
}

// The C++ runtime takes an exception's memory from malloc: who throws allocates.
extern "C" void* __cxa_allocate_exception(std::size_t size) noexcept
{
    using function = void*(std::size_t) noexcept;
    static auto* const original = reinterpret_cast<function*>(::dlsym(RTLD_NEXT, "__cxa_allocate_exception"));
    if (counting.load(std::memory_order_relaxed)) count.fetch_add(1, std::memory_order_relaxed);
    return original(size);
}

#endif

namespace plait::bench {

count_allocations::count_allocations() noexcept
{
    counting.store(true, std::memory_order_relaxed);
}

count_allocations::~count_allocations()
{
    counting.store(false, std::memory_order_relaxed);
}

std::int64_t allocations() noexcept
{
    // The pools of plait take theirs from the system.
    return count.load(std::memory_order_relaxed) + detail::taken_by_pools().maps;
}

std::int64_t allocated_bytes() noexcept
{
    return bytes.load(std::memory_order_relaxed) + detail::taken_by_pools().bytes;
}

} // namespace plait::bench
