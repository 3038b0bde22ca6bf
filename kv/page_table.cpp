#include <algorithm>
#include <string>
#include <utility>

#include <plait/actors/error.hpp>
#include <plait/kernels/paged_kv.hpp>
#include <plait/kv/page_table.hpp>

namespace plait {

page_table::page_table(page_table&& other) noexcept
    : pool_(other.pool_)
    , window_(other.window_)
    , tokens_(std::exchange(other.tokens_, 0))
    , pages_(std::exchange(other.pages_, {}))
    , dropped_(std::exchange(other.dropped_, 0))
{
}

page_table& page_table::operator=(page_table&& other) noexcept
{
    std::swap(pool_, other.pool_);
    std::swap(window_, other.window_);
    std::swap(tokens_, other.tokens_);
    std::swap(pages_, other.pages_);
    std::swap(dropped_, other.dropped_);
    return *this;
}

bool page_table::copies_last(std::int64_t tokens) const noexcept
{
    if (tokens <= tokens_ || tokens_ % page_tokens == 0) return false;
    return pool_->references(pages_.back()) > 1;
}

std::int64_t page_table::pages_to_grow(std::int64_t tokens) const noexcept
{
    auto more = std::max<std::int64_t>(0, pages_of(tokens) - static_cast<std::int64_t>(pages_.size()));
    return more + (copies_last(tokens) ? 1 : 0);
}

void page_table::grow(std::int64_t tokens, std::vector<page_copy>& copies)
{
    if (tokens <= tokens_) return;
    if (auto needed = pages_to_grow(tokens); needed > pool_->free_pages())
        throw error(errc::out_of_memory, "KV: " + std::to_string(needed) + " pages needed, " +
                                             std::to_string(pool_->free_pages()) + " free");
    if (copies_last(tokens)) {
        auto own = pool_->take();
        copies.push_back({pages_.back(), own});
        pool_->release(pages_.back());
        pages_.back() = own;
    }
    for (auto more = pages_of(tokens) - static_cast<std::int64_t>(pages_.size()); more > 0; --more)
        pages_.push_back(pool_->take());
    if (window_ > 0)
        // The next token, at position tokens_, is the furthest-back reader from here on.
        for (auto first_read = std::max<std::int64_t>(0, tokens_ - window_ + 1) / page_tokens;
             static_cast<std::int64_t>(dropped_) < first_read; ++dropped_)
            pool_->release(std::exchange(pages_[dropped_], -1));
    tokens_ = tokens;
}

page_table page_table::fork() const
{
    page_table copy(*pool_, window_);
    copy.tokens_ = tokens_;
    copy.pages_ = pages_;
    copy.dropped_ = dropped_;
    for (auto page : pages_)
        if (page >= 0) pool_->share(page);
    return copy;
}

void page_table::clear() noexcept
{
    // The pool hands out what was freed first, so the tail goes back first: a prefix is worth more than what follows
    // it.
    for (auto page = pages_.rbegin(); page != pages_.rend(); ++page)
        if (*page >= 0) pool_->release(*page);
    pages_.clear();
    tokens_ = 0;
    dropped_ = 0;
}

std::int64_t sequence_pages::pages_to_grow(std::int64_t tokens) const noexcept
{
    std::int64_t most = 0;
    for (auto const& table : tables_)
        most = std::max(most, table.pages_to_grow(tokens));
    return most;
}

void sequence_pages::grow(std::int64_t tokens, std::vector<std::vector<page_copy>>& copies)
{
    for (std::size_t g = 0; g < tables_.size(); ++g)
        tables_[g].grow(tokens, copies[g]);
}

sequence_pages sequence_pages::fork() const
{
    std::vector<page_table> tables;
    tables.reserve(tables_.size());
    for (auto const& table : tables_)
        tables.push_back(table.fork());
    return sequence_pages(std::move(tables));
}

} // namespace plait
