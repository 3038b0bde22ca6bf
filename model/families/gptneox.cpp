#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// GPT-NeoX and Pythia: both sublayers of a layer read the stream as it was, each through a norm of its own, unless the
// file says that one follows the other. Source: Black et al., arXiv:2204.06745.
constexpr family_layout layout{.norm = norm_kind::layer,
                               .norm_bias = presence::required,
                               .parallel = true,
                               .activation = activation_kind::gelu_erf,
                               .gated = false,
                               .fused_qkv = true,
                               .qkv_bias = presence::optional,
                               .output_bias = presence::optional,
                               .ffn_bias = presence::required};

described_model describe_gguf(gguf_file const& file)
{
    gguf_header const header(file);
    auto how = layout;
    how.parallel = header.boolean_or("use_parallel_residual", true);
    return header.describe(how);
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto how = layout;
    how.parallel = header.config().boolean("use_parallel_residual", true);
    hf_names names;
    names.epsilon = "layer_norm_eps";
    names.prefix = "gpt_neox.";
    names.token_embedding = "embed_in";
    names.output_norm = "final_layer_norm";
    names.output = "embed_out";
    names.qkv = "attention.query_key_value";
    names.qkv_by_head = true;
    names.attention_output = "attention.dense";
    names.up = "mlp.dense_h_to_4h";
    names.down = "mlp.dense_4h_to_h";
    return header.describe(how, names);
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"GPTNeoXForCausalLM"};

} // namespace

family const families::gptneox{"gptneox", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
