#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// Phi-3 and Phi-4: fused matrices, and for long contexts two sets of frequencies (LongRoPE).
constexpr family_layout layout{.fused_qkv = true, .fused_gate_up = true};

described_model describe_gguf(gguf_file const& file)
{
    return gguf_header(file).describe(layout);
}

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = header.describe(layout);
    header.set_windows(model);
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"Phi3ForCausalLM"};

} // namespace

family const families::phi3{"phi3", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
