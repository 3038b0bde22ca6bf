#!/usr/bin/env python3
"""Makes tests/data/tokenizer/kinds/: small tokenizers of every kind, and what their own libraries make of 10,000 texts.

    python3 make_tokenizer_kinds.py OUT_DIR [GGUF_DIR]

Each folder of OUT_DIR is a small tokenizer, trained here, in the layout of a model directory: `tokenizer.json` set up
as the published files of one family (Hugging Face's tokenizers), or a SentencePiece model. kinds.json has

fragments   what texts are made of
kinds       for each folder "samples": [text number, ids, decoded text], and "blocks": the FNV-1a hash (see below) of
            the ids of texts 0 to 99, 100 to 199, ...; "peer" is the library that gave them

published   for each vocabulary of GGUF_DIR (vocabulary-only files of llama.cpp's models folder) the same "blocks", of the
            same texts, without control tokens; the peer is given the content of the file

Text number n is made of fragments by splitmix64 with the seed n: first how many (the number modulo 24), then each one
(modulo the number of fragments). The hash is over little-endian 32-bit words: for each text the number of its ids, then
the ids. What "without" lists is left out of the texts. Where "adds" is set the ids are those with the special tokens that the tokenizer adds. The texts have only
characters that Unicode 9 knew: the libraries' tables are of different age.

Needs: tokenizers, sentencepiece, protobuf; gguf for GGUF_DIR. Nothing is random but from fixed seeds, except
that the trainer numbers the characters of gpt1 anew in every run: its folder and its ids belong together.
"""

import collections
import io
import json
import sys
from pathlib import Path

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from make_tokenizer_goldens import CODE, PROSE

TEXTS, BLOCK, SAMPLES = 10_000, 100, 40
MASK = (1 << 64) - 1
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
          r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
MARK = "\u2581"

FRAGMENTS = """
the of and to in Hello world hello WORLD HTTPServer I'm you'LL don't they've quick brown fox jumps over lazy dog
int main return printf template coroutine x y z aa aaaa aaaaaaaa l ll lll er est ing tion ß Straße naïve café déjà-vu
привет мир Ελληνικά ΣΑΣ שלום مرحبا नमस्ते ไทย 你好 世界 こんにちは 한국어 안녕 ﾊﾝｶｸ Ａｂｃ ① ½ ² ﬁ Å é ñ İ ǅ 𝐁 😀 👍🏽 👨‍👩‍👧 🇨🇭 ❤️
0 1 12 123 1234 12345 3.14 -1e10 0x1F ١٢٣ Ⅷ
. , ; : ! ? !! ... - -- --- _ __ / // \\ | || & && ( ) [ ] { } < > <= => " ' `` '' “ ” … « » ¿ ¡ 、 。 ！ $ € % ^ ~ # @ * + =
<s> </s> <unk> <pad> <|user|> <|end|> <tool> <n> <|tab|> <|blank_3|> <0x0A> [gMASK] <sop> [CLS] ▁ ▁▁ ▁a Ġ Ġa </w> a</w> ``
\u0301 \u0307 e\u0301 a\u0308\u0323 \u1e9b\u0323 \u200d \u200b \ufeff \u00ad \ufffd
""".split()
FRAGMENTS += [" ", " ", " ", " ", " ", " ", " ", " ", "  ", "   ", "     ", "\n", "\n", "\n\n", "\r\n", "\t", "\t\t", "\u00a0", "\u3000",
              "\u2028", "\x00", "\x01", "\x7f", " a", " the", " world", "\nint", "a ", "e ", " \n", "\n  "]
FRAGMENTS = [f.encode().decode("unicode_escape") if f.startswith("\\u") else f for f in FRAGMENTS]


def splitmix64(seed):
    state = seed
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        yield z ^ (z >> 31)


def text(number):
    random = splitmix64(number)
    return "".join(FRAGMENTS[next(random) % len(FRAGMENTS)] for _ in range(next(random) % 24))


def fnv(h, values):
    for value in values:
        for byte in value.to_bytes(4, "little"):
            h = (h ^ byte) * 0x100000001B3 & MASK
    return h


