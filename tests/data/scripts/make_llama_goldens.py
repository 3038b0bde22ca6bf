#!/usr/bin/env python3
"""Makes the goldens of the quantised path from a real model: tests/data/real/llama.golden and llama.json.

    make_llama_goldens.py MODEL.gguf OUTPUT_FOLDER

llama.cpp reads the file as it is and continues every prompt greedily; the model dequantised and run in double by
transformers is then forced along the same tokens. Format and definitions: tests/data/real/README.md.

Needs: what make_model_goldens.py needs, and llama-cpp-python. Where the library of an own build of llama.cpp is to be
used in place of the package's, LLAMA_CPP_LIB_PATH names its folder, as that package documents.
"""

import ctypes
import hashlib
import json
import sys

import llama_cpp
import numpy as np
import torch

import golden_file
import real_prompts
import reference_model

TOP = 16
GREEDY = 256
CONTEXT = 1024
THREADS = 1


class llama:
    """A model and a context of llama.cpp, everything but the length and the threads at its defaults."""

    def __init__(self, path):
        self._quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)
        llama_cpp.llama_log_set(self._quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        p = llama_cpp.llama_model_default_params()
        self._model = llama_cpp.llama_model_load_from_file(path.encode(), p)
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._size = llama_cpp.llama_vocab_n_tokens(self._vocab)
        self.info = llama_cpp.llama_print_system_info().decode().strip()

    def open(self):
        c = llama_cpp.llama_context_default_params()
        c.n_ctx, c.n_threads, c.n_threads_batch = CONTEXT, THREADS, THREADS
        self._context = llama_cpp.llama_init_from_model(self._model, c)

    def close(self):
        llama_cpp.llama_free(self._context)

    def tokenize(self, text):
        raw, out = text.encode(), (llama_cpp.llama_token * 4096)()
        n = llama_cpp.llama_tokenize(self._vocab, raw, len(raw), out, len(out), False, True)
        return list(out[:n])

    def decode(self, tokens, first):
        """Logits at each of the tokens, the first of which is at position `first`: (len(tokens), vocabulary)."""
        batch = llama_cpp.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for i, token in enumerate(tokens):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0] = token, first + i, 1, 0
            batch.logits[i] = 1
        if llama_cpp.llama_decode(self._context, batch) != 0:
            raise RuntimeError("llama_decode")
        rows = [np.ctypeslib.as_array(ctypes.cast(llama_cpp.llama_get_logits_ith(self._context, i),
                                                  ctypes.POINTER(ctypes.c_float)), (self._size,)).copy()
                for i in range(len(tokens))]
        llama_cpp.llama_batch_free(batch)
        return np.stack(rows)

    def run(self, prompt, count):
        """The prompt with `count` greedy tokens after it, and the logits at every token but the last."""
        self.open()
        tokens, logits = list(prompt), [self.decode(prompt, 0)]
        while True:
            tokens.append(int(logits[-1][-1].argmax()))
            if len(tokens) == len(prompt) + count:
                self.close()
                return tokens, np.concatenate(logits)
            logits.append(self.decode(tokens[-1:], len(tokens) - 1))


