#!/usr/bin/env python3
"""Makes the goldens of the F32 path from a real model: tests/data/real/f64.golden and f64.json.

    make_model_goldens.py MODEL.gguf OUTPUT_FOLDER

The weights are dequantised, the model is run by transformers in double precision, and the result is checked against
the formulas written out. Format and definitions: tests/data/real/README.md.

Needs: numpy, gguf, torch (CPU), transformers (>= 5), tokenizers, jinja2; 4 GB of memory; some minutes.
"""

import hashlib
import json
import sys

import gguf
import numpy as np
import tokenizers
import torch
import transformers

import golden_file
import real_prompts
import reference_model

PROBES = 512
PROBE_SEED = 20240607
TOP = 16
GREEDY = 256


def main(path, folder):
    source = reference_model.gguf_model(path)
    model = reference_model.double_model(source)
    bpe = reference_model.tokenizer(source)
    vocabulary = model.config.vocab_size
    probes = np.sort(np.random.default_rng(PROBE_SEED).choice(vocabulary, PROBES, replace=False)).astype(np.int32)
    arrays = {"probe_ids": probes}
    index = {"file": "f64.golden", "model_sha256": hashlib.sha256(open(path, "rb").read()).hexdigest(),
             "made_with": {"torch": torch.__version__, "transformers": transformers.__version__,
                           "numpy": np.__version__, "tokenizers": tokenizers.__version__},
             "probe_seed": PROBE_SEED, "prompts": {}}

    prompts = {name: bpe.encode(text).ids for name, text in real_prompts.PROMPTS.items()}
    all_out, all_lead = reference_model.greedy(model, list(prompts.values()), GREEDY)
    for (name, text), tokens, out, lead in zip(real_prompts.PROMPTS.items(), prompts.values(), all_out, all_lead):
        logits = reference_model.teacher_forced(model, tokens)
        if name == "code":
            check = reference_model.written_out(source, tokens)
            apart = float(((check - logits) ** 2).sum() / (logits ** 2).sum())
            print("double model against the formulas written out: NMSE %.2e" % apart)
            if not apart < 1e-24:
                raise AssertionError("the double model is wrong")
            index["check_nmse"] = apart
        top = torch.topk(logits, TOP)
        along = reference_model.teacher_forced(model, tokens + list(map(int, out)))[len(tokens) - 1:-1]
        if not (along.argmax(-1).numpy() == out).all():
            raise AssertionError("side by side and alone differ")
        arrays[name + "/text"] = np.frombuffer(text.encode(), np.uint8)
        arrays[name + "/tokens"] = np.array(tokens, np.int32)
        arrays[name + "/lse"] = torch.logsumexp(logits, -1).numpy()
        arrays[name + "/top_ids"] = top.indices.numpy().astype(np.int32)
        arrays[name + "/top_logits"] = top.values.numpy()
        arrays[name + "/probe_logits"] = logits[:, torch.from_numpy(probes).long()].numpy().astype(np.float32)
        arrays[name + "/greedy"] = out.astype(np.int32)
        arrays[name + "/greedy_margin"] = lead
        index["prompts"][name] = {"text": text, "tokens": len(tokens), "greedy_text": bpe.decode(out, False),
                                  "smallest_greedy_margin": float(lead.min())}
        print("%-9s %4d tokens, smallest greedy margin %.3e at step %d" %
              (name, len(tokens), lead.min(), lead.argmin()))
        print(json.dumps(bpe.decode(out, False), ensure_ascii=False)[:300])

    end = source.meta("tokenizer.ggml.eos_token_id")
    index["chats"] = {}
    for name, messages in real_prompts.CHATS.items():
        text = reference_model.render_chat(source, messages)
        tokens = bpe.encode(text).ids
        out, lead = (a[0] for a in reference_model.greedy(model, [tokens], real_prompts.CHAT_STEPS))
        length = out.tolist().index(end) + 1
        out, lead = out[:length], lead[:length]
        answer = bpe.decode(out[:-1].tolist(), False)
        print("%s: %r, smallest margin %.3e" % (name, answer, lead.min()))
        if answer != real_prompts.CHAT_ANSWER:
            raise AssertionError("unexpected answer")
        arrays[name + "/text"] = np.frombuffer(text.encode(), np.uint8)
        arrays[name + "/tokens"] = np.array(tokens, np.int32)
        arrays[name + "/answer"] = np.frombuffer(answer.encode(), np.uint8)
        arrays[name + "/greedy"] = out.astype(np.int32)
        arrays[name + "/greedy_margin"] = lead
        index["chats"][name] = {"messages": messages, "text": text, "answer": answer,
                                "smallest_greedy_margin": float(lead.min())}

    golden_file.write_beside(folder, "f64", arrays, index)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
