"""The decoder families of tests/data/families: the configuration of a tiny model of each, and how it is filled.

Sizes are as small as every rule allows: windows, original contexts of scaled rotations, and groups are all shorter than
the prompt, and numbers that published models leave at 1 are not 1.
"""

VOCABULARY, CONTEXT, PROMPT, WINDOW = 96, 128, 56, 16

PLAIN = {"rope_type": "default", "rope_theta": 10000.0}
SMALL = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=CONTEXT)
MOE = dict(SMALL, intermediate_size=32)


def rope(kind="default", theta=10000.0, **more):
    return dict({"rope_type": kind, "rope_theta": theta}, **more)


class family:
    """What the script needs to know about a family.

    `model`: transformers' name, the prefix of its classes. `config`: the arguments of its configuration.
    `gain`: what the query and key projections (their norms, where there are) are scaled by, so that scores spread.
    `embedding`: standard deviation of an entry of the embedding. `norm`: what the norm weights lie around.
    `short`: tokens of a second, shorter prompt, for a rotation that depends on the length; or 0.
    `published`: entries of config.json as checkpoints had it before transformers 5, None to leave an entry out.
    `gguf`: whether llama.cpp's converter can say all of it. `opinion`: whether llama.cpp runs it by the same rules.
    `extra`: whose names and further tensors published checkpoints have. `experts`: "mxfp4" to store them so.
    `note`: what it has that a plain LLaMA has not.
    """

    def __init__(self, model, note, config, gain=1.8, embedding=0.5, norm=1.0, short=0, published=None, gguf=True,
                 experts=None, causal="ForCausalLM", extra=None, opinion=True):
        self.model, self.note, self.config, self.gain = model, note, config, gain
        self.embedding, self.norm, self.short, self.published = embedding, norm, short, published or {}
        self.gguf, self.experts, self.causal, self.extra = gguf, experts, causal, extra
        self.opinion = opinion


GPT = dict(n_positions=64, n_embd=32, n_layer=2, n_head=4)
NEOX = dict(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
            max_position_embeddings=64, tie_word_embeddings=False,
            rope_parameters=rope(partial_rotary_factor=0.25))
NEOX_PUBLISHED = {"rotary_pct": 0.25, "rotary_emb_base": 10000, "partial_rotary_factor": None, "rope_theta": None,
                  "rope_scaling": None}
GEMMA = dict(SMALL, head_dim=16, hidden_activation="gelu_pytorch_tanh")
GEMMA2 = dict(GEMMA, num_hidden_layers=3, sliding_window=WINDOW, attn_logit_softcapping=5.0,
              final_logit_softcapping=4.0, rope_parameters=rope())
GLM = dict(SMALL, head_dim=8, attention_bias=True, rms_norm_eps=1e-5, pad_token_id=0, eos_token_id=2,
           rope_parameters=rope(partial_rotary_factor=0.5))
DEEPSEEK_PUBLISHED = {"head_dim": None, "qk_head_dim": None}

