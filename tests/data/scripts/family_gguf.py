"""A GGUF file from the folder of a tiny model, by llama.cpp's converter, and what llama.cpp says when it runs it.

Needs: llama.cpp's sources, numpy, torch, gguf, sentencepiece; for the second opinion llama_cpp (llama-cpp-python).
"""

import importlib
import json
import logging
import pathlib
import shutil
import sys
import tempfile

import numpy as np

# Masks and frequencies that old checkpoints carry; the converter does not leave out all of them.
BUFFERS = (".attn.bias", ".attention.bias", ".masked_bias", ".inv_freq")


def _vocabulary(tokens, special, merges):
    # The converter knows a tokenizer by a hash of what it does; this one it can't know, and is told.
    def set_vocab(self):
        w = self.gguf_writer
        w.add_tokenizer_model("gpt2")
        w.add_tokenizer_pre("gpt-2")
        w.add_token_list(tokens)
        w.add_token_types([3 if t in special else 1 for t in tokens])
        w.add_token_merges(merges)
        w.add_bos_token_id(special.index("<s>"))
        w.add_eos_token_id(special.index("</s>"))
        w.add_pad_token_id(special.index("<pad>"))
        w.add_add_bos_token(False)
    return set_vocab


def _convert(folder, path, kind, vocabulary):
    conversion = importlib.import_module("conversion")
    base = importlib.import_module("conversion.base")
    # Transformers' own reading of config.json would put the newer names in place of those that the converter expects.
    hparams = json.loads((folder / "config.json").read_text())
    parent = conversion.get_model_class(base.get_model_architecture(hparams, base.ModelType.TEXT))
    filtered = classmethod(lambda cls, item: None if item[0].endswith(BUFFERS)
                           else parent.filter_tensors.__func__(cls, item))
    model_class = type(parent.__name__, (parent,), {"set_vocab": vocabulary, "model_arch": parent.model_arch,
                                                    "filter_tensors": filtered})
    import torch
    with torch.inference_mode():
        model_class(folder, getattr(base.gguf.LlamaFileType, kind), path, model_name="tiny", hparams=hparams).write()


def _run(path, ids, width):
    """Logits of every position; keys and values in F32, no flash attention."""
    import llama_cpp as ll
    ll.llama_backend_init()
    logging.getLogger().setLevel(logging.ERROR)
    quiet = ll.llama_log_callback(lambda *_: None)
    ll.llama_log_set(quiet, None)
    parameters = ll.llama_model_default_params()
    model = ll.llama_model_load_from_file(str(path).encode(), parameters)
    if not model:
        raise RuntimeError("llama.cpp does not load %s" % path)
    p = ll.llama_context_default_params()
    p.n_ctx = p.n_batch = p.n_ubatch = 64
    p.n_threads = p.n_threads_batch = 1
    p.type_k = p.type_v = 0
    p.flash_attn_type = 0
    p.swa_full = True
    context = ll.llama_init_from_model(model, p)
    batch = ll.llama_batch_init(len(ids), 0, 1)
    batch.n_tokens = len(ids)
    for i, t in enumerate(ids):
        batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.logits[i] = int(t), i, 1, 1
        batch.seq_id[i][0] = 0
    if ll.llama_decode(context, batch) != 0:
        raise RuntimeError("llama.cpp does not run %s" % path)
    out = np.stack([np.ctypeslib.as_array(ll.llama_get_logits_ith(context, i), (width,)).copy()
                    for i in range(len(ids))])
    ll.llama_free(context)
    ll.llama_model_free(model)
    return out.astype(np.float64)


def convert(llama_cpp, folder, path, tokens, special, merges, golden):
    """Writes `path` in BF16. Returns the worst NMSE of llama.cpp on the same in F32, or None without llama_cpp.

    `golden`: the arrays to compare with, or None not to.
    """
    for place in (llama_cpp / "gguf-py", llama_cpp):
        if str(place) not in sys.path:
            sys.path.insert(0, str(place))
    vocabulary = _vocabulary(tokens, special, merges)
    path.unlink(missing_ok=True)
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json"):
            shutil.copy(folder / name, place)
        shutil.copy(folder / "config.published.json", place / "config.json")
        _convert(place, path, "MOSTLY_BF16", vocabulary)
        if golden is None or importlib.util.find_spec("llama_cpp") is None:
            return None
        wide = place / "model.gguf"
        _convert(place, wide, "ALL_F32", vocabulary)
        ours = _run(wide, golden["tokens"], len(tokens))
    exact = golden["logits"].astype(np.float64)
    return (((ours - exact) ** 2).sum(-1) / (exact ** 2).sum(-1)).max()
