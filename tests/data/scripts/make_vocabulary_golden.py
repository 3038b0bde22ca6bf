#!/usr/bin/env python3
"""Makes tests/data/tokenizer/converted/: a model directory whose tokenizer is a SentencePiece model, and the vocabulary
that llama.cpp's converter makes of it.

    python3 make_vocabulary_golden.py --llama-cpp SOURCE_TREE

The SentencePiece model is that of tokenizer/kinds/spm_llama. There are two added tokens, and two rows of padding.
Needs: gguf, sentencepiece, torch, transformers.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).resolve().parent.parent
OUT = DATA / "tokenizer" / "converted"

CONFIG = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 32,
    "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": True, "vocab_size": 704,
    "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16",
}


def added(content, special):
    return {"content": content, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False,
            "special": special}


TOKENIZER = {
    "add_bos_token": True, "add_eos_token": False, "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>",
    "tokenizer_class": "LlamaTokenizer", "legacy": True,
    "added_tokens_decoder": {"0": added("<unk>", True), "1": added("<s>", True), "2": added("</s>", True),
                             "700": added("<|user|>", True), "701": added("<tool>", False)},
}


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--llama-cpp", type=Path, required=True)
    how = arguments.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    (OUT / "tokenizer_config.json").write_text(json.dumps(TOKENIZER, indent=1) + "\n")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "tokenizer_config.json"):
            shutil.copy(OUT / name, folder)
        shutil.copy(DATA / "tokenizer" / "kinds" / "spm_llama" / "tokenizer.model", folder)
        subprocess.run([sys.executable, how.llama_cpp / "convert_hf_to_gguf.py", "--vocab-only", "--outfile",
                        OUT / "vocabulary.gguf", "--model-name", "tiny", folder], check=True)


if __name__ == "__main__":
    main()
