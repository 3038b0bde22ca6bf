#include <algorithm>
#include <cstring>

#include <plait/kernels/host/numbers.hpp>
#include <plait/kernels/host/op_info.hpp>
#include <plait/kernels/ops.hpp>
#include <plait/streams/host/host_stream.hpp>

namespace plait {

namespace {

void gather(gather_tokens_args const& args, share part)
{
    auto [first, last] = part.range(args.rows);
    for (auto row = first; row < last; ++row) {
        auto token = args.tokens[row];
        args.out[row] = token >= 0 ? token : args.slots[-1 - token];
    }
}

void pack(pack_args const& args, share part)
{
    // Threads may pack whole panels at the same time, so a part that starts inside a panel is one thread's work.
    auto aligned = args.first_row % panel_rows == 0;
    if (!aligned && part.index != 0) return;
    auto [first, last] =
        aligned ? part.range(args.rows, panel_rows) : std::pair<std::int64_t, std::int64_t>{0, args.rows};
    if (first == last) return;
    host::pack_rows(args.from, args.to, last - first, args.cols,
                    args.file_rows + static_cast<std::size_t>(first) * host::file_row_bytes(args.from, args.cols),
                    args.panels, args.first_row + first, args.place);
}

void widen(widen_args const& args, share part)
{
    auto [first, last] = part.range(args.count, 16);
    for (auto i = first; i < last; ++i) {
        if (args.from == weight_format::f32) {
            std::memcpy(args.out + i, args.values + 4 * i, 4);
        } else {
            std::uint16_t bits;
            std::memcpy(&bits, args.values + 2 * i, 2);
            args.out[i] = args.from == weight_format::f16 ? host::f16_to_f32(bits) : host::bf16_to_f32(bits);
        }
        if (args.plus != 0) args.out[i] += args.plus; // not always: it would make -0 a 0
    }
}

struct quantise_call {
    activation_view x;
    decltype(host::product_table::quantise_row) row;
};

void quantise_rows(quantise_call const& call, share part)
{
    auto const& x = call.x;
    auto blocks = x.cols / block_columns;
    auto [first, last] = part.range(x.rows);
    for (auto r = first; r < last; ++r)
        call.row(x.f32 + r * x.cols, x.cols, x.q8 + r * x.cols, x.scales + r * blocks, x.sums + r * blocks);
}

void add(add_args const& args, share part)
{
    auto [first, last] = part.range(args.rows * args.cols, 16);
    for (auto i = first; i < last;) {
        auto const column = i % args.cols;
        auto const end = std::min(last, i + args.cols - column);
        auto const* bias = args.bias ? args.bias + column : nullptr;
        for (auto const start = i; i < end; ++i) {
            float value = bias ? args.what[i] + bias[i - start] : args.what[i];
            args.to[i] = args.residual_scale * args.to[i] + args.scale * value;
        }
    }
}

void join_columns(join_columns_args const& args, share part)
{
    auto [first, last] = part.range(args.rows);
    for (auto row = first; row < last; ++row)
        for (std::int32_t r = 0; r < args.ranks; ++r)
            std::memcpy(args.out + (row * args.ranks + r) * args.cols, args.shards + (r * args.rows + row) * args.cols,
                        static_cast<std::size_t>(args.cols) * sizeof(float));
}

class host_ops final : public ops {
public:
    explicit host_ops(host::isa set)
        : products_(host::products(set))
        , others_(host::attention_ops(set))
    {
    }

    void pack(flow& f, pack_args const& args) override { put(f, plait::pack, args); }
    void widen(flow& f, widen_args const& args) override { put(f, plait::widen, args); }
    void quantise(flow& f, quantise_args const& args) override
    {
        host::put(f, host::info_of(args), quantise_rows, quantise_call{args.x, products_.quantise_row});
    }
    void gather_tokens(flow& f, gather_tokens_args const& args) override { put(f, gather, args); }
    void embed(flow& f, embed_args const& args) override { put(f, others_.embed, args); }
    void norm(flow& f, norm_args const& args) override { put(f, others_.norm, args); }
    void product(flow& f, product_args const& args) override { put(f, products_.product, args); }
    void gated(flow& f, gated_args const& args) override { put(f, products_.gated, args); }
    void activated(flow& f, activated_args const& args) override { put(f, products_.activated, args); }
    void rope_and_store(flow& f, rope_args const& args) override { put(f, others_.rope_and_store, args); }
    void attention(flow& f, attention_args const& args) override { put(f, others_.attention, args); }
    void add(flow& f, add_args const& args) override { put(f, plait::add, args); }
    void join_columns(flow& f, join_columns_args const& args) override { put(f, plait::join_columns, args); }
    void copy_pages(flow& f, copy_page_args const& args) override { put(f, others_.copy_page, args); }
    void soft_cap(flow& f, soft_cap_args const& args) override { put(f, others_.soft_cap, args); }
    void route(flow& f, route_args const& args) override
    {
        put(f, others_.route, args);
        put(f, host::list_experts, args.choice);
    }
    void expert_gated(flow& f, expert_gated_args const& args) override { put(f, products_.expert_gated, args); }
    void expert_product(flow& f, expert_product_args const& args) override { put(f, products_.expert_product, args); }
    void expert_sum(flow& f, expert_sum_args const& args) override { put(f, host::expert_sum, args); }

private:
    template<class Args>
    static void put(flow& f, void (*op)(Args const&, share), Args const& args)
    {
        host::put(f, host::info_of(args), op, args);
    }

    host::product_table const& products_;
    host::attention_table const& others_;
};

} // namespace

std::unique_ptr<ops> make_host_ops(host::isa set)
{
    return std::make_unique<host_ops>(set);
}

} // namespace plait
