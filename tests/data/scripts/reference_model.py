"""A GGUF file of the LLaMA family as a transformers model that computes in double precision, and its tokenizer.

Needs: numpy, gguf, torch (CPU), transformers (>= 5), tokenizers, jinja2.
"""

import gguf
import numpy as np
import torch
import transformers
from transformers.models.llama import modeling_llama


class gguf_model:
    """The metadata and the dequantised weights of a GGUF file."""

    def __init__(self, path):
        self._reader = gguf.GGUFReader(path)
        self._tensors = {t.name: t for t in self._reader.tensors}
        if self.meta("general.architecture") != "llama":
            raise ValueError("only the LLaMA family is read here")

    def meta(self, key, otherwise=None):
        field = self._reader.get_field(key)
        return otherwise if field is None else field.contents()

    def has(self, name):
        return name in self._tensors

    def weight(self, name):
        """The tensor in double, rows as in PyTorch (out, in). Dequantised in float as GGUF defines it."""
        t = self._tensors[name]
        return torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).astype(np.float64))

    def config(self):
        m = self.meta
        heads = m("llama.attention.head_count")
        return transformers.LlamaConfig(
            vocab_size=len(m("tokenizer.ggml.tokens")),
            hidden_size=m("llama.embedding_length"),
            intermediate_size=m("llama.feed_forward_length"),
            num_hidden_layers=m("llama.block_count"),
            num_attention_heads=heads,
            num_key_value_heads=m("llama.attention.head_count_kv", heads),
            max_position_embeddings=m("llama.context_length"),
            rms_norm_eps=m("llama.attention.layer_norm_rms_epsilon"),
            rope_parameters={"rope_type": "default", "rope_theta": m("llama.rope.freq_base", 10000.0)},
            tie_word_embeddings=not self.has("output.weight"),
            attention_bias=False,
            mlp_bias=False,
            hidden_act="silu",
            bos_token_id=m("tokenizer.ggml.bos_token_id"),
            eos_token_id=m("tokenizer.ggml.eos_token_id"),
        )


def to_halves(weight, heads):
    """Rows of a Q or K projection: GGUF keeps each rotated pair adjacent, transformers in two halves."""
    rows, columns = weight.shape
    return weight.reshape(heads, rows // heads // 2, 2, columns).transpose(1, 2).reshape(rows, columns)


def _double_norm(self, x):
    # transformers computes the norm in float whatever the model's type.
    return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon))


def _double_rotary(self, x, position_ids):
    # transformers computes frequencies and angles in float whatever the model's type.
    theta = self.config.rope_parameters["rope_theta"]
    d = self.config.head_dim
    frequency = theta ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    angle = position_ids[..., None].to(torch.float64) * frequency
    angle = torch.cat((angle, angle), dim=-1)
    return angle.cos(), angle.sin()


def double_model(source):
    """The transformers model in double precision throughout."""
    modeling_llama.LlamaRMSNorm.forward = _double_norm
    modeling_llama.LlamaRotaryEmbedding.forward = _double_rotary
    config = source.config()
    config._attn_implementation = "sdpa"  # unlike "eager" it keeps the softmax in the inputs' type
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    q, kv = config.num_attention_heads, config.num_key_value_heads
    state = {"model.embed_tokens.weight": source.weight("token_embd.weight"),
             "model.norm.weight": source.weight("output_norm.weight")}
    state["lm_head.weight"] = (source.weight("output.weight") if source.has("output.weight")
                               else state["model.embed_tokens.weight"])
    for i in range(config.num_hidden_layers):
        ours, theirs = "blk.%d." % i, "model.layers.%d." % i
        state[theirs + "input_layernorm.weight"] = source.weight(ours + "attn_norm.weight")
        state[theirs + "post_attention_layernorm.weight"] = source.weight(ours + "ffn_norm.weight")
        state[theirs + "self_attn.q_proj.weight"] = to_halves(source.weight(ours + "attn_q.weight"), q)
        state[theirs + "self_attn.k_proj.weight"] = to_halves(source.weight(ours + "attn_k.weight"), kv)
        state[theirs + "self_attn.v_proj.weight"] = source.weight(ours + "attn_v.weight")
        state[theirs + "self_attn.o_proj.weight"] = source.weight(ours + "attn_output.weight")
        state[theirs + "mlp.gate_proj.weight"] = source.weight(ours + "ffn_gate.weight")
        state[theirs + "mlp.up_proj.weight"] = source.weight(ours + "ffn_up.weight")
        state[theirs + "mlp.down_proj.weight"] = source.weight(ours + "ffn_down.weight")
    model.load_state_dict(state, strict=True, assign=True)
    model.model.rotary_emb = modeling_llama.LlamaRotaryEmbedding(config)
    for name, p in model.named_parameters():
        if p.dtype != torch.float64 or p.is_meta:
            raise AssertionError(name)
    return model.eval()


