#include <plait/kernels/host/attention_ops.hpp>

namespace plait::host {

namespace {

template<sample_kernels const& Kernels>
void sample_with(sample_args const& args, share part)
{
    sample(Kernels, args, part);
}

template<sample_kernels const& Kernels>
void score_with(score_args const& args, share part)
{
    score(Kernels, args, part);
}

template<route_kernels const& Kernels>
void route_with(route_args const& args, share part)
{
    route(Kernels, args, part);
}

constexpr attention_table scalar_ops = {
    embed,
    scalar::norm,
    scalar::rope_and_store,
    scalar::attention,
    sample_with<scalar::sampling>,
    score_with<scalar::sampling>,
    copy_page,
    scalar::soft_cap,
    route_with<scalar::routing>,
};

#if defined(__x86_64__)
constexpr attention_table avx2_ops = {
    embed,
    avx2::norm,
    avx2::rope_and_store,
    avx2::attention,
    sample_with<avx2::sampling>,
    score_with<avx2::sampling>,
    copy_page,
    avx2::soft_cap,
    route_with<avx2::routing>,
};

constexpr attention_table avx512_ops = {
    embed,
    avx512::norm,
    avx512::rope_and_store,
    avx512::attention,
    sample_with<avx512::sampling>,
    score_with<avx512::sampling>,
    copy_page,
    avx512::soft_cap,
    route_with<avx512::routing>,
};
#endif

} // namespace

attention_table const& attention_ops(isa set) noexcept
{
    switch (set) {
#if defined(__x86_64__)
    case isa::avx2:
        return avx2_ops;
    case isa::avx512:
        return avx512_ops;
#endif
    default:
        return scalar_ops;
    }
}

} // namespace plait::host
