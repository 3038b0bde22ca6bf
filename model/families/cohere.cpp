#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {
namespace {

// Command-R, Command-R+ (norms of heads, each with its own weights) and Command-R7B (windows, and no rotation in layers
// without). One norm serves both sublayers of a layer, which read the stream as it was.
constexpr family_layout layout{.norm = norm_kind::layer,
                               .parallel = true,
                               .shared_norm = true,
                               .rope = rope_style::pairs,
                               .head_norms = presence::optional,
                               .head_norms_over = head_norm::each_head};

described_model describe_cohere(gguf_file const& file)
{
    gguf_header const header(file);
    auto model = header.describe(layout);
    model.spec.logit_scale = header.positive_or("logit_scale", 1);
    return model;
}

described_model describe_cohere2(gguf_file const& file)
{
    auto model = describe_cohere(file);
    auto const pattern = gguf_header(file).size_or("attention.sliding_window_pattern", 4);
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i) {
        auto& attention = model.spec.layers[i].attention;
        if (!ends_interval(i, pattern)) continue;
        attention.window = 0;
        attention.rope = {};
    }
    return model;
}

described_model describe_cohere_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    header.neutral("attention_bias", false);
    hf_names names;
    names.epsilon = "layer_norm_eps";
    auto model = header.describe(layout, names);
    model.spec.logit_scale = header.positive_or("logit_scale", 0.0625f);
    return model;
}

described_model describe_cohere2_hf(hf_directory const& folder)
{
    hf_header const header(folder);
    auto model = describe_cohere_hf(folder);
    auto const windows = header.windowed(model.spec.layers.size(), header.size_or("sliding_window_pattern", 4));
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i) {
        auto& attention = model.spec.layers[i].attention;
        if (windows[i])
            attention.window = header.size("sliding_window");
        else
            attention.rope = {};
    }
    return model;
}

constexpr std::array<std::string_view, 1> cohere_architectures{"CohereForCausalLM"};
constexpr std::array<std::string_view, 1> cohere2_architectures{"Cohere2ForCausalLM"};

} // namespace

family const families::cohere{"command-r", describe_cohere, cohere_architectures, describe_cohere_hf};
family const families::cohere2{"cohere2", describe_cohere2, cohere2_architectures, describe_cohere2_hf};

} // namespace plait
