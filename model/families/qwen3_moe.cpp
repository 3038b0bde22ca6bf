#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>
#include <plait/model/families/qwen.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// Qwen3 with experts (arXiv:2505.09388). A config says whether the weights of the chosen are normalised, GGUF files
// leave it to the architecture.
constexpr family_layout layout{.qkv_bias = presence::optional,
                               .output_bias = presence::optional,
                               .head_norms = presence::required,
                               .scoring = routing::softmax};

described_model describe_gguf(gguf_file const& file)
{
    auto how = layout;
    how.normalised = true;
    return gguf_header(file).describe(how);
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = header.describe(layout);
    set_qwen_windows(header, model);
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"Qwen3MoeForCausalLM"};

} // namespace

family const families::qwen3_moe{"qwen3moe", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
