#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace plait {

/// The index of a page in its pool: the same page of every layer of a KV group.
using page_id = std::int32_t;

/// The accounts of a pool of KV pages: which are free and how many sequences read each of the others. Holds no page
/// content and touches no device, so it is the same for every backend and in simulation. Not thread-safe.
class block_pool {
public:
    /// A pool of `pages` free pages. Throws error(errc::invalid_argument) if negative.
    explicit block_pool(std::int64_t pages);

    std::int64_t pages() const noexcept { return static_cast<std::int64_t>(references_.size()); }
    std::int64_t free_pages() const noexcept { return static_cast<std::int64_t>(free_count_); }

    /// Takes a free page for one owner: the one that has been free for longest. Throws error(errc::out_of_memory) when
    /// none is left; a caller that planned its pages first never sees that.
    page_id take();

    /// One more sequence reads `page`, which must have an owner.
    void share(page_id page) noexcept;

    /// One sequence fewer; the last one frees the page.
    void release(page_id page) noexcept;

    std::int32_t references(page_id page) const noexcept { return references_[static_cast<std::size_t>(page)]; }

private:
    std::vector<std::int32_t> references_;
    std::vector<page_id> free_; // a ring: pages leave at head_ and come back at head_ + free_count_
    std::size_t head_ = 0;
    std::size_t free_count_ = 0;
};

} // namespace plait
