#include <cassert>
#include <limits>
#include <numeric>
#include <string>

#include <plait/actors/error.hpp>
#include <plait/kv/block_pool.hpp>

namespace plait {

namespace {

std::size_t checked(std::int64_t pages)
{
    if (pages < 0 || pages > std::numeric_limits<page_id>::max())
        throw error(errc::invalid_argument, "KV pages: " + std::to_string(pages));
    return static_cast<std::size_t>(pages);
}

} // namespace

block_pool::block_pool(std::int64_t pages)
    : references_(checked(pages), 0)
    , free_(references_.size())
    , free_count_(references_.size())
{
    std::iota(free_.begin(), free_.end(), 0);
}

page_id block_pool::take()
{
    if (free_count_ == 0) throw error(errc::out_of_memory, "no free KV page of " + std::to_string(pages()));
    auto page = free_[head_];
    head_ = (head_ + 1) % free_.size();
    --free_count_;
    references_[static_cast<std::size_t>(page)] = 1;
    return page;
}

void block_pool::share(page_id page) noexcept
{
    assert(references(page) > 0);
    ++references_[static_cast<std::size_t>(page)];
}

void block_pool::release(page_id page) noexcept
{
    assert(references(page) > 0);
    if (--references_[static_cast<std::size_t>(page)] > 0) return;
    free_[(head_ + free_count_) % free_.size()] = page;
    ++free_count_;
}

} // namespace plait
