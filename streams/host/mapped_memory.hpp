#pragma once

#include <atomic>
#include <cstddef>
#include <string>

namespace plait::host {

/// Memory of the process, as a device hands it out: up to a limit, and to any thread.
class mapped_memory {
public:
    /// `owner` stands in messages. `limit`: the most bytes that are handed out at a time.
    mapped_memory(std::string owner, std::size_t limit);

    /// `bytes` of zeroed memory, aligned to a page. Throws error(errc::out_of_memory).
    std::byte* allocate(std::size_t bytes);
    void deallocate(std::byte* memory, std::size_t bytes) noexcept;

    /// Bytes that are handed out now.
    std::size_t allocated() const noexcept { return allocated_.load(std::memory_order_relaxed); }

private:
    std::string owner_;
    std::size_t limit_;
    std::atomic<std::size_t> allocated_ = 0;
};

} // namespace plait::host
