#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>
#include <plait/model/families/known.hpp>
#include <plait/model/families/qwen.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace plait {
namespace {

constexpr family_layout layout{.qkv_bias = presence::required};

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

constexpr std::array<std::string_view, 1> hf_names_of_it{"Qwen2ForCausalLM"};

} // namespace

/// Published configs have a window that they switch off.
void set_qwen_windows(hf_header const& header, described_model& model)
{
    if (!header.config().boolean("use_sliding_window", false)) return;
    auto const first = header.config().integer("max_window_layers", 28);
    for (std::size_t i = 0; i < model.spec.layers.size(); ++i)
        if (header.windowed(i, static_cast<std::int64_t>(i) >= first))
            model.spec.layers[i].attention.window = header.size("sliding_window");
}

family const families::qwen2{"qwen2", describe_gguf, hf_names_of_it, describe_hf};

} // namespace plait
