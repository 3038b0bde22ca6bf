#include <plait/apps/bench/runtime/allocations.hpp>

#include <atomic>
#include <cstdlib>
#include <new>

#include <dlfcn.h>
#include <malloc.h>

namespace {

constinit std::atomic<bool> counting{false};
constinit std::atomic<std::int64_t> count{0};
constinit std::atomic<std::int64_t> bytes{0};

/// Around what is aligned to more than a page lie pages that are never touched: they take no memory.
[[maybe_unused]] std::int64_t bytes_of(void* memory, std::size_t size, std::align_val_t alignment) noexcept
{
    constexpr std::align_val_t page{4096};
    return static_cast<std::int64_t>(alignment > page ? size : malloc_usable_size(memory));
}

[[maybe_unused]] void* checked(void* memory, std::size_t size = 0, std::align_val_t alignment = {})
{
    if (!memory) throw std::bad_alloc();
    if (counting.load(std::memory_order_relaxed)) {
        count.fetch_add(1, std::memory_order_relaxed);
        bytes.fetch_add(bytes_of(memory, size, alignment), std::memory_order_relaxed);
    }
    return memory;
}

[[maybe_unused]] void release(void* memory, std::size_t size = 0, std::align_val_t alignment = {}) noexcept
{
    if (memory && counting.load(std::memory_order_relaxed))
        bytes.fetch_sub(bytes_of(memory, size, alignment), std::memory_order_relaxed);
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
    return checked(std::aligned_alloc(step, (size + step - 1) / step * step), size, alignment);
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

void operator delete(void* memory, std::size_t size, std::align_val_t alignment) noexcept
{
    release(memory, size, alignment);
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
    return count.load(std::memory_order_relaxed);
}

std::int64_t allocated_bytes() noexcept
{
    return bytes.load(std::memory_order_relaxed);
}

} // namespace plait::bench
