#!/usr/bin/env python3
"""Makes a tiny model of every decoder family, and what it says: tests/data/families/NAME.

    make_family_goldens.py [--llama-cpp FOLDER] [NAME...]

Without names it makes all of families.py. FOLDER is a source tree of llama.cpp, for its converter: without it no
model.gguf is made, and those that are there stay. If the module llama_cpp is there too, llama.cpp runs the GGUF
file as a second opinion. What is in a folder, and what is checked on the way: tests/data/families/README.md.

Needs: numpy, torch (CPU), transformers (>= 5), safetensors; for GGUF files llama.cpp's sources, gguf and
sentencepiece. The same seed gives the same files.
"""

import argparse
import gc
import json
import pathlib
import shutil
import tempfile
import zlib

import numpy as np
import safetensors.torch
import torch
import transformers

import double_model
import family_gguf
import golden_file
import mxfp4
from families import FAMILIES, PROMPT, TWINS, VOCABULARY

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "families"
TABLE = "## The families"
SPECIAL = ["<pad>", "<s>", "</s>"]
MERGES = ["t h", "th e", "i n", "a n", "e r", "o n", "\u0120 a", "r e"]


def vocabulary():
    """Tokens of a byte-level BPE that covers printable ASCII as far as the vocabulary goes; its merges are last."""
    letters = "\u0120" + "".join(map(chr, (*range(97, 123), *range(48, 58), *range(65, 91), *range(33, 48))))
    room = VOCABULARY - len(SPECIAL) - len(MERGES)
    tokens = SPECIAL + list((letters + "".join(map(chr, (*range(58, 65), *range(91, 97)))))[:room])
    return tokens + [m.replace(" ", "") for m in MERGES]


