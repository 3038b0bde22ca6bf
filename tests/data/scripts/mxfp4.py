"""MXFP4 as the gpt-oss checkpoints keep it: 32 values of four bits (E2M1) with a common power of two.

Source: OCP Microscaling Formats (MX) Specification 1.0. Needs: torch.
"""

import torch

VALUES = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0])


def pack(x):
    """(..., rows, 32 n) to bytes (..., rows, n, 16), the even element in the low half, and exponents (..., rows, n).

    The exponent is floor(log2(greatest magnitude)) - 2, with 127 added; values go to the nearest there is. What `unpack`
    gave is packed without loss.
    """
    x = x.reshape(*x.shape[:-1], -1, 32)
    exponent = torch.floor(torch.log2(x.abs().amax(-1).clamp(min=2.0 ** -120))) - 2
    scaled = x / torch.exp2(exponent)[..., None]
    code = (scaled.abs()[..., None] - VALUES[:8]).abs().argmin(-1) + 8 * (scaled < 0)
    code = code.to(torch.uint8)
    return code[..., 0::2] | code[..., 1::2] << 4, (exponent + 127).to(torch.uint8)


def unpack(blocks, exponents):
    """(..., rows, 32 n) in float."""
    code = torch.stack((blocks & 15, blocks >> 4), -1).flatten(-2).long()
    return (VALUES[code] * torch.exp2(exponents.float() - 127)[..., None]).flatten(-2)
