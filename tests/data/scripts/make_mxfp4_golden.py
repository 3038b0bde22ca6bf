#!/usr/bin/env python3
"""Writes tests/data/files/mxfp4.{safetensors,gguf}: the same experts as gpt-oss publishes them, and as ggml has them.

Needs torch, transformers, safetensors and gguf. The values of both are compared before anything is written: those of
the published pair as transformers unpacks it, those of ggml's blocks as gguf unpacks them.
"""

import pathlib

import gguf
import numpy as np
import torch
from safetensors.torch import save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

EXPERTS, ROWS, COLUMNS = 2, 3, 64
FOLDER = pathlib.Path(__file__).resolve().parent.parent / "files"

random = np.random.default_rng(20260823)
elements = random.integers(0, 16, (EXPERTS, ROWS, COLUMNS // 32, 32), dtype=np.uint8)
scales = random.integers(120, 135, (EXPERTS, ROWS, COLUMNS // 32), dtype=np.uint8)

published = elements[..., 0::2] | elements[..., 1::2] << 4
blocks = np.concatenate([scales[..., None], elements[..., :16] | elements[..., 16:] << 4], axis=-1)
blocks = blocks.reshape(EXPERTS, ROWS, -1)

unpacked = convert_moe_packed_tensors(torch.tensor(published), torch.tensor(scales), dtype=torch.float32)
expected = unpacked.transpose(1, 2).contiguous().numpy()  # it comes as [experts, columns, rows]
found = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.MXFP4)
assert expected.shape == found.shape == (EXPERTS, ROWS, COLUMNS), (expected.shape, found.shape)
assert np.array_equal(expected, found)

FOLDER.mkdir(exist_ok=True)
name = "model.layers.0.mlp.experts.down_proj"
save_file({name + "_blocks": torch.tensor(published), name + "_scales": torch.tensor(scales)},
          FOLDER / "mxfp4.safetensors")
writer = gguf.GGUFWriter(FOLDER / "mxfp4.gguf", "golden")
writer.add_tensor(name, blocks, raw_dtype=gguf.GGMLQuantizationType.MXFP4)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
