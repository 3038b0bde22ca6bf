#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// GLM-4-9B and its like (also ChatGLM2 and 3 in GGUF files), and GLM-4-0414 with norms around both sublayers. Pairs of
// half of each head are rotated.
constexpr family_layout layout{
    .rope = rope_style::pairs, .rotated = 0.5, .fused_gate_up = true, .qkv_bias = presence::optional};

constexpr family_layout sandwich{.placement = norm_placement::sandwich,
                                 .rope = rope_style::pairs,
                                 .rotated = 0.5,
                                 .fused_gate_up = true,
                                 .qkv_bias = presence::optional};

described_model describe_gguf(gguf_file const& file, family_layout how)
{
    // Files made from the original checkpoints have it as those do.
    how.fused_qkv = file.find_tensor("blk.0.attn_qkv.weight") != nullptr;
    return gguf_header(file).describe(how);
}

described_model describe_glm(gguf_file const& file)
{
    return describe_gguf(file, layout);
}

described_model describe_glm4(gguf_file const& file)
{
    return describe_gguf(file, sandwich);
}

described_model describe_glm_hf(hf_directory const& folder)
{
    return hf_header(folder).describe(layout);
}

described_model describe_glm4_hf(hf_directory const& folder)
{
    hf_names names;
    names.attention_output_norm = "post_self_attn_layernorm";
    names.ffn_output_norm = "post_mlp_layernorm";
    return hf_header(folder).describe(sandwich, names);
}

constexpr std::array<std::string_view, 1> glm_architectures{"GlmForCausalLM"};
constexpr std::array<std::string_view, 1> glm4_architectures{"Glm4ForCausalLM"};

} // namespace

family const families::glm{"chatglm", describe_glm, glm_architectures, describe_glm_hf};
family const families::glm4{"glm4", describe_glm4, glm4_architectures, describe_glm4_hf};

} // namespace plait
