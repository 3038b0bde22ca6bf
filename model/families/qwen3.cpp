#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>
#include <plait/model/families/qwen.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// Queries and keys are normalised head by head before they are rotated.
constexpr family_layout layout{
    .qkv_bias = presence::optional, .output_bias = presence::optional, .head_norms = presence::required};

described_model describe_gguf(gguf_file const& file)
{
    return gguf_header(file).describe(layout);
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = header.describe(layout);
    set_qwen_windows(header, model);
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"Qwen3ForCausalLM"};

} // namespace

family const families::qwen3{"qwen3", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