# ---- Training ----

CORPUS = [*PROSE.values(), *CODE.values()] * 2 + [text(n) for n in range(20_000, 20_600)]
CORPUS = [line.replace("\0", "") for line in CORPUS]
# Trainers that keep every character would fill a small vocabulary with them.
LATIN = [line for c in CORPUS for line in c.split("\n") if line.strip() and sum(map(str.isascii, line)) > 0.8 * len(line)]
BYTES = [f"<0x{b:02X}>" for b in range(256)]
SPECIAL = ["<unk>", "<s>", "</s>"]


def alphabet(corpus, size):
    """The commonest characters; the trainer's own choice between equals differs from run to run."""
    counts = collections.Counter("".join(corpus).replace(" ", MARK))
    return sorted(sorted(counts, key=lambda c: (-counts[c], c))[:size])


def added(*names, **flags):
    return [AddedToken(n, **{"normalized": False, "special": True, **flags}) for n in names]


def trained_bytes(pre_tokenizer, size=560, normalizer=None, special=("<|endoftext|>",), **model):
    t = Tokenizer(models.BPE(**model))
    t.normalizer = normalizer if normalizer else None
    t.pre_tokenizer = pre_tokenizer
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(special), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.decoder = decoders.ByteLevel()
    return t


def trained_characters(size=700, special=SPECIAL):
    """BPE with byte fallback: merges as a Metaspace of words gives them."""
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(LATIN, trainers.BpeTrainer(
        vocab_size=size, special_tokens=special + BYTES, show_progress=False,
        initial_alphabet=alphabet(LATIN, 120), limit_alphabet=120))
    data = json.loads(t.to_str())
    data["added_tokens"] = [a for a in data["added_tokens"] if a["content"] in special]
    data["pre_tokenizer"] = None
    return Tokenizer.from_str(json.dumps(data))


LLAMA_DECODER = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(),
                                   decoders.Strip(" ", 1, 0)])
LLAMA_NORMALIZER = normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])


def bos_template(t, bos="<s>", eos=None):
    single = f"{bos} $A" if bos else "$A"
    names = [n for n in (bos, eos) if n]
    return processors.TemplateProcessing(single=single + (f" {eos}" if eos else ""),
                                         special_tokens=[(n, t.token_to_id(n)) for n in names])


def llama2():
    t = trained_characters()
    t.normalizer, t.decoder = LLAMA_NORMALIZER, LLAMA_DECODER
    t.post_processor = bos_template(t)
    return t


def mistral():
    t = trained_characters()
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    t.decoder = LLAMA_DECODER
    t.add_special_tokens(added("<|user|>", "<|end|>"))
    t.add_tokens(added("<tool>", special=False))
    t.post_processor = bos_template(t)
    return t


def phi3():
    t = trained_characters()
    t.normalizer, t.decoder = LLAMA_NORMALIZER, LLAMA_DECODER
    t.add_special_tokens(added("<|user|>", "<|end|>", rstrip=True))
    t.add_special_tokens(added("<pad>", lstrip=True))
    t.add_tokens(added("<tool>", special=False, lstrip=True, rstrip=True))
    t.add_tokens(added("fox", "12", special=False, single_word=True))
    t.add_tokens(added("lazy", "x y", special=False, normalized=True))
    return t


def gemma():
    t = trained_characters(special=["<pad>", "</s>", "<s>", "<unk>"])
    t.normalizer = normalizers.Replace(" ", MARK)
    t.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    t.decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    t.add_tokens(added("\n", "\n\n", "\t", MARK + MARK, special=False))
    t.post_processor = bos_template(t)
    return t


def llama3():
    split = pre_tokenizers.Split(Regex(LLAMA3), "isolated")
    t = trained_bytes(pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                      special=("<s>", "</s>", "<|user|>"), ignore_merges=True)
    t.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), bos_template(t)])
    return t


def qwen2():
    split = pre_tokenizers.Split(Regex(QWEN2), "isolated")
    t = trained_bytes(pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
                      normalizer=normalizers.NFC(), special=("<|endoftext|>", "<|user|>", "<|end|>"))
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    return t


