#include <plait/kernels/host/attention_ops.hpp>

namespace plait::host {

namespace {

template<sample_kernels const& Kernels>
void sample_with(sample_args const& args, share part)
{
    sample(Kernels, args, part);
}

constexpr attention_table scalar_ops = {
    embed, scalar::rms_norm, scalar::rope_and_store, scalar::attention, sample_with<scalar::sampling>, copy_page,
};

} // namespace

attention_table const& attention_ops(isa) noexcept
{
    return scalar_ops;
}

} // namespace plait::host
