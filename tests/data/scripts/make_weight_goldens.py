#!/usr/bin/env python3
"""Makes the goldens of the weight formats: tests/data/weights/blocks.golden.

    make_weight_goldens.py OUTPUT_FILE

The `gguf` package (gguf.quants) dequantises blocks of every format that plait computes with, and quantises rows.
Definitions: tests/data/weights/README.md; layout of the file: golden_file.py.

Needs: numpy, gguf.
"""

import sys

import numpy as np
from gguf import quants
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

import golden_file

# Where a block has its F16 scales; mxfp4 has a byte of exponent instead.
HALVES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
    "IQ4_NL": [0], "IQ4_XS": [0], "MXFP4": [],
}
# Usual, zero of both signs, the least and the greatest subnormal, the greatest numbers, infinities and a NaN.
SCALES = [0x1c37, 0x9e21, 0x0000, 0x8000, 0x0001, 0x83ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e01]
EXPONENTS = [120, 127, 0, 1, 2, 3, 252, 253, 254, 255, 128]


def blocks(name, random):
    """A block for each scale, then two of extreme codes: all bits clear, all set."""
    size = GGML_QUANT_SIZES[GGMLQuantizationType[name]][1]
    count = len(SCALES)
    out = random.integers(0, 256, (count + 2, size), dtype=np.uint8)
    out[count], out[count + 1] = 0, 255
    for i in range(count + 2):
        for k, at in enumerate(HALVES[name]):
            # The minimum's scale goes through the list at another pace.
            scale = SCALES[(i + 3 * k) % count] if i < count else SCALES[k]
            out[i, at:at + 2] = np.array([scale], "<u2").view(np.uint8)
        if name == "MXFP4":
            out[i, 0] = EXPONENTS[i] if i < count else 121
    return out


def rows_to_quantise(random):
    out = random.standard_normal((24, 32)).astype(np.float32)
    out[1] = 0
    out[2] = 0.75
    out[3] = -np.abs(out[3])
    out[4, 5] = 1e5  # the scale is still an F16 number
    out[5] *= 1e-7  # the scale is a subnormal one
    out[6] *= 1e-11  # the scale becomes zero
    out[7] *= 1e8  # the scale becomes infinite
    out[8] = np.arange(32) - 15.5
    out[8, 0] = -127  # halves, rounded away from zero
    out[9] = np.arange(32) / 2  # scale 15.5 / 15 in q4_1
    out[10] = np.minimum(np.arange(32) / 2, 15)  # halves in q4_1
    out[11, 1:] = 0
    out[12] *= 1e-30
    for i in range(13, 24):
        out[i] *= np.float32(10.0) ** random.integers(-4, 4)
    return out


def main(path):
    random = np.random.default_rng(2024)
    arrays = {}
    for name in HALVES:
        file = blocks(name, random)
        with np.errstate(all="ignore"):
            arrays[name.lower() + "/f32"] = quants.dequantize(file, GGMLQuantizationType[name])
        arrays[name.lower() + "/file"] = file
    rows = rows_to_quantise(random)
    arrays["rows"] = rows
    for name in ("Q8_0", "Q4_1"):
        with np.errstate(all="ignore"):
            arrays["rows/" + name.lower()] = quants.quantize(rows, GGMLQuantizationType[name])
    print(golden_file.write(path, arrays), "bytes")


if __name__ == "__main__":
    main(sys.argv[1])