def main(path, folder):
    source = reference_model.gguf_model(path)
    bpe = reference_model.tokenizer(source)
    engine = llama(path)
    print(engine.info)
    arrays, runs = {}, {}
    index = {"file": "llama.golden", "model_sha256": hashlib.sha256(open(path, "rb").read()).hexdigest(),
             "made_with": {"llama-cpp-python": llama_cpp.__version__, "llama.cpp": engine.info,
                           "torch": torch.__version__},
             "prompts": {}}
    for name, text in real_prompts.PROMPTS.items():
        prompt = bpe.encode(text).ids
        if engine.tokenize(text) != prompt:
            raise AssertionError("llama.cpp reads the prompt %s as other tokens" % name)
        runs[name] = (len(prompt), *engine.run(prompt, GREEDY))

    end = source.meta("tokenizer.ggml.eos_token_id")
    index["chats"] = {}
    for name, messages in real_prompts.CHATS.items():
        text = reference_model.render_chat(source, messages)
        prompt = bpe.encode(text).ids
        if engine.tokenize(text) != prompt:
            raise AssertionError("llama.cpp reads the chat as other tokens")
        tokens, logits = engine.run(prompt, real_prompts.CHAT_STEPS)
        answer = tokens[len(prompt):]
        answer = answer[:answer.index(end) + 1] if end in answer else answer
        two = np.sort(logits[len(prompt) - 1])[-2:]
        index["chats"][name] = {"messages": messages, "greedy_text": bpe.decode(answer, False),
                                "margin_of_the_first_token": float(two[1] - two[0])}
        print(name, index["chats"][name])
        arrays[name + "/tokens"] = np.array(prompt, np.int32)
        arrays[name + "/greedy"] = np.array(answer, np.int32)

    model = reference_model.double_model(source)
    for name, (prompt, tokens, theirs) in runs.items():
        ref = reference_model.teacher_forced(model, tokens[:-1])
        their = torch.from_numpy(theirs).double()
        log_ref, log_their = torch.log_softmax(ref, -1), torch.log_softmax(their, -1)
        kl = (log_ref.exp() * (log_ref - log_their)).sum(-1)
        ref_top, their_top = torch.topk(ref, TOP), torch.topk(their, TOP)
        nmse = ((their - ref) ** 2).sum(-1) / (ref ** 2).sum(-1)
        a, generated = name + "/", slice(prompt - 1, None)
        arrays[a + "prompt_tokens"] = np.array([prompt], np.int32)
        arrays[a + "tokens"] = np.array(tokens, np.int32)
        arrays[a + "argmax"] = theirs.argmax(-1).astype(np.int32)
        arrays[a + "lse"] = torch.logsumexp(their, -1).numpy()
        arrays[a + "top_ids"] = their_top.indices.numpy().astype(np.int32)
        arrays[a + "top_logits"] = their_top.values.numpy().astype(np.float32)
        arrays[a + "kl"] = kl.numpy()
        arrays[a + "ref_lse"] = torch.logsumexp(ref, -1).numpy()
        arrays[a + "ref_top_ids"] = ref_top.indices.numpy().astype(np.int32)
        arrays[a + "ref_top_logits"] = ref_top.values.numpy()
        # How llama.cpp itself stands against the reference.
        same = arrays[a + "argmax"] == arrays[a + "ref_top_ids"][:, 0]
        loss = (ref_top.values[:, 0] - ref.gather(1, torch.from_numpy(theirs.argmax(-1))[:, None])[:, 0])
        figures = {
            "prompt_tokens": prompt,
            "mean_kl": float(kl.mean()), "mean_kl_generated": float(kl[generated].mean()),
            "max_kl": float(kl.max()), "mean_nmse": float(nmse.mean()),
            "top1_agreement_with_reference": float(same.mean()),
            "top1_agreement_with_reference_generated": float(same[generated].mean()),
            "largest_disagreement_with_reference_nats": float(loss.max()),
        }
        index["prompts"][name] = {**figures, "greedy_text": bpe.decode(tokens[prompt:], False)}
        print(name, {k: round(v, 6) for k, v in figures.items()})

    kl = np.concatenate([arrays[n + "/kl"] for n in runs])
    generated = np.concatenate([arrays[n + "/kl"][arrays[n + "/prompt_tokens"][0] - 1:] for n in runs])
    index["mean_kl"], index["mean_kl_generated"] = float(kl.mean()), float(generated.mean())
    print("mean KL over all positions %.6g, over the generated %.6g" % (kl.mean(), generated.mean()))
    arrays["mean_kl"] = np.array([kl.mean()])
    arrays["mean_kl_generated"] = np.array([generated.mean()])
    golden_file.write_beside(folder, "llama", arrays, index)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
