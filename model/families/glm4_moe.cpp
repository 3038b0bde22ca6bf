#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// GLM-4.5 (arXiv:2508.06471): the first layers are dense; in the others one expert for every token stands beside those
// that a sigmoid with a bias chooses, as in DeepSeek-V3. Unlike in GLM-4, halves are rotated.
constexpr family_layout layout{.rotated = 0.5,
                               .qkv_bias = presence::optional,
                               .head_norms = presence::optional,
                               .scoring = routing::sigmoid,
                               .normalised = true,
                               .selection_bias = presence::required};

described_model describe_gguf(gguf_file const& file)
{
    return gguf_header(file).describe(layout, {.ffn_norm = "post_attention_norm"});
}

described_model describe_hf(hf_directory const& folder)
{
    return hf_header(folder).describe(layout);
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"Glm4MoeForCausalLM"};

} // namespace

family const families::glm4_moe{"glm4moe", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
