#include <plait/model/families/llama.hpp>

#include <plait/model/families/gguf_header.hpp>
#include <plait/model/families/hf_header.hpp>

namespace plait {

described_model describe_llama(gguf_file const& file)
{
    gguf_header const header(file);
    if (file.u32("llama.expert_count", 0) != 0)
        header.fail("expert_count", "mixtures of experts are not computed", errc::unsupported);
    header.neutral("use_parallel_residual", false);
    header.neutral("residual_scale", {0.0f, 1.0f});
    header.neutral("logit_scale", {0.0f, 1.0f});
    header.neutral("final_logit_softcapping", {0.0f});
    return header.describe({.rope = rope_style::pairs,
                            .qkv_bias = presence::optional,
                            .output_bias = presence::optional,
                            .ffn_bias = presence::optional});
}

described_model describe_llama_hf(hf_directory const& folder)
{
    return hf_header(folder).describe({.qkv_bias = presence::optional,
                                       .output_bias = presence::optional,
                                       .ffn_bias = presence::optional,
                                       .window = folder.config().string("model_type", "") == "mistral"});
}

} // namespace plait