def neox():
    t = trained_bytes(pre_tokenizers.ByteLevel(add_prefix_space=False), normalizer=normalizers.NFC())
    t.add_tokens([AddedToken(" " * n, normalized=True) for n in range(24, 1, -1)])
    t.add_special_tokens(["<pad>"])
    return t


def falcon():
    t = trained_bytes(pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")]))
    return t


def deepseek():
    split = lambda pattern: pre_tokenizers.Split(Regex(pattern), "isolated")
    return trained_bytes(pre_tokenizers.Sequence([
        split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"),
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]))


def behaviours():
    """No published family: every way to cut, in one."""
    return trained_bytes(pre_tokenizers.Sequence([
        pre_tokenizers.Split("-", "merged_with_next"), pre_tokenizers.Split(Regex("[.,!]"), "merged_with_previous"),
        pre_tokenizers.Split(Regex("l"), "contiguous"), pre_tokenizers.Split("(", "removed"),
        pre_tokenizers.Split(Regex("[aeiou][^aeiou]?"), "isolated", True), pre_tokenizers.CharDelimiterSplit("|"),
        pre_tokenizers.Whitespace(), pre_tokenizers.ByteLevel(add_prefix_space=True)]),
        normalizer=normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase(), normalizers.Strip(),
                                         normalizers.Replace(Regex("[0-9]{2,}"), "#")]))


def gpt1():
    t = Tokenizer(models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.BertNormalizer(lowercase=True)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.train_from_iterator(CORPUS, trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>"], show_progress=False,
                                                      end_of_word_suffix="</w>",
                                                      initial_alphabet=alphabet([c.lower() for c in CORPUS], 150),
                                                      limit_alphabet=150))
    t.decoder = decoders.BPEDecoder(suffix="</w>")
    return t


def unigram_pieces(size):
    """Pieces and scores from sentencepiece's trainer: Hugging Face's can't leave rare characters out."""
    sp = sentencepiece.SentencePieceProcessor(model_proto=spm(model_type="unigram", vocab_size=size,
                                                              normalization_rule_name="identity"))
    return [(sp.id_to_piece(i), sp.get_score(i)) for i in range(sp.get_piece_size())
            if not sp.is_unknown(i) and not sp.is_control(i)]


def charsmap():
    """A small table in sentencepiece's form: ligatures, full-width letters, no-break and other spaces, sequences."""
    rules = {"\ufb01": "fi", "\u00a0": " ", "\u3000": " ", "\u2028": " ", "\t": " ", "\n": " ", "\r": "", "\u200b": "",
             "\uff21": "A", "\uff42": "b", "e\u0301": "\u00e9", "\u0301": "", "\u2460": "1", "\u00bd": "1/2", "\u2026": "...",
             "\u00df": "ss", "\u212b": "\u00c5", "!!": "!", "...": "\u2026"}
    path = Path("/tmp/plait_rules.tsv")
    path.write_text("".join(" ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\n"
                            for a, b in rules.items()))
    return path


def spm(name="plait", **flags):
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LATIN), model_writer=out, minloglevel=2, num_threads=1, character_coverage=0.98,
        hard_vocab_limit=False, unk_surface="<unk>", **flags)
    return out.getvalue()


def spm_charsmap():
    """The compiled table inside a model that was trained with the rules."""
    import base64
    data = spm(model_type="unigram", vocab_size=400, normalization_rule_tsv=str(charsmap()))
    from sentencepiece import sentencepiece_model_pb2 as pb
    model = pb.ModelProto()
    model.ParseFromString(data)
    return base64.b64encode(model.normalizer_spec.precompiled_charsmap).decode()


def t5():
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)] + unigram_pieces(500)
    t = Tokenizer(models.Unigram(pieces, unk_id=2))
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    t.decoder = decoders.Metaspace()
    t.add_special_tokens(added("<pad>", "</s>", "<unk>"))
    t.post_processor = bos_template(t, None, "</s>")
    data = json.loads(t.to_str())
    data["normalizer"] = {"type": "Precompiled", "precompiled_charsmap": spm_charsmap()}
    return Tokenizer.from_str(json.dumps(data))


