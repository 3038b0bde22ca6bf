#pragma once

#include <plait/kernels/paged_kv.hpp>
#include <plait/streams/share.hpp>

#include <span>

namespace plait::host {

/// A page to copy, in every layer.
struct page_copy {
    std::int32_t from = 0;
    std::int32_t to = 0;
};

/// Copies whole pages in every layer: the write of copy-on-write. No page is both written and read, none written twice.
struct copy_page_args {
    std::span<paged_kv const> layers; ///< they may differ in type and size
    std::span<page_copy const> copies;
};

void copy_page(copy_page_args const& args, share part);

} // namespace plait::host
