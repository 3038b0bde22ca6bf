#include <sys/mman.h>

#include <algorithm>
#include <fstream>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/streams/host/host_device.hpp>

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

host_device::host_device(std::shared_ptr<compute_pool> pool, std::size_t memory_limit)
    : pool_(std::move(pool))
    , memory_limit_(memory_limit)
{
}

host_device::~host_device()
{
    // Nothing is put on the streams any more. What was put still runs: an operation never sees its memory freed early.
    while (poll()) {
    }
    if (!bell_->unheard() || !std::ranges::all_of(streams_, &host_stream::empty)) // others may wait for it
        abort(std::make_exception_ptr(error(errc::device_lost, "a host device of a group was destroyed")));
    bell_->close();
    reap_all();
}

std::string host_device::description() const
{
    std::ifstream info("/proc/cpuinfo");
    std::string line, model = "processor";
    while (std::getline(info, line))
        if (line.starts_with("model name")) {
            if (auto colon = line.find(": "); colon != std::string::npos) model = line.substr(colon + 2);
            break;
        }
    return model + ", " + std::to_string(pool_->workers()) + (pool_->workers() == 1 ? " thread" : " threads");
}

std::byte* host_device::allocate(std::size_t bytes)
{
    if (allocated_.fetch_add(bytes, std::memory_order_relaxed) + bytes > memory_limit_) {
        allocated_.fetch_sub(bytes, std::memory_order_relaxed);
        throw error(errc::out_of_memory, "host device: " + std::to_string(bytes) +
                                             " bytes more would pass its limit of " + std::to_string(memory_limit_));
    }
    auto size = mapped_bytes(bytes);
    // One huge page more than asked for, given back below, so that the block starts on a huge page.
    auto slack = size >= huge_page ? huge_page : 0;
    auto* at = ::mmap(nullptr, size + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        allocated_.fetch_sub(bytes, std::memory_order_relaxed);
        throw error(errc::out_of_memory, "host device: the system refused " + std::to_string(size) + " bytes");
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

void host_device::deallocate(std::byte* memory, std::size_t bytes) noexcept
{
    ::munmap(memory, mapped_bytes(bytes));
    allocated_.fetch_sub(bytes, std::memory_order_relaxed);
}

bool host_device::poll()
{
    if (auto why = bell_->failure()) {
        abort(std::move(why));
        return true;
    }
    for (auto& s : streams_) // in the order of stream_role: the most urgent first
        if (s.runnable()) {
            s.run_next(*pool_);
            reap();
            return true;
        }
    return false;
}

} // namespace plait::host