def write_tokenizer(folder):
    tokens = vocabulary()
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    added = [{"id": i, "content": s, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
              "special": True} for i, s in enumerate(SPECIAL)]
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
             "vocab": {s: i for i, s in enumerate(tokens)}, "merges": [m.split(" ") for m in MERGES]}
    write_json(folder / "tokenizer.json",
               {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
                "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level, "model": model}, None)
    write_json(folder / "tokenizer_config.json",
               {"add_bos_token": False, "bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>",
                "tokenizer_class": "PreTrainedTokenizerFast"})


def write_json(path, what, indent=2):
    separators = (",", ":") if indent is None else None
    path.write_text(json.dumps(what, ensure_ascii=False, indent=indent, separators=separators) + "\n")


def configuration(f, change=None):
    kind = getattr(transformers, f.model + ("TextConfig" if f.model == "Gemma3" else "Config"))
    config = kind(**{"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, **f.config, **(change or {})})
    config._attn_implementation = config._experts_implementation = "eager"
    return config


def make(f, values=None, change=None):
    """A new model, filled with `values`; with `change`, entries of its configuration, one that is not the family's."""
    model = getattr(transformers, f.model + f.causal)(configuration(f, change)).eval()
    if values is not None:
        state = model.state_dict()
        assert state.keys() == values.keys()
        for name, t in state.items():
            t.copy_(values[name])
    return model


def deviation(f, name, shape, tied):
    """Of what an entry is filled with, and what it lies around: (mean, standard deviation)."""
    last = name.split(".")[-1]
    norm = "norm" in name or ".ln_" in name
    if last in ("bias", "sinks") or name.endswith("_bias"):
        return 0.0, 1.0 if last == "sinks" else 0.2 if "router" in name or "correction" in name else 0.3
    if norm:
        if ".q_norm" in name or ".k_norm" in name:
            return f.gain - (1 - f.norm), 0.3
        return f.norm, 0.3
    if any(s in name for s in ("embed_tokens", "wte", "tokens_embed", "embed_in")):
        return 0.0, f.embedding
    if any(s in name for s in ("wpe", "positions_embed")):
        return 0.0, 0.5
    if any(s in name for s in ("lm_head", "embed_out")):
        return 0.0, 2.5 / shape[1] ** 0.5
    # Transposed: those of the first two GPTs, and the experts of gpt-oss, (experts, in, out).
    rows_first = f.extra in ("gpt1", "gpt2") or (f.model == "GptOss" and len(shape) == 3)
    inputs = shape[-2] if rows_first else shape[-1]
    gain = 1.0
    if any(s in name for s in ("q_proj", "k_proj", "c_attn", "query_key_value", "qkv_proj", "q_b_proj")):
        gain = f.gain
    if f.model == "GptOss" and len(shape) == 3:  # so that gates reach the limit, which llama.cpp holds fixed
        gain = 4.0 if "gate_up" in name else 0.15
    if ".gate.weight" in name or "router" in name:
        gain = 1.5
    return 0.0, gain / inputs ** 0.5


def fill(f, name):
    """The values of all parameters by name, exact in BF16 (the correction of a router: in F32), as double."""
    random = np.random.default_rng(zlib.crc32(name.encode()))
    with torch.no_grad():
        state = make(f).state_dict()
    out, by_place = {}, {}
    for key, t in state.items():
        if t.data_ptr() not in by_place:
            mean, spread = deviation(f, key, tuple(t.shape), False)
            values = torch.from_numpy(mean + spread * random.standard_normal(t.shape))
            if f.experts == "mxfp4" and key.endswith(("gate_up_proj", "down_proj")):
                values = mxfp4.unpack(*mxfp4.pack(values.transpose(1, 2).float())).transpose(1, 2)
            smaller = torch.float32 if "e_score_correction_bias" in key else torch.bfloat16
            by_place[t.data_ptr()] = values.to(smaller).double()
        out[key] = by_place[t.data_ptr()]
    return out


def prompt(name, length):
    """Random ids with repetitions, so that attention finds what it has seen."""
    random = np.random.default_rng(zlib.crc32(name.encode()) + 1)
    ids = random.integers(3, VOCABULARY, length)
    ids[length // 2:length // 2 + 8] = ids[4:12]
    ids[0] = 1
    return ids.astype(np.int32)


def logits(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.from_numpy(ids).long()[None], use_cache=False).logits[0]


def nmse(ours, reference):
    """(over everything, of the worst position)"""
    ours, reference = (x.detach().numpy().astype(np.float64) for x in (ours, reference))
    wrong, size = ((ours - reference) ** 2).sum(-1), (reference ** 2).sum(-1)
    return float(wrong.sum() / size.sum()), float((wrong / size).max())


def published_tensors(f, tensors):
    """The names that published checkpoints have, with what else lies in them."""
    if f.extra in ("gpt1", "gpt2"):
        tensors = {k.removeprefix("transformer."): t for k, t in tensors.items()}
        tensors.pop("lm_head.weight", None)
    if f.extra == "gpt2":
        n = f.config["n_positions"]
        for i in range(f.config["n_layer"]):
            tensors["h.%d.attn.bias" % i] = torch.ones(n, n).tril().reshape(1, 1, n, n).bfloat16()
    if f.extra == "gptneox":
        n = f.config["max_position_embeddings"]
        for i in range(f.config["num_hidden_layers"]):
            before = "gpt_neox.layers.%d.attention." % i
            tensors[before + "bias"] = torch.ones(n, n).tril().reshape(1, 1, n, n).to(torch.uint8)
            tensors[before + "masked_bias"] = torch.tensor(-1e9)
            tensors[before + "rotary_emb.inv_freq"] = 1 / 10000 ** (torch.arange(0, 4, 2) / 4)
    if f.extra == "next":  # of the layer that guesses the token after the next: nobody asks for it
        n, width = f.config["num_hidden_layers"], f.config["hidden_size"]
        last, after = "model.layers.%d." % (n - 1), "model.layers.%d." % n
        tensors.update({after + k.removeprefix(last): t for k, t in tensors.items() if k.startswith(last)})
        tensors[after + "eh_proj.weight"] = torch.full((width, 2 * width), 0.5).bfloat16()
        for norm in ("enorm", "hnorm", "shared_head.norm"):
            tensors[after + norm + ".weight"] = torch.full((width,), 0.5).bfloat16()
        tensors[after + "embed_tokens.weight"] = tensors["model.embed_tokens.weight"]
        tensors[after + "shared_head.head.weight"] = tensors["lm_head.weight"]
    if f.experts == "mxfp4":
        for key in [k for k in tensors if k.endswith(("gate_up_proj", "down_proj"))]:
            blocks, scales = mxfp4.pack(tensors.pop(key).transpose(1, 2).float())
            tensors[key + "_blocks"], tensors[key + "_scales"] = blocks, scales
    return {k: tensors[k].clone().contiguous() for k in sorted(tensors)}


def published_config(f, config):
    """config.json as it was written before transformers 5: the rotation's numbers lie beside the others."""
    out = {k: v for k, v in config.items() if k not in ("rope_parameters", "dtype", "transformers_version")}
    rotation = dict(config.get("rope_parameters") or {})
    if "full_attention" in rotation:
        out["rope_local_base_freq"] = rotation["sliding_attention"]["rope_theta"]
        rotation = dict(rotation["full_attention"])
    if rotation:
        out["rope_theta"] = rotation.pop("rope_theta")
        if "partial_rotary_factor" in rotation:
            out["partial_rotary_factor"] = rotation.pop("partial_rotary_factor")
        kind = rotation.pop("rope_type")
        if kind == "longrope":
            out["original_max_position_embeddings"] = rotation.pop("original_max_position_embeddings")
            rotation = {"type": kind, "short_factor": rotation["short_factor"],
                        "long_factor": rotation["long_factor"]}
        elif kind != "default":
            rotation["rope_type" if kind == "llama3" or f.model in ("GptOss", "Gemma3") else "type"] = kind
        out["rope_scaling"] = None if kind == "default" else rotation
    for k, v in f.published.items():
        out.pop(k, None)
        if v is not None:
            out[k] = v
    out["torch_dtype"] = config["dtype"]
    out["transformers_version"] = "4.46.0"
    return dict(sorted(out.items()))


def load(f, folder):
    more = {}
    if f.experts == "mxfp4":
        more["quantization_config"] = transformers.Mxfp4Config(dequantize=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager", **more)
    return model.eval()


def write_folder(f, values, folder):
    """The folder of a checkpoint."""
    model = make(f, values)
    for key, t in [*model.named_parameters(), *model.named_buffers()]:
        if "e_score_correction_bias" not in key:
            t.data = t.data.bfloat16()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        model.save_pretrained(place)
        tensors = published_tensors(f, safetensors.torch.load_file(place / "model.safetensors"))
        safetensors.torch.save_file(tensors, folder / "model.safetensors", {"format": "pt"})
        (folder / "model.safetensors").chmod(0o644)
        config = json.loads((place / "config.json").read_text())
        if f.experts == "mxfp4":
            config["quantization_config"] = {
                "modules_to_not_convert": ["model.layers.*.self_attn", "model.layers.*.mlp.router",
                                           "model.embed_tokens", "lm_head"], "quant_method": "mxfp4"}
        write_json(folder / "config.json", config)
        write_json(folder / "config.published.json", published_config(f, config))
        if (place / "generation_config.json").exists():
            shutil.copy(place / "generation_config.json", folder)
    write_tokenizer(folder)
    return tensors


def check_folder(f, folder, ids, expected):
    """Transformers reads the folder back, with either config.json, and says the same to the last bit."""
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        for config in ("config.json", "config.published.json"):
            shutil.copy(folder / "model.safetensors", place)
            shutil.copy(folder / config, place / "config.json")
            again = logits(load(f, place), ids)
            if not torch.equal(again, expected):
                raise AssertionError("%s: read back, NMSE %.1e" % (config, nmse(again, expected)[0]))


def written_out(f, values, ids):
    """The logits of family `llama` from the formulas alone, in numpy: a check of the double model."""
    c, w = f.config, {k: v.numpy() for k, v in values.items()}
    n, heads, kv = len(ids), c["num_attention_heads"], c["num_key_value_heads"]
    d = c["hidden_size"] // heads
    norm = lambda x, g: x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * w[g]
    turn = np.exp(1j * np.arange(n)[:, None] * 10000.0 ** (-np.arange(d // 2) * 2 / d))[:, None]

    def rotate(x):
        z = (x[..., :d // 2] + 1j * x[..., d // 2:]) * turn
        return np.concatenate((z.real, z.imag), -1)

    x = w["model.embed_tokens.weight"][ids]
    for i in range(c["num_hidden_layers"]):
        b = "model.layers.%d." % i
        h = norm(x, b + "input_layernorm.weight")
        q = rotate((h @ w[b + "self_attn.q_proj.weight"].T).reshape(n, heads, d))
        k = rotate((h @ w[b + "self_attn.k_proj.weight"].T).reshape(n, kv, d))
        v = (h @ w[b + "self_attn.v_proj.weight"].T).reshape(n, kv, d)
        out = np.zeros((n, heads, d))
        for a in range(heads):
            for t in range(n):
                s = k[:t + 1, a * kv // heads] @ q[t, a] / d ** 0.5
                p = np.exp(s - s.max())
                out[t, a] = p @ v[:t + 1, a * kv // heads] / p.sum()
        x = x + out.reshape(n, -1) @ w[b + "self_attn.o_proj.weight"].T
        h = norm(x, b + "post_attention_layernorm.weight")
        gate = h @ w[b + "mlp.gate_proj.weight"].T
        up = h @ w[b + "mlp.up_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * up) @ w[b + "mlp.down_proj.weight"].T
    return torch.from_numpy(norm(x, "model.norm.weight") @ w["lm_head.weight"].T)


def stepwise(model, ids):
    """The logits token by token with a cache."""
    cache, out = transformers.DynamicCache(config=model.config), []
    with torch.no_grad():
        for t in ids:
            step = model(input_ids=torch.tensor([[int(t)]]), cache=cache, use_cache=True)
            out.append(step.logits[0, -1])
    return torch.stack(out)


def golden(f, name, values):
    """The arrays of the golden file and the facts about them."""
    arrays, facts = {}, {"note": f.note}
    prompts = {"": prompt(name, PROMPT)}
    if f.short:
        prompts["short/"] = prompts[""][:f.short].copy()
    for which, ids in prompts.items():
        with double_model.double():
            model = make(f, values)
            with double_model.only_double():
                with double_model.watch(f.model == "GptOss") as seen:
                    exact = logits(model, ids)
                # The two that have no cache, and whose old keys do not turn when the rotation changes.
                steps = 0 if f.extra == "gpt1" or f.short else nmse(stepwise(model, ids), exact)[1]
        if not steps < 1e-24:
            raise AssertionError("step by step the double model says something else: NMSE %.1e" % steps)
        own = nmse(logits(make(f, values), ids), exact)
        arrays[which + "tokens"] = ids
        arrays[which + "logits"] = exact.numpy().astype(np.float32)
        if not which:
            layers = seen.score_deviation()
            facts.update({"tokens": len(ids), "score_deviation": [round(s, 2) for s in layers],
                          "logit_deviation": round(float(exact.std()), 2),
                          "distinct_best": int(exact.argmax(-1).unique().numel())})
            if seen.margin < float("inf"):
                facts["smallest_router_margin"] = float("%.2e" % seen.margin)
            if name == "llama" and not nmse(written_out(f, values, ids), exact)[1] < 1e-24:
                raise AssertionError("the double model is wrong")
            if min(layers) < 2:
                raise AssertionError("attention is too even: %s" % layers)
            twins = {}
            for rule, change in TWINS.get(name, {}).items():
                apart = nmse(logits(make(f, values, change), ids), exact)[0]
                if not apart > 1000 * own[0]:
                    raise AssertionError("it makes no difference: %s, NMSE %.1e" % (rule, apart))
                twins[rule] = float("%.2e" % apart)
            if twins:
                facts["twins_nmse"] = twins
        facts[which.replace("/", "_") + "f32_nmse"] = float("%.2e" % own[0])
        facts[which.replace("/", "_") + "f32_nmse_worst"] = float("%.2e" % own[1])
    return arrays, facts


def write_table(folder):
    """The table at the end of README.md, from the facts that lie in the folders."""
    page = folder / "README.md"
    if not page.exists():
        return
    lines = ["| family | what it has | files | score deviation | own F32 NMSE: all, worst | llama.cpp |",
             "|---|---|---|---|---|---|"]
    for name in FAMILIES:
        if not (folder / name / "facts.json").exists():
            continue
        facts = json.loads((folder / name / "facts.json").read_text())
        lines.append("| `%s` | %s | %s | %s | %.1e, %.1e | %s |" % (
            name, facts["note"], "safetensors, GGUF" if facts["gguf"] else "safetensors",
            ", ".join("%.1f" % s for s in facts["score_deviation"]), facts["f32_nmse"], facts["f32_nmse_worst"],
            "%.0e" % facts["llama_cpp_nmse_worst"] if "llama_cpp_nmse_worst" in facts else ""))
    before = page.read_text().split(TABLE)[0]
    page.write_text(before + TABLE + "\n\n" + "\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama-cpp", type=pathlib.Path)
    parser.add_argument("--output", type=pathlib.Path, default=OUTPUT)
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for name in options.names or FAMILIES:
        f = FAMILIES[name]
        folder = options.output / name
        folder.mkdir(parents=True, exist_ok=True)
        values = fill(f, name)
        arrays, facts = golden(f, name, values)
        write_folder(f, values, folder)
        check_folder(f, folder, arrays["tokens"], logits(make(f, values), arrays["tokens"]))
        golden_file.write(folder / "logits.golden", arrays)
        facts["gguf"] = f.gguf
        if f.gguf and not options.llama_cpp and (folder / "facts.json").exists():
            before = json.loads((folder / "facts.json").read_text())
            facts.update({k: v for k, v in before.items() if k.startswith("llama_cpp")})
        if f.gguf and options.llama_cpp:
            opinion = family_gguf.convert(options.llama_cpp, folder, folder / "model.gguf", vocabulary(), SPECIAL,
                                          MERGES, arrays if f.opinion else None)
            if opinion is not None:
                facts["llama_cpp_nmse_worst"] = float("%.2e" % opinion)
        facts["made_with"] = {"torch": torch.__version__, "transformers": transformers.__version__}
        write_json(folder / "facts.json", facts)
        size = sum(p.stat().st_size for p in folder.iterdir())
        print("%s: %d bytes, %s" % (name, size, {k: v for k, v in facts.items() if k not in ("note", "made_with")}),
              flush=True)
        gc.collect()
    write_table(options.output)


if __name__ == "__main__":
    main()
