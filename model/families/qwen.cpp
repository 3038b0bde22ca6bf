#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

constexpr family_layout qwen2_layout{.qkv_bias = presence::required};

// Queries and keys are normalised head by head before they are rotated.
constexpr family_layout qwen3_layout{
    .qkv_bias = presence::optional, .output_bias = presence::optional, .head_norms = presence::required};

// Qwen3 with experts (arXiv:2505.09388). A config says whether the weights of the chosen are normalised, GGUF files
// leave it to the architecture.
constexpr family_layout qwen3_moe_layout{.qkv_bias = presence::optional,
                                         .output_bias = presence::optional,
                                         .head_norms = presence::required,
                                         .scoring = routing::softmax};

described_model describe_qwen2(gguf_file const& file)
{
    return gguf_header(file).describe(qwen2_layout);
}

described_model describe_qwen3(gguf_file const& file)
{
    return gguf_header(file).describe(qwen3_layout);
}

described_model describe_qwen3_moe(gguf_file const& file)
{
    auto how = qwen3_moe_layout;
    how.normalised = true;
    return gguf_header(file).describe(how);
}

template<family_layout const& how>
described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = header.describe(how);
    header.set_switched_windows(model); // published configs have a window that they switch off
    return model;
}

constexpr std::array<std::string_view, 1> qwen2_architectures{"Qwen2ForCausalLM"};
constexpr std::array<std::string_view, 1> qwen3_architectures{"Qwen3ForCausalLM"};
constexpr std::array<std::string_view, 1> qwen3_moe_architectures{"Qwen3MoeForCausalLM"};

} // namespace

family const families::qwen2{"qwen2", describe_qwen2, qwen2_architectures, describe_hf<qwen2_layout>};
family const families::qwen3{"qwen3", describe_qwen3, qwen3_architectures, describe_hf<qwen3_layout>};
family const families::qwen3_moe{"qwen3moe", describe_qwen3_moe, qwen3_moe_architectures,
                                 describe_hf<qwen3_moe_layout>};

} // namespace plait