FAMILIES = {
    "llama": family("Llama", "GQA", dict(SMALL, rope_parameters=rope())),
    "gpt2": family("GPT2", "learned positions, fused QKV, weights stored transposed, biases, tied output",
                   dict(GPT, n_ctx=64), causal="LMHeadModel", extra="gpt2"),
    "qwen2": family("Qwen2", "QKV biases, tied output",
                    dict(SMALL, tie_word_embeddings=True, rope_parameters=rope(theta=1e6)),
                    published={"layer_types": None, "sliding_window": 64}),
    "qwen3": family("Qwen3", "QK norm per head, heads wider than width / heads, tied output",
                    dict(SMALL, head_dim=16, tie_word_embeddings=True, rope_parameters=rope(theta=1e6)),
                    published={"layer_types": None}),
    "gemma2": family("Gemma2", "norms around both sublayers, 1 + w, two soft caps, window in every second layer, "
                     "embedding times sqrt(width)", dict(GEMMA2, query_pre_attn_scalar=16),
                     embedding=0.4, norm=0.0, published={"layer_types": None}),
    "gemma2_scalar": family("Gemma2", "as gemma2, scores scaled by query_pre_attn_scalar instead of the head size "
                            "(which a GGUF file cannot say)", dict(GEMMA2, query_pre_attn_scalar=24),
                            embedding=0.4, norm=0.0, gain=2.0, published={"layer_types": None}, gguf=False),
    "gemma3": family("Gemma3", "as gemma2 without caps, QK norm (1 + w), five windowed layers in six, "
                     "another rotation base where windowed, linear scaling where not",
                     dict(GEMMA, intermediate_size=32, num_hidden_layers=6, sliding_window=WINDOW,
                          query_pre_attn_scalar=16, layer_types=["sliding_attention"] * 5 + ["full_attention"],
                          rope_parameters={"full_attention": rope("linear", 1e6, factor=8.0),
                                           "sliding_attention": rope(theta=1e4)}),
                     embedding=0.3, norm=0.0,
                     published={"layer_types": None, "_sliding_window_pattern": None, "sliding_window_pattern": 6}),
    "gptneox": family("GPTNeoX", "parallel residual with two layer norms, rotation of a quarter, QKV fused per head",
                      dict(NEOX, use_parallel_residual=True), extra="gptneox", published=NEOX_PUBLISHED),
    "gptneox_sequential": family("GPTNeoX", "as gptneox, one sublayer after the other",
                                 dict(NEOX, hidden_size=32, rope_parameters=rope(partial_rotary_factor=0.5),
                                      use_parallel_residual=False),
                                 extra="gptneox", published=dict(NEOX_PUBLISHED, rotary_pct=0.5)),
    "olmo2": family("Olmo2", "norms after the sublayers, before the addition; QK norm over the full width",
                    dict(SMALL, rope_parameters=rope(theta=5e5))),
    "phi3": family("Phi3", "fused QKV and gate-up, LongRoPE, rotation of three quarters",
                   dict(SMALL, hidden_size=64, intermediate_size=32, original_max_position_embeddings=32,
                        tie_word_embeddings=True, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                        rope_parameters=rope("longrope", partial_rotary_factor=0.75,
                                             short_factor=[1.0, 1.05, 1.1, 1.2, 1.4, 1.7],
                                             long_factor=[1.1, 1.5, 2.2, 3.0, 3.7, 4.5])),
                   short=24, gain=1.5),
    "phi3_window": family("Phi3", "fused QKV and gate-up, window in every layer (Phi-3-mini-4k)",
                          dict(SMALL, sliding_window=WINDOW, original_max_position_embeddings=CONTEXT,
                               pad_token_id=0, bos_token_id=1, eos_token_id=2, rope_parameters=rope()),
                          opinion=False),
    "llama3": family("Llama", "rotation scaled as in LLaMA 3.1, tied output, heads wider than width / heads",
                     dict(SMALL, head_dim=16, tie_word_embeddings=True,
                          rope_parameters=rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                               original_max_position_embeddings=32))),
    "llama_linear": family("Llama", "rotation with linear scaling",
                           dict(SMALL, head_dim=16, rope_parameters=rope("linear", factor=4.0))),
    "llama_yarn": family("Llama", "rotation with YaRN scaling",
                         dict(SMALL, head_dim=16,
                              rope_parameters=rope("yarn", 500.0, factor=4.0, original_max_position_embeddings=32))),
    "llama_bias": family("Llama", "biases of all projections",
                         dict(SMALL, attention_bias=True, mlp_bias=True, rope_parameters=rope())),
    "mistral": family("Mistral", "window in every layer, heads wider than width / heads",
                      dict(SMALL, head_dim=16, sliding_window=WINDOW, rope_parameters=rope()), gguf=False),
    "gemma": family("Gemma", "1 + w, one KV head, GeGLU, embedding times sqrt(width), tied output",
                    dict(SMALL, head_dim=16, num_key_value_heads=1, rope_parameters=rope()), embedding=0.4, norm=0.0,
                    published={"hidden_act": "gelu"}),
    "smollm3": family("SmolLM3", "no rotation in every fourth layer, tied output",
                      dict(SMALL, num_hidden_layers=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           tie_word_embeddings=True, rope_parameters=rope(theta=2e6))),
    "granite": family("Granite", "multipliers of the embedding, the scores, the residuals and the logits; tied output",
                      dict(SMALL, embedding_multiplier=3.0, attention_multiplier=0.45, residual_multiplier=0.6,
                           logits_scaling=2.5, tie_word_embeddings=True, rope_parameters=rope()), embedding=0.6),
    "cohere": family("Cohere", "attention and feed-forward side by side after one layer norm without bias, "
                     "neighbours are rotated, logits scaled, tied output",
                     dict(SMALL, logit_scale=0.6, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                          rope_parameters=rope()), published={"model_max_length": CONTEXT}),
    "cohere_qk_norm": family("Cohere", "as cohere, with a layer norm of each head of Q and K, each with its weights",
                             dict(SMALL, logit_scale=0.6, use_qk_norm=True, pad_token_id=0, bos_token_id=1,
                                  eos_token_id=2, rope_parameters=rope()), published={"model_max_length": CONTEXT},
                             opinion=False),
    "cohere2": family("Cohere2", "as cohere; three windowed layers of four, and no rotation in the fourth",
                      dict(SMALL, intermediate_size=32, num_hidden_layers=4, logit_scale=0.6, sliding_window=WINDOW,
                           pad_token_id=0, bos_token_id=1, eos_token_id=2, rotary_pct=1.0, rope_parameters=rope()),
                      published={"layer_types": None, "sliding_window_pattern": 4}),
    "glm": family("Glm", "neighbours of half of the head are rotated, QKV biases, fused gate-up", dict(GLM)),
    "glm4": family("Glm4", "as glm, with norms around both sublayers; heads wider than width / heads",
                   dict(GLM, head_dim=16)),
    "mixtral": family("Mixtral", "experts, two of four, softmax over the chosen",
                      dict(MOE, num_local_experts=4, num_experts_per_tok=2, rope_parameters=rope(theta=1e6))),
    "qwen3_moe": family("Qwen3Moe", "QK norm; experts, three of six, softmax over all, then scaled to sum 1",
                        dict(MOE, head_dim=16, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=32,
                             norm_topk_prob=True, decoder_sparse_step=1, rope_parameters=rope(theta=1e6)),
                        published={"num_experts": 6, "num_local_experts": None}),
    "gpt_oss": family("GptOss", "attention sinks, biases everywhere, clamped gate, window in every second layer, "
                      "YaRN without rounding of the ramp",
                      dict(MOE, hidden_size=64, head_dim=16, num_local_experts=4, num_experts_per_tok=2,
                           sliding_window=WINDOW, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                           rope_parameters=rope("yarn", 500.0, factor=4.0, beta_fast=32.0, beta_slow=1.0,
                                                original_max_position_embeddings=32, truncate=False)),
                      gguf=False),
    "gpt_oss_mxfp4": family("GptOss", "as gpt_oss, experts in MXFP4 as published",
                            dict(MOE, hidden_size=64, head_dim=16, num_local_experts=4, num_experts_per_tok=2,
                                 sliding_window=WINDOW, pad_token_id=0, bos_token_id=1,
                                 eos_token_id=2,
                                 rope_parameters=rope("yarn", 500.0, factor=4.0, beta_fast=32.0, beta_slow=1.0,
                                                      original_max_position_embeddings=32, truncate=False)),
                            experts="mxfp4", opinion=False),
    "glm4_moe": family("Glm4Moe", "QK norm, rotation of half; one dense layer, then a shared expert beside two of six "
                       "that a sigmoid with a correction bias chooses; in the files a layer that guesses ahead",
                       dict(MOE, head_dim=16, attention_bias=True, use_qk_norm=True,
                            n_routed_experts=6, num_experts_per_tok=2, moe_intermediate_size=32, n_shared_experts=1,
                            num_nextn_predict_layers=1,
                            first_k_dense_replace=1, n_group=1, topk_group=1, routed_scaling_factor=1.5,
                            norm_topk_prob=True, pad_token_id=0, eos_token_id=2,
                            rope_parameters=rope(partial_rotary_factor=0.5)), extra="next"),
    "deepseek_v2": family("DeepseekV2", "latent attention, shared experts, softmax router without renormalisation",
                          dict(MOE, num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=32, qk_nope_head_dim=16,
                               qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=4, num_experts_per_tok=2,
                               moe_intermediate_size=32, n_shared_experts=2, first_k_dense_replace=1,
                               topk_method="greedy", norm_topk_prob=False, routed_scaling_factor=1.5,
                               rope_parameters=rope()), published=dict(DEEPSEEK_PUBLISHED, scoring_func="softmax"),
                          gain=2.2, opinion=False),
    "deepseek_v3": family("DeepseekV3", "latent attention with a latent query, YaRN with its score factor, groups of "
                          "experts chosen by sigmoid with a correction bias",
                          dict(MOE, num_key_value_heads=4, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16,
                               qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=8, num_experts_per_tok=3,
                               moe_intermediate_size=32, n_shared_experts=1, first_k_dense_replace=1, n_group=4,
                               num_nextn_predict_layers=0,
                               topk_group=2, norm_topk_prob=True, routed_scaling_factor=2.5,
                               rope_parameters=rope("yarn", factor=4.0, mscale=1.0, mscale_all_dim=1.0,
                                                    beta_fast=32, beta_slow=1, original_max_position_embeddings=32)),
                          published=dict(DEEPSEEK_PUBLISHED, scoring_func="sigmoid", topk_method="noaux_tc")),
    "starcoder2": family("Starcoder2", "layer norms, biases everywhere, GELU without a gate, tied output",
                         dict(SMALL, sliding_window=None, rope_parameters=rope(theta=1e5))),
    "gpt1": family("OpenAIGPT", "norm after each addition and none at the end, learned positions, tied output",
                   dict(GPT), causal="LMHeadModel", extra="gpt1", gguf=False, gain=2.4),
}


