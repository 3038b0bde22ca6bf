#!/usr/bin/env python3
"""Makes the goldens of a Gemma 3 in mixed K-quants: tests/data/real/gemma.golden and gemma.json.

    make_gemma_goldens.py MODEL.gguf OUTPUT_FOLDER

llama.cpp reads the file as it is and continues each prompt greedily; the model dequantised and run in double by
transformers is then forced along the same tokens. Format and definitions: tests/data/real/README.md.

Needs: what make_llama_goldens.py needs; 8 GB of memory; some minutes.
"""

import hashlib
import json
import sys

import gguf
import llama_cpp
import numpy as np
import torch
import transformers

import double_model
import golden_file
import real_prompts
from make_llama_goldens import llama

TOP = 16
GREEDY = 128
PROMPTS = ("short", "code", "chinese", "prose")
WINDOWED = lambda layer: (layer + 1) % 6 != 0

NAMES = {
    "attn_norm": "input_layernorm", "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm", "post_ffw_norm": "post_feedforward_layernorm",
    "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm", "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj", "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}


def reference(path):
    """The file's weights dequantised, in a transformers model that computes in double."""
    reader = gguf.GGUFReader(path)
    meta = lambda key: reader.get_field("gemma3." + key).contents()
    layers = meta("block_count")
    state = {}
    for t in reader.tensors:
        weight = torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).astype(np.float64))
        if t.name == "token_embd.weight":
            state["model.embed_tokens.weight"] = state["lm_head.weight"] = weight
        elif t.name == "output_norm.weight":
            state["model.norm.weight"] = weight - 1
        else:
            _, layer, name, _ = t.name.split(".")
            # GGUF files hold 1 + w of a norm, in float: what is subtracted here is added again in double.
            state["model.layers.%s.%s.weight" % (layer, NAMES[name])] = weight - 1 if "norm" in name else weight
    config = transformers.Gemma3TextConfig(
        vocab_size=state["lm_head.weight"].shape[0], hidden_size=meta("embedding_length"),
        intermediate_size=meta("feed_forward_length"), num_hidden_layers=layers,
        num_attention_heads=meta("attention.head_count"), num_key_value_heads=meta("attention.head_count_kv"),
        head_dim=meta("attention.key_length"), query_pre_attn_scalar=meta("attention.key_length"),
        max_position_embeddings=meta("context_length"), rms_norm_eps=meta("attention.layer_norm_rms_epsilon"),
        sliding_window=meta("attention.sliding_window"), tie_word_embeddings=True,
        layer_types=["sliding_attention" if WINDOWED(i) else "full_attention" for i in range(layers)],
        rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": meta("rope.freq_base")},
                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}},
        attn_implementation="eager")
    with double_model.double():
        model = transformers.Gemma3ForCausalLM(config).double()
        model.load_state_dict(state, strict=True)
    for name, p in model.named_parameters():
        if p.dtype != torch.float64:
            raise AssertionError(name)
    return model.eval()


def forced(model, tokens):
    with torch.inference_mode(), double_model.double(), double_model.only_double():
        return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


def main(path, folder):
    engine = llama(path)
    model = reference(path)
    arrays = {}
    index = {"file": "gemma.golden", "model_sha256": hashlib.sha256(open(path, "rb").read()).hexdigest(),
             "made_with": {"llama-cpp-python": llama_cpp.__version__, "llama.cpp": engine.info,
                           "torch": torch.__version__, "transformers": transformers.__version__},
             "prompts": {}}
    divergences, same_all = [], []
    for name in PROMPTS:
        prompt = [2] + engine.tokenize(real_prompts.PROMPTS[name])  # the begin token, as the file asks
        tokens, theirs = engine.run(prompt, GREEDY)
        ref = forced(model, tokens[:-1])
        their = torch.from_numpy(theirs).double()
        log_ref, log_their = torch.log_softmax(ref, -1), torch.log_softmax(their, -1)
        kl = (log_ref.exp() * (log_ref - log_their)).sum(-1)
        top, a, generated = torch.topk(ref, TOP), name + "/", slice(len(prompt) - 1, None)
        argmax = theirs.argmax(-1).astype(np.int32)
        arrays[a + "prompt_tokens"] = np.array([len(prompt)], np.int32)
        arrays[a + "tokens"] = np.array(tokens, np.int32)
        arrays[a + "argmax"] = argmax
        arrays[a + "kl"] = kl.numpy()
        arrays[a + "ref_lse"] = torch.logsumexp(ref, -1).numpy()
        arrays[a + "ref_top_ids"] = top.indices.numpy().astype(np.int32)
        arrays[a + "ref_top_logits"] = top.values.numpy()
        same = argmax == arrays[a + "ref_top_ids"][:, 0]
        divergences.append(kl.numpy()[generated])
        same_all.append(same[generated])
        figures = {"prompt_tokens": len(prompt), "mean_kl_generated": float(kl[generated].mean()),
                   "top1_agreement_with_reference_generated": float(same[generated].mean())}
        index["prompts"][name] = figures
        print(name, figures, flush=True)
    mean = float(np.concatenate(divergences).mean())
    index["mean_kl_generated"] = mean
    index["top1_agreement_with_reference"] = float(np.concatenate(same_all).mean())
    arrays["mean_kl_generated"] = np.array([mean])
    print("mean KL over the generated positions %.6g" % mean)
    golden_file.write_beside(folder, "gemma", arrays, index)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
