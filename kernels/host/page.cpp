#include <plait/kernels/host/page.hpp>

#include <cstring>

namespace plait::host {

void copy_page(copy_page_args const& args, share part)
{
    auto copies = static_cast<std::int64_t>(args.copies.size());
    auto [first, last] = part.range(copies * static_cast<std::int64_t>(args.layers.size()));
    for (auto i = first; i < last; ++i) {
        auto const& kv = args.layers[static_cast<std::size_t>(i / copies)];
        auto [from, to] = args.copies[static_cast<std::size_t>(i % copies)];
        std::memcpy(kv.pages + static_cast<std::size_t>(to) * kv.page_stride,
                    kv.pages + static_cast<std::size_t>(from) * kv.page_stride,
                    page_bytes(kv.type, kv.kv_heads, kv.head_dim));
    }
}

} // namespace plait::host
