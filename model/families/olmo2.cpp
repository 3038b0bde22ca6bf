#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// A sublayer's output is normalised, not its input, and queries and keys over all heads (arXiv:2501.00656).
constexpr family_layout layout{
    .placement = norm_placement::output, .head_norms = presence::required, .head_norms_over = head_norm::all_heads};

described_model describe_gguf(gguf_file const& file)
{
    return gguf_header(file).describe(layout);
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    header.neutral("attention_bias", false);
    return header.describe(layout);
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"Olmo2ForCausalLM"};

} // namespace

family const families::olmo2{"olmo2", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
