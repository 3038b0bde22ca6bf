#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {
namespace {

// Gemma 1 to 3 (arXiv:2403.08295, 2408.00118, 2503.19786). Embeddings are scaled by the square root of the width. Norms
// multiply by 1 + w: GGUF files hold the sum. From Gemma 2 on, norms are around both sublayers.
constexpr family_layout layout{.activation = activation_kind::gelu_tanh};
constexpr family_layout sandwich{.placement = norm_placement::sandwich, .activation = activation_kind::gelu_tanh};
constexpr family_layout normed_heads{
    .placement = norm_placement::sandwich, .activation = activation_kind::gelu_tanh, .head_norms = presence::required};

void scale_embedding(described_model& model)
{
    model.spec.embedding_scale = std::sqrt(static_cast<float>(model.spec.width));
}

/// The largest model of a generation has its scores scaled by its width, of which its file says nothing but its depth.
void scale_scores(gguf_header const& header, described_model& model, std::size_t layers_of_the_largest)
{
    if (header.has("attention.scale") || model.spec.layers.size() != layers_of_the_largest) return;
    for (auto& layer : model.spec.layers)
        layer.attention.scale =
            1 / std::sqrt(static_cast<float>(model.spec.width) / static_cast<float>(layer.attention.heads));
}

void scale_scores(hf_header const& header, described_model& model)
{
    for (auto& layer : model.spec.layers)
        layer.attention.scale = 1 / std::sqrt(header.positive("query_pre_attn_scalar"));
}

described_model describe_gemma(gguf_file const& file)
{
    auto model = gguf_header(file).describe(layout);
    scale_embedding(model);
    return model;
}

described_model describe_gemma2(gguf_file const& file)
{
    gguf_header const header(file);
    auto model = header.describe(sandwich);
    scale_embedding(model);
    scale_scores(header, model, 46);
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i)
        if (ends_interval(i, 2)) model.spec.layers[i].attention.window = 0;
    return model;
}

described_model describe_gemma3(gguf_file const& file)
{
    gguf_header const header(file);
    auto model = header.describe(normed_heads);
    scale_embedding(model);
    scale_scores(header, model, 62);
    auto const base = header.positive_or("rope.freq_base_swa", 10000);
    auto const pattern = header.size_or("attention.sliding_window_pattern", 6);
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i) {
        auto& attention = model.spec.layers[i].attention;
        if (!ends_interval(i, pattern))
            attention.rope = {.style = attention.rope.style, .dims = attention.rope.dims, .base = base};
        else
            attention.window = 0;
    }
    return model;
}

hf_names gemma_names(std::string_view activation)
{
    hf_names names;
    names.activation = activation;
    names.gelu_is_tanh = true;
    names.norm_plus = 1;
    return names;
}

hf_names sandwich_names()
{
    auto names = gemma_names("hidden_activation");
    names.ffn_norm = "pre_feedforward_layernorm";
    return names;
}

void read_caps(hf_header const& header, described_model& model)
{
    model.spec.logit_cap = header.not_negative("final_logit_softcapping");
    for (auto& layer : model.spec.layers)
        layer.attention.soft_cap = header.not_negative("attn_logit_softcapping");
}

described_model describe_gemma_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    header.neutral("use_bidirectional_attention", false);
    auto const named = header.config().has("hidden_activation");
    auto model = header.describe(layout, gemma_names(named ? "hidden_activation" : "hidden_act"));
    scale_embedding(model);
    return model;
}

described_model describe_gemma2_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    header.neutral("use_bidirectional_attention", false);
    auto model = header.describe(sandwich, sandwich_names());
    scale_embedding(model);
    scale_scores(header, model);
    read_caps(header, model);
    header.set_windows(model, 2);
    return model;
}

described_model describe_gemma3_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    header.neutral("use_bidirectional_attention", false);
    auto model = header.describe(normed_heads, sandwich_names());
    scale_embedding(model);
    scale_scores(header, model);
    read_caps(header, model);
    auto const windows = header.windowed(model.spec.layers.size(), header.size_or("sliding_window_pattern", 6));
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i) {
        if (!windows[i]) continue;
        auto& attention = model.spec.layers[i].attention;
        attention.window = header.size("sliding_window");
        // One entry for each kind of layer, or a base beside the one that is scaled.
        if (header.config().has("rope_local_base_freq"))
            attention.rope = {.style = attention.rope.style,
                              .dims = attention.rope.dims,
                              .base = header.positive("rope_local_base_freq")};
        else
            attention.rope = header.rope(normed_heads, attention.head_dim, "sliding_attention");
    }
    return model;
}

constexpr std::array<std::string_view, 1> gemma_architectures{"GemmaForCausalLM"};
constexpr std::array<std::string_view, 1> gemma2_architectures{"Gemma2ForCausalLM"};
constexpr std::array<std::string_view, 1> gemma3_architectures{"Gemma3ForCausalLM"};

} // namespace

family const families::gemma{"gemma", describe_gemma, gemma_architectures, describe_gemma_hf};
family const families::gemma2{"gemma2", describe_gemma2, gemma2_architectures, describe_gemma2_hf};
family const families::gemma3{"gemma3", describe_gemma3, gemma3_architectures, describe_gemma3_hf};

} // namespace plait