def _rotation(name, part=None, **change):
    rotation = FAMILIES[name].config["rope_parameters"]
    if part is not None:
        return {"rope_parameters": dict(rotation, **{part: dict(rotation[part], **change)})}
    return {"rope_parameters": dict(rotation, **change)}


def _all(kind, layers):
    return {"layer_types": [kind + "_attention"] * layers}


WIDER = {"sliding_window": WINDOW + 1}
NO_ROTATION_SCALE = {"rope_parameters": rope()}

# What each family must do, and the change of the configuration that leaves it out. The same weights must then say
# something else, or the golden would not notice.
TWINS = {
    "llama": {"epsilon 1e-5 for 1e-6": {"rms_norm_eps": 1e-5}, "gelu for silu": {"hidden_act": "gelu"}},
    "gpt2": {"exact gelu for tanh gelu": {"activation_function": "gelu"}},
    "qwen2": {"base 1e4": _rotation("qwen2", rope_theta=1e4)},
    "qwen3": {"base 1e4": _rotation("qwen3", rope_theta=1e4)},
    "gemma": {"exact gelu for tanh gelu": {"hidden_act": "gelu_python"}},
    "gemma2": {"no attention cap": {"attn_logit_softcapping": None}, "no final cap": {"final_logit_softcapping": None},
               "window one wider": WIDER, "no window": _all("full", 3), "window in all layers": _all("sliding", 3),
               "windows in the other layers": {"layer_types": ["full_attention", "sliding_attention",
                                                               "full_attention"]}},
    "gemma2_scalar": {"scores by head size": {"query_pre_attn_scalar": 16}},
    "gemma3": {"window one wider": WIDER, "no window": _all("full", 6), "window in all layers": _all("sliding", 6),
               "one base": _rotation("gemma3", "sliding_attention", rope_theta=1e6),
               "scaling in no layer": _rotation("gemma3", "full_attention", rope_type="default"),
               "scaling in all layers": _rotation("gemma3", "sliding_attention", rope_type="linear", factor=8.0)},
    "gptneox": {"one after the other": {"use_parallel_residual": False},
                "rotation of a half": _rotation("gptneox", partial_rotary_factor=0.5),
                "tanh gelu for exact gelu": {"hidden_act": "gelu_new"}},
    "gptneox_sequential": {"side by side": {"use_parallel_residual": True}},
    "olmo2": {"epsilon 1e-6 for 1e-5": {"rms_norm_eps": 1e-6}},
    "phi3": {"no attention factor": _rotation("phi3", attention_factor=1.0),
             "short factors": _rotation("phi3", long_factor=FAMILIES["phi3"].config["rope_parameters"]["short_factor"])},
    "phi3_window": {"window one wider": WIDER, "no window": {"sliding_window": None}},
    "llama3": {"no scaling": NO_ROTATION_SCALE, "linear": {"rope_parameters": rope("linear", factor=8.0)}},
    "llama_linear": {"no scaling": NO_ROTATION_SCALE},
    "llama_yarn": {"no scaling": {"rope_parameters": rope(theta=500.0)},
                   "linear": {"rope_parameters": rope("linear", 500.0, factor=4.0)},
                   "no attention factor": _rotation("llama_yarn", attention_factor=1.0),
                   "ramp not rounded": _rotation("llama_yarn", truncate=False)},
    "mistral": {"window one wider": WIDER, "no window": {"sliding_window": None}},
    "smollm3": {"rotation everywhere": {"no_rope_layers": [1] * 4},
                "the other layers": {"no_rope_layers": [0, 0, 0, 1]}},
    "granite": {k: {k: v} for k, v in {"embedding_multiplier": 1.0, "attention_multiplier": 8 ** -0.5,
                                       "residual_multiplier": 1.0, "logits_scaling": 1.0}.items()},
    "cohere": {"logits not scaled": {"logit_scale": 1.0}},
    "cohere2": {"window one wider": WIDER, "no window, rotation nowhere": _all("full", 4),
                "window and rotation everywhere": _all("sliding", 4)},
    "glm": {"rotation of all": _rotation("glm", partial_rotary_factor=1.0)},
    "glm4": {"rotation of all": _rotation("glm4", partial_rotary_factor=1.0)},
    "mixtral": {"one expert": {"num_experts_per_tok": 1}},
    "qwen3_moe": {"not scaled to sum 1": {"norm_topk_prob": False}},
    "gpt_oss": {"window one wider": WIDER, "no window": _all("full", 2), "ramp rounded": _rotation("gpt_oss",
                                                                                                  truncate=True),
                "no limit": {"swiglu_limit": 1e9}, "silu": {"swiglu_alpha": 1.0}},
    "glm4_moe": {"not scaled to sum 1": {"norm_topk_prob": False}, "no factor": {"routed_scaling_factor": 1.0},
                 "rotation of all": _rotation("glm4_moe", partial_rotary_factor=1.0)},
    "deepseek_v2": {"no factor": {"routed_scaling_factor": 1.0}},
    "deepseek_v3": {"no groups": {"n_group": 1, "topk_group": 1}, "not scaled to sum 1": {"norm_topk_prob": False},
                    "no score factor": _rotation("deepseek_v3", mscale_all_dim=0.0, attention_factor=1.0),
                    "no factor": {"routed_scaling_factor": 1.0}},
    "starcoder2": {"exact gelu for tanh gelu": {"hidden_act": "gelu"}},
}
