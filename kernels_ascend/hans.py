"""npu_hans_encode and npu_hans_decode: a floating tensor as its exponents and the rest of its bits, without loss.

The parts, and the statistics of the exponents, are those of the device. How the device packs exponents is its own; here
they are bytes, in `fixed` as far as they go and then in `var`, so what one of the two has encoded it decodes itself.
"""

from __future__ import annotations

import msadapter
from msadapter.ops._declare import t

_WORDS = {2: msadapter.int16, 4: msadapter.int32}
_BINS = 256


def _bytes(x):
    """The memory of a contiguous tensor as uint8; RuntimeError if it is not: a copy would be written instead of it."""
    if not x.is_contiguous():
        raise RuntimeError(f"npu_hans: the parts must be contiguous, but one has the strides {x.stride()}")
    return x.reshape(-1).view(msadapter.uint8)


def _turned(words, left: bool):
    """Each word rotated by one bit: left brings the sign behind the mantissa and the exponent into the last byte."""
    width = words.dtype.itemsize * 8
    by = 1 if left else width - 1
    low = (words >> (width - by)) & ((1 << by) - 1)
    return (words << by) | low


def _split(x):
    """(exponents, rest) as bytes: (n,) and (n, itemsize - 1)."""
    if x.dtype.itemsize not in _WORDS or not x.is_floating_point():
        raise RuntimeError(f"npu_hans_encode: input must be float32, float16 or bfloat16, but got {x.dtype}")
    words = _turned(x.detach().contiguous().reshape(-1).view(_WORDS[x.dtype.itemsize]), left=True)
    rows = _bytes(words).reshape(-1, x.dtype.itemsize)
    return rows[:, -1].contiguous(), rows[:, :-1].contiguous()


def npu_hans_encode(input, statistic=False, reshuff=False, *, out=None):
    """The tensor in parts; ``out``: (pdf, mantissa, fixed, var), which are written.

    Args:
        input: float32, float16 or bfloat16.
        statistic: count the exponents into pdf, (256,) int32.
        out: mantissa takes all bits but the exponents, fixed and then var the exponents; each contiguous.

    Returns:
        The four tensors of ``out``.

    Raises:
        RuntimeError: another dtype, parts that are too small.
    """
    if reshuff:
        raise NotImplementedError("torch_npu.npu_hans_encode: reshuff is not supported (docs/coverage.md)")
    if out is None:
        raise RuntimeError("npu_hans_encode: out=(pdf, mantissa, fixed, var) must be given")
    pdf, mantissa, fixed, var = out
    exponents, rest = _split(input)
    if statistic:
        pdf.copy_(t.bincount(exponents.long(), minlength=_BINS).reshape(pdf.shape))
    spaces = [_bytes(part.detach()) for part in (mantissa, fixed, var)]
    if rest.numel() > len(spaces[0]) or len(exponents) > len(spaces[1]) + len(spaces[2]):
        raise RuntimeError(
            f"npu_hans_encode: {rest.numel()} bytes of mantissas and {len(exponents)} of exponents do not fit into "
            f"{len(spaces[0])}, and {len(spaces[1])} + {len(spaces[2])} bytes"
        )
    spaces[0][: rest.numel()] = rest.reshape(-1)
    first = min(len(exponents), len(spaces[1]))
    spaces[1][:first] = exponents[:first]
    spaces[2][: len(exponents) - first] = exponents[first:]
    return pdf, mantissa, fixed, var


def npu_hans_decode(mantissa, fixed, var, pdf, reshuff=False, *, out=None):
    """What npu_hans_encode has taken apart, bit for bit, written into ``out``, which tells how much it is.

    Raises:
        RuntimeError: no ``out``, or one of a dtype or size that the parts cannot fill.
    """
    if reshuff:
        raise NotImplementedError("torch_npu.npu_hans_decode: reshuff is not supported (docs/coverage.md)")
    if out is None:
        raise RuntimeError("npu_hans_decode: out must be given")
    size, count = out.dtype.itemsize, out.numel()
    if size not in _WORDS or not out.is_floating_point():
        raise RuntimeError(f"npu_hans_decode: out must be float32, float16 or bfloat16, but got {out.dtype}")
    spaces = [_bytes(part.detach()) for part in (mantissa, fixed, var)]
    if count * (size - 1) > len(spaces[0]) or count > len(spaces[1]) + len(spaces[2]):
        raise RuntimeError(f"npu_hans_decode: the parts hold less than {count} numbers")
    rest = spaces[0][: count * (size - 1)].reshape(count, size - 1)
    exponents = t.cat([spaces[1], spaces[2]])[:count].reshape(count, 1)
    words = t.cat([rest, exponents], 1).reshape(-1).view(_WORDS[size])
    out.detach().copy_(_turned(words, left=False).view(out.dtype).reshape(out.shape))
    return out
