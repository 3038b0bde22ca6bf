#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// LLaMA 1 to 3, Mistral, SmolLM and all that was converted as such. Heads and hidden features may differ from layer to
// layer.
constexpr family_layout layout{
    .qkv_bias = presence::optional, .output_bias = presence::optional, .ffn_bias = presence::optional};

described_model describe_gguf(gguf_file const& file)
{
    gguf_header const header(file);
    header.neutral("use_parallel_residual", false);
    header.neutral("residual_scale", {0.0f, 1.0f});
    header.neutral("logit_scale", {0.0f, 1.0f});
    header.neutral("final_logit_softcapping", {0.0f});
    auto how = permuted(layout);
    how.scoring = routing::softmax_of_chosen; // Mixtral's
    return header.describe(how);
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = header.describe(layout);
    // A LLaMA has none, whatever its config has been given.
    if (header.config().string("model_type") == "mistral") header.set_windows(model);
    return model;
}

constexpr std::array<std::string_view, 2> hf_names_of_it{"LlamaForCausalLM", "MistralForCausalLM"};

} // namespace

family const families::llama{"llama", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
