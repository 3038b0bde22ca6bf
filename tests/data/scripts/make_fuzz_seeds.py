#!/usr/bin/env python3
"""Makes seeds of the fuzzers text/vocabulary, families/hf_config and files/gguf.

    make_fuzz_seeds.py FAMILIES_DIR FUZZ_DIR

FAMILIES_DIR is tests/data/families, FUZZ_DIR tests/data/fuzz. A seed of vocabulary is a GGUF file of metadata alone,
one for each tokenizer.ggml.model; one of hf_config is a config.json, a zero byte and the header of model.safetensors;
one of gguf is a family's file with the fewest layers, without its vocabulary, and zeros for matrices. Needs gguf.
"""
import json
import pathlib
import struct
import sys

import numpy
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter

GGUF_FAMILIES = ["cohere2", "gemma3", "glm4_moe", "gpt2", "gpt_oss_mxfp4", "granite", "llama_yarn", "phi3", "qwen3"]
FAMILIES = ["cohere2", "deepseek_v3", "gemma3", "glm4", "gpt2", "gpt_oss_mxfp4", "gptneox", "llama3",
            "llama_yarn", "mixtral", "phi3", "qwen3"]
U32, F32, BOOL, STRING, ARRAY = 4, 6, 7, 8, 9
NORMAL, UNKNOWN, CONTROL, USER, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MARK = "\u2581"


def text(s):
    return struct.pack("<Q", len(s.encode())) + s.encode()


def entry(key, value):
    """A key and its value, whose type follows Python's."""
    def one(v):
        if isinstance(v, bool):
            return BOOL, struct.pack("<?", v)
        if isinstance(v, int):
            return U32, struct.pack("<I", v)
        if isinstance(v, float):
            return F32, struct.pack("<f", v)
        return STRING, text(v)

    if not isinstance(value, list):
        kind, payload = one(value)
        return text(key) + struct.pack("<I", kind) + payload
    items = [one(v) for v in value]
    return text(key) + struct.pack("<IIQ", ARRAY, items[0][0], len(items)) + b"".join(p for _, p in items)


def gguf(model, tokens, **fields):
    """`tokens` is a list of (text, type, score)."""
    entries = [entry("general.architecture", "llama"), entry("tokenizer.ggml.model", model),
               entry("tokenizer.ggml.tokens", [t for t, _, _ in tokens]),
               entry("tokenizer.ggml.token_type", [k for _, k, _ in tokens])]
    if any(s for _, _, s in tokens):
        entries.append(entry("tokenizer.ggml.scores", [float(s) for _, _, s in tokens]))
    entries += [entry("tokenizer.ggml." + k, v) for k, v in fields.items()]
    return b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries)


def vocabularies():
    letters = [(c, NORMAL, 0) for c in "helowrd12,\u0120"]
    yield "gpt2", gguf("gpt2", letters + [(t, NORMAL, 0) for t in ("he", "ll", "hell", "hello", "\u0120w")]
                       + [("<s>", CONTROL, 0), ("<a>", USER, 0)], merges=["h e", "l l", "he ll", "hell o", "\u0120 w"],
                       pre="llama-bpe", bos_token_id=16, eos_token_id=16, add_bos_token=True)
    pieces = [("<unk>", UNKNOWN, 0), ("<s>", CONTROL, 0), ("</s>", CONTROL, 0)]
    pieces += [(f"<0x{b:02X}>", BYTE, 0) for b in (0x20, 0x31, 0xE4, 0xBD, 0xA0)]
    words = [MARK, "H", "e", "l", "o", "el", "lo", "ello", "Hello", MARK + "w", "<a>"]
    scored = [(w, NORMAL, -1 - i) for i, w in enumerate(words)]
    yield "llama", gguf("llama", pieces + scored, bos_token_id=1, eos_token_id=2, add_space_prefix=True)
    yield "t5", gguf("t5", [("<pad>", CONTROL, 0), ("</s>", CONTROL, 0), ("<unk>", UNKNOWN, 0)] + scored,
                     eos_token_id=1, add_space_prefix=True, remove_extra_whitespaces=True)
    yield "gemma4", gguf("gemma4", pieces + [(w, NORMAL, 0) for w in words], merges=["e l", "l o", "el lo"],
                         bos_token_id=1)
    yield "gpt1", gguf("gpt1", [("<unk>", UNKNOWN, 0)] + [(w, NORMAL, 0) for w in ("h", "e", "l", "o</w>", "el", "l</w>")],
                       merges=["e l"], unknown_token_id=0)


def configs(families):
    for name in FAMILIES:
        folder = families / name
        weights = (folder / "model.safetensors").read_bytes()
        length, = struct.unpack("<Q", weights[:8])
        config = json.loads((folder / "config.json").read_bytes())
        yield name, json.dumps(config, separators=(",", ":")).encode() + b"\0" + weights[8:8 + length].rstrip(b" ")


def write_gguf_seed(source, path):
    reader = GGUFReader(source)
    fields = {f.name: f for f in reader.fields.values() if not f.name.startswith(("GGUF.", "tokenizer."))}
    family = fields.pop("general.architecture").contents()
    dense = fields.get(family + ".leading_dense_block_count")
    layers = 1 if dense is None else dense.contents() + 1
    fields.pop(family + ".nextn_predict_layers", None)
    blocks = fields[family + ".block_count"].contents()
    writer = GGUFWriter(path, family)
    for name, field in fields.items():
        value = field.contents()
        if name == family + ".block_count":
            value = layers
        elif isinstance(value, list) and len(value) == blocks:
            value = value[:layers]
        writer.add_key_value(name, value, field.types[0], field.types[-1] if isinstance(value, list) else None)
    for tensor in reader.tensors:
        part = tensor.name.split(".")
        if part[0] == "blk" and int(part[1]) >= layers:
            continue
        shape = [int(n) for n in reversed(tensor.shape)]
        if len(shape) == 1 or tensor.tensor_type == GGMLQuantizationType.F32:
            writer.add_tensor(tensor.name, tensor.data)
        else:  # blocks of 32 in 18 bytes
            zeros = numpy.zeros([*shape[:-1], shape[-1] // 32 * 18], numpy.uint8)
            writer.add_tensor(tensor.name, zeros, raw_dtype=GGMLQuantizationType.Q4_0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    families, out = (pathlib.Path(p) for p in sys.argv[1:3])
    for folder, seeds in (("text/vocabulary", vocabularies()), ("families/hf_config", configs(families))):
        (out / folder).mkdir(parents=True, exist_ok=True)
        for name, content in seeds:
            (out / folder / name).write_bytes(content)
    for name in GGUF_FAMILIES:
        write_gguf_seed(families / name / "model.gguf", out / "files" / "gguf" / (name + ".gguf"))


if __name__ == "__main__":
    main()
