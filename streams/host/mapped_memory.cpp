#include <plait/streams/host/mapped_memory.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include <plait/actors/error.hpp>

namespace plait::host {

namespace {

constexpr std::size_t huge_page = 2u << 20;

/// Large blocks are mapped so that the kernel can back them with huge pages: streaming weights through 4 KiB pages
/// costs a page walk every 4 KiB. Small ones round to pages.
std::size_t mapped_bytes(std::size_t bytes) noexcept
{
    auto grain = bytes >= huge_page ? huge_page : std::size_t(4096);
    return std::max(grain, (bytes + grain - 1) / grain * grain);
}

} // namespace

mapped_memory::mapped_memory(std::string owner, std::size_t limit)
    : owner_(std::move(owner))
    , limit_(limit)
{
}

std::byte* mapped_memory::allocate(std::size_t bytes)
{
    if (allocated_.fetch_add(bytes, std::memory_order_relaxed) + bytes > limit_) {
        allocated_.fetch_sub(bytes, std::memory_order_relaxed);
        throw error(errc::out_of_memory, owner_ + ": " + std::to_string(bytes) +
                                             " bytes more would pass its limit of " + std::to_string(limit_));
    }
    auto size = mapped_bytes(bytes);
    // One huge page more than asked for, given back below, so that the block starts on a huge page.
    auto slack = size >= huge_page ? huge_page : 0;
    auto* at = ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        allocated_.fetch_sub(bytes, std::memory_order_relaxed);
        throw error(errc::out_of_memory, owner_ + ": the system refused " + std::to_string(size) + " bytes");
    }
    auto* memory = static_cast<std::byte*>(at);
    if (slack != 0) {
        auto past = reinterpret_cast<std::uintptr_t>(memory) % huge_page;
        auto head = past == 0 ? 0 : huge_page - past;
        if (head != 0) ::munmap(memory, head);
        memory += head;
        if (slack != head) ::munmap(memory + size, slack - head);
        ::madvise(memory, size, MADV_HUGEPAGE);
    }
    return memory;
}

void mapped_memory::deallocate(std::byte* memory, std::size_t bytes) noexcept
{
    ::munmap(memory, mapped_bytes(bytes));
    allocated_.fetch_sub(bytes, std::memory_order_relaxed);
}

} // namespace plait::host