def written_out(source, tokens):
    """The same logits from the formulas alone, with GGUF's own order of rotated pairs: a check of double_model."""
    m, config = source.meta, source.config()
    heads, kv = config.num_attention_heads, config.num_key_value_heads
    eps, d, n = config.rms_norm_eps, config.hidden_size // config.num_attention_heads, len(tokens)

    def norm(x, name):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps) * source.weight(name)

    i = torch.arange(d // 2, dtype=torch.float64)
    angle = torch.arange(n, dtype=torch.float64)[:, None] * m("llama.rope.freq_base") ** (-2 * i / d)
    turn = torch.polar(torch.ones_like(angle), angle)[:, None, :]

    def rotate(x):  # (n, heads, d): neighbours are real and imaginary part
        z = torch.view_as_complex(x.reshape(n, -1, d // 2, 2).contiguous())
        return torch.view_as_real(z * turn).reshape(n, -1, d)

    embedding = source.weight("token_embd.weight")
    x = embedding[torch.tensor(tokens)]
    hidden = torch.full((n, n), -torch.inf, dtype=torch.float64).triu(1)
    for layer in range(config.num_hidden_layers):
        b = "blk.%d." % layer
        h = norm(x, b + "attn_norm.weight")
        q = rotate((h @ source.weight(b + "attn_q.weight").T).reshape(n, heads, d))
        k = rotate((h @ source.weight(b + "attn_k.weight").T).reshape(n, kv, d))
        v = (h @ source.weight(b + "attn_v.weight").T).reshape(n, kv, d)
        out = torch.empty(n, heads, d, dtype=torch.float64)
        for a in range(heads):
            g = a // (heads // kv)
            out[:, a] = torch.softmax(q[:, a] @ k[:, g].T / d ** 0.5 + hidden, -1) @ v[:, g]
        x = x + out.reshape(n, -1) @ source.weight(b + "attn_output.weight").T
        h = norm(x, b + "ffn_norm.weight")
        gate = h @ source.weight(b + "ffn_gate.weight").T
        up = h @ source.weight(b + "ffn_up.weight").T
        x = x + (gate * torch.sigmoid(gate) * up) @ source.weight(b + "ffn_down.weight").T
    x = norm(x, "output_norm.weight")
    return x @ (source.weight("output.weight") if source.has("output.weight") else embedding).T


def tokenizer(source):
    """The file's byte-level BPE (pre-tokenizer `smollm`: single digits, then the GPT-2 expression)."""
    import tokenizers as t
    if source.meta("tokenizer.ggml.model") != "gpt2" or source.meta("tokenizer.ggml.pre") != "smollm":
        raise ValueError("only byte-level BPE with pre-tokenizer smollm is built here")
    tokens = source.meta("tokenizer.ggml.tokens")
    types = source.meta("tokenizer.ggml.token_type")
    merges = [tuple(m.split(" ")) for m in source.meta("tokenizer.ggml.merges")]
    bpe = t.Tokenizer(t.models.BPE({s: i for i, s in enumerate(tokens)}, merges, ignore_merges=False))
    bpe.pre_tokenizer = t.pre_tokenizers.Sequence([
        t.pre_tokenizers.Digits(individual_digits=True),
        t.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])
    bpe.decoder = t.decoders.ByteLevel()
    bpe.add_special_tokens([s for s, kind in zip(tokens, types) if kind == 3])
    return bpe


def render_chat(source, messages):
    """The messages through the file's chat template, with the assistant's turn opened."""
    import jinja2.sandbox
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(source.meta("tokenizer.chat_template")).render(
        messages=messages, add_generation_prompt=True)


def teacher_forced(model, tokens):
    """Logits at every position, (len(tokens), vocabulary), double."""
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]


def greedy(model, prompts, count):
    """`count` greedy tokens after each prompt, end-of-generation tokens not heeded, and by how much each led.

    The prompts run side by side, padded on the left. Returns two (prompts, count) arrays: ids and margins.
    """
    longest = max(len(p) for p in prompts)
    ids = torch.tensor([[0] * (longest - len(p)) + p for p in prompts])
    seen = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts])
    position = (seen.cumsum(-1) - 1).clamp(min=0)
    cache = transformers.DynamicCache(config=model.config)
    out, lead = [], []
    with torch.inference_mode():
        while True:
            step = model(input_ids=ids, attention_mask=seen, position_ids=position, cache=cache,
                         use_cache=True, logits_to_keep=1)
            two = torch.topk(step.logits[:, -1], 2)
            out.append(two.indices[:, 0])
            lead.append(two.values[:, 0] - two.values[:, 1])
            if len(out) == count:
                return torch.stack(out, 1).numpy(), torch.stack(lead, 1).numpy()
            ids = out[-1][:, None]
            seen = torch.cat((seen, torch.ones_like(ids)), 1)
            position = position[:, -1:] + 1
