#include <plait/actors/tasks/memory_chunks.hpp>

#include <utility>

#include <sys/mman.h>

namespace plait::detail {

namespace {

constexpr std::size_t huge_page = std::size_t(2) << 20;

/// Chunks before which no huge page is asked for.
constexpr std::int64_t few = 64;

} // namespace

std::byte* growing_memory::take()
{
    std::lock_guard lock(mutex_);
    if (next_ == end_) grow();
    taken_.fetch_add(1, std::memory_order_relaxed);
    return std::exchange(next_, next_ + chunk);
}

void growing_memory::grow()
{
    auto* const memory = map_where_huge_pages_begin();
#ifdef MADV_HUGEPAGE
    // A wish: without it all is as right.
    ::madvise(memory, huge_page, taken_.load(std::memory_order_relaxed) < few ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
#endif
    next_ = memory;
    end_ = memory + huge_page;
    maps_.fetch_add(1, std::memory_order_relaxed);
}

/// As much as a huge page; what is around it goes back.
std::byte* growing_memory::map_where_huge_pages_begin()
{
    auto* const mapped = ::mmap(nullptr, 2 * huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    auto* const memory = static_cast<std::byte*>(mapped);
    auto const before = (huge_page - reinterpret_cast<std::uintptr_t>(memory) % huge_page) % huge_page;
    if (before > 0) ::munmap(memory, before);
    ::munmap(memory + before + huge_page, huge_page - before);
    return memory + before;
}

} // namespace plait::detail
