#pragma once

#include <plait/model/families/family.hpp>

/// The families, each in the file of its name, those of one line in one; what is particular to it stands there.
namespace plait::families {

extern family const chatglm;
extern family const cohere;
extern family const cohere2;
extern family const gemma;
extern family const gemma2;
extern family const gemma3;
extern family const glm;
extern family const glm4;
extern family const glm4_moe;
extern family const gpt1;
extern family const gpt2;
extern family const gpt_oss;
extern family const gptneox;
extern family const granite;
extern family const llama;
extern family const mixtral;
extern family const olmo2;
extern family const phi3;
extern family const qwen2;
extern family const qwen3;
extern family const qwen3_moe;
extern family const smollm3;
extern family const starcoder2;

} // namespace plait::families
