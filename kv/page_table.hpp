#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <plait/kernels/host/page.hpp>
#include <plait/kv/block_pool.hpp>

namespace plait {

/// A page to copy in every layer of a group, before the step that writes the destination.
using host::page_copy;

/// The pages that hold one sequence's keys and values in one KV group, in order of position: token t is in entry
/// t / 16. Append-only. Owns a reference to each of its pages and gives them back when it is destroyed, so a table must
/// live until the device has passed the last step that reads it. Not thread-safe.
class page_table {
public:
    /// An empty table. `window`: how many positions back this group's layers look; 0 for all of them.
    page_table(block_pool& pool, std::int64_t window) noexcept
        : pool_(&pool)
        , window_(window)
    {
    }
    page_table(page_table&& other) noexcept;
    page_table& operator=(page_table&& other) noexcept;
    ~page_table() { clear(); }

    /// Tokens that the table has room for by plan: the `tokens` of the last grow().
    std::int64_t tokens() const noexcept { return tokens_; }

    /// How many free pages grow(tokens) would take.
    std::int64_t pages_to_grow(std::int64_t tokens) const noexcept;

    /// Makes room for `tokens` tokens in all. A last page that is only partly filled and shared is copied first
    /// (copy-on-write): the copy is added to `copies`. Pages that have left the window go back to the pool.
    /// Throws error(errc::out_of_memory) when the pool has fewer than pages_to_grow() pages, without any change.
    void grow(std::int64_t tokens, std::vector<page_copy>& copies);

    /// A table of the same tokens that shares every page.
    page_table fork() const;

    /// Gives every page back.
    void clear() noexcept;

    /// Entries of pages that left the window are -1.
    std::span<page_id const> pages() const noexcept { return pages_; }

private:
    bool copies_last(std::int64_t tokens) const noexcept;

    block_pool* pool_;
    std::int64_t window_;
    std::int64_t tokens_ = 0;
    std::vector<page_id> pages_;
    std::size_t dropped_ = 0; // entries before this one have left the window
};

/// A sequence's page tables, one for each KV group.
class sequence_pages {
public:
    sequence_pages() = default;
    explicit sequence_pages(std::vector<page_table> tables) noexcept
        : tables_(std::move(tables))
    {
    }

    /// The most pages that grow(tokens) takes from any one pool.
    std::int64_t pages_to_grow(std::int64_t tokens) const noexcept;

    /// Grows every table; `copies[g]` receives the copies of group g.
    void grow(std::int64_t tokens, std::vector<std::vector<page_copy>>& copies);

    sequence_pages fork() const;
    void clear() noexcept { tables_.clear(); }
    std::span<page_table const> tables() const noexcept { return tables_; }

private:
    std::vector<page_table> tables_;
};

} // namespace plait
