#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// Layer norms, biases everywhere, and a network without a gate (arXiv:2402.19173).
constexpr family_layout layout{.norm = norm_kind::layer,
                               .norm_bias = presence::required,
                               .activation = activation_kind::gelu_tanh,
                               .gated = false,
                               .qkv_bias = presence::optional,
                               .output_bias = presence::optional,
                               .ffn_bias = presence::optional};

described_model describe_gguf(gguf_file const& file)
{
    return gguf_header(file).describe(layout);
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    hf_names names;
    names.epsilon = "norm_epsilon";
    names.up = "mlp.c_fc";
    names.down = "mlp.c_proj";
    auto model = header.describe(layout, names);
    header.set_windows(model);
    return model;
}

constexpr std::array<std::string_view, 1> hf_architectures{"Starcoder2ForCausalLM"};

} // namespace

family const families::starcoder2{"starcoder2", describe_gguf, hf_architectures, describe_hf};

} // namespace plait
