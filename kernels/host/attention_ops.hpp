#pragma once

#include <plait/kernels/host/attention.hpp>
#include <plait/kernels/host/embed.hpp>
#include <plait/kernels/host/isa.hpp>
#include <plait/kernels/host/norm.hpp>
#include <plait/kernels/host/page.hpp>
#include <plait/kernels/host/rope.hpp>
#include <plait/kernels/host/route.hpp>
#include <plait/kernels/host/sample.hpp>
#include <plait/kernels/host/soft_cap.hpp>

namespace plait::host {

/// Every operation that is not a product, for one instruction set. Each is run by all workers (`share`), and gives the
/// same bits whatever their number and the instruction set.
struct attention_table {
    void (*embed)(embed_args const&, share);
    void (*norm)(norm_args const&, share);
    void (*rope_and_store)(rope_args const&, share);
    void (*attention)(attention_args const&, share);
    void (*sample)(sample_args const&, share);
    void (*score)(score_args const&, share);
    void (*copy_page)(copy_page_args const&, share);
    void (*soft_cap)(soft_cap_args const&, share);
    void (*route)(route_args const&, share);
};

/// The table of an instruction set; `set` must be one of `available_isas()`.
attention_table const& attention_ops(isa set) noexcept;

} // namespace plait::host