def albert():
    pieces = [("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0)] + unigram_pieces(400)
    t = Tokenizer(models.Unigram(pieces, unk_id=0))
    t.normalizer = normalizers.Sequence([normalizers.Replace("``", '"'), normalizers.Replace("''", '"'),
                                         normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(),
                                         normalizers.Replace(Regex(" {2,}"), " ")])
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.decoder = decoders.Metaspace()
    t.add_special_tokens(added("<unk>", "[CLS]", "[SEP]"))
    t.post_processor = bos_template(t, "[CLS]", "[SEP]")
    return t


def unigram_bytes():
    # With a score of 0 Hugging Face's library would take the text "<0x0A>" for the byte; sentencepiece does not.
    pieces = [("<unk>", 0.0)] + [(b, -1000.0) for b in BYTES] + unigram_pieces(400)[:300]
    t = Tokenizer(models.Unigram(pieces, unk_id=0, byte_fallback=True))
    t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    t.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")])
    t.add_special_tokens(added("<unk>"))
    return t


HUB = {f.__name__: f for f in (llama2, mistral, phi3, gemma, llama3, qwen2, neox, falcon, deepseek, behaviours, gpt1, t5,
                               albert, unigram_bytes)}
IDS = dict(unk_id=0, bos_id=1, eos_id=2)
SENTENCEPIECE = {
    "spm_llama": ("tokenizer.model", lambda: spm(
        model_type="bpe", vocab_size=700, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, split_digits=True, allow_whitespace_only_pieces=True, **IDS)),
    "spm_symbols": ("tokenizer.model", lambda: spm(
        model_type="bpe", vocab_size=500, normalization_rule_tsv=str(charsmap()), treat_whitespace_as_suffix=True,
        user_defined_symbols=["<tool>", "fox", "  "], control_symbols=["<|user|>"], **IDS)),
    "spm_t5": ("spiece.model", lambda: spm(
        model_type="unigram", vocab_size=400, normalization_rule_tsv=str(charsmap()), pad_id=0, eos_id=1, unk_id=2,
        bos_id=-1, user_defined_symbols=["<tool>", "fox"])),
    "spm_bytes": ("spiece.model", lambda: spm(
        model_type="unigram", vocab_size=650, byte_fallback=True, normalization_rule_name="identity",
        remove_extra_whitespaces=False, add_dummy_prefix=False, **IDS)),
    "spm_chatglm": ("ice_text.model", lambda: spm(
        model_type="bpe", vocab_size=500, normalization_rule_name="identity", remove_extra_whitespaces=False,
        user_defined_symbols=["<n>", "<|tab|>"] + [f"<|blank_{n}|>" for n in range(2, 81)]
                             + ["[MASK]", "[gMASK]", "<sop>", "<eop>"], **IDS)),
}


def chatglm_text(value):
    """_preprocess of tokenization_chatglm.py."""
    value = value.replace("\n", "<n>").replace("\t", "<|tab|>")
    for n in range(80, 1, -1):
        value = value.replace(" " * n, f"<|blank_{n}|>")
    return value


def chatglm_written(value):
    """postprocess of tokenization_chatglm.py."""
    value = value.replace("<n>", "\n").replace("<|tab|>", "\t")
    for n in range(2, 81):
        value = value.replace(f"<|blank_{n}|>", " " * n)
    return value


def golden(encode, decode, peer, without=(), **extra):
    blocks, samples = [], []
    extra["without"] = list(without)

    def text(number):
        out = globals()["text"](number)
        for name in without:
            out = out.replace(name, "")
        return out

    for start in range(0, TEXTS, BLOCK):
        h = 0xCBF29CE484222325
        for n in range(start, start + BLOCK):
            ids = encode(text(n))
            h = fnv(h, [len(ids), *ids])
            if n < SAMPLES:
                samples.append([n, ids, decode(ids)])
        blocks.append(f"{h:016x}")
    return {"peer": peer, **extra, "samples": samples, "blocks": blocks}


NORMAL, CONTROL, USER_DEFINED, BYTE = 1, 3, 4, 6


def published(folder):
    import gguf
    from sentencepiece import sentencepiece_model_pb2 as pb

    split = lambda pattern: pre_tokenizers.Split(Regex(pattern), "isolated")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    rules = {"gpt-2": byte_level, "gpt-neox": byte_level, "mpt": byte_level,
             "refact": pre_tokenizers.Sequence([digits, byte_level]),
             "deepseek-coder": pre_tokenizers.Sequence([
                 split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"), split("[一-龥ࠀ-一가-퟿]+"), digits,
                 pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]),
             "llama-spm": None, "baichuan": None}
    out = {}
    for name, rule in rules.items():
        reader = gguf.GGUFReader(Path(folder) / f"{name}.gguf")
        field = lambda key: reader.get_field("tokenizer.ggml." + key).contents()
        tokens, types = field("tokens"), field("token_type")
        if rule:
            t = Tokenizer(models.BPE(vocab={text: i for i, text in enumerate(tokens)},
                                     merges=[tuple(m.split(" ")) for m in field("merges")]))
            t.pre_tokenizer = rule
            t.add_tokens(added(*[text for text, kind in zip(tokens, types) if kind == USER_DEFINED], special=False))
            encode, peer = lambda s: t.encode(s).ids, "tokenizers " + tokenizers.__version__
        else:
            model = pb.ModelProto()
            for piece, score, kind in zip(tokens, field("scores"), types):
                model.pieces.add(piece=piece, score=score, type=kind)
            model.trainer_spec.model_type, model.trainer_spec.byte_fallback = 2, True
            model.trainer_spec.vocab_size = len(tokens)
            model.normalizer_spec.name, model.normalizer_spec.remove_extra_whitespaces = "identity", False
            sp = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
            encode, peer = sp.encode, "sentencepiece " + sentencepiece.__version__
        value = golden(encode, lambda ids: "", peer)
        out[name] = {"peer": peer, "blocks": value["blocks"]}
    return out


def main(out_dir, gguf_dir=None):
    out_dir = Path(out_dir)
    kinds = {}
    for name, make in HUB.items():
        t = make()
        folder = out_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        data = json.loads(t.to_str())
        (folder / "tokenizer.json").write_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n")
        t = Tokenizer.from_file(str(folder / "tokenizer.json"))
        adds = bool(data["post_processor"]) and data["post_processor"]["type"] != "ByteLevel"
        kinds[name] = golden(lambda s: t.encode(s, add_special_tokens=adds).ids,
                             lambda ids: t.decode(ids, skip_special_tokens=False),
                             "tokenizers " + tokenizers.__version__, adds=adds)
    for name, (file, make) in SENTENCEPIECE.items():
        folder = out_dir / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file).write_bytes(make())
        sp = sentencepiece.SentencePieceProcessor(model_file=str(folder / file))
        prepare = chatglm_text if name == "spm_chatglm" else lambda s: s
        written = chatglm_written if name == "spm_chatglm" else lambda s: s
        kinds[name] = golden(lambda s: sp.encode(prepare(s)), lambda ids: written(sp.decode(ids)),
                             "sentencepiece " + sentencepiece.__version__,
                             without=["[gMASK]", "<sop>"] if name == "spm_chatglm" else [], adds=False)
    compact = lambda v: json.dumps(v, ensure_ascii=True, separators=(",", ":"))
    lines = [f'"fragments":{compact(FRAGMENTS)}', f'"texts":{TEXTS}', f'"block":{BLOCK}', '"kinds":{\n' + ",\n".join(
        f"{compact(k)}:{compact(v)}" for k, v in kinds.items()) + "\n}"]
    if gguf_dir:
        lines.append('"published":{\n' + ",\n".join(
            f"{compact(k)}:{compact(v)}" for k, v in published(gguf_dir).items()) + "\n}")
    (out_dir / "kinds.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", newline="\n")
    print(sum(f.stat().st_size for f in out_dir.rglob("*") if f.is_file()), "bytes")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(*sys.argv[1:])
