#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <string_view>

namespace plait {
namespace {

// Mixtral: Mistral with experts (arXiv:2401.04088). The weights of the chosen are a softmax over all, divided by their
// sum, which is the softmax over the chosen. Its GGUF files are LLaMA's.
constexpr family_layout layout{.scoring = routing::softmax_of_chosen};

described_model describe_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    hf_names names;
    names.expert_hidden = names.hidden;
    names.router = "block_sparse_moe.gate";
    names.experts = "block_sparse_moe.experts";
    names.expert_gate = "w1";
    names.expert_up = "w3";
    names.expert_down = "w2";
    auto model = header.describe(layout, names);
    header.set_windows(model);
    return model;
}

constexpr std::array<std::string_view, 1> hf_names_of_it{"MixtralForCausalLM"};

} // namespace

family const families::mixtral{"", nullptr, hf_names_of_it, describe_hf};

} // namespace plait
