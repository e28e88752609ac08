"""npu_hans_encode and npu_hans_decode: split a float tensor into its exponents and its other bits, without loss.

The parts and the statistics of the exponents equal those of the device. The device packs the exponents in a format of its
own. Here they are stored as bytes, first in `fixed` and then in `var`. Data must therefore be decoded where it was
encoded, either here or on the device.
"""

from __future__ import annotations

import msadapter
from msadapter.ops import t

_WORDS = {2: msadapter.int16, 4: msadapter.int32}
_BINS = 256


def _bytes(x):
    """The memory of a contiguous tensor as uint8. Raises RuntimeError for other tensors, because they would be copied."""
    if not x.is_contiguous():
        raise RuntimeError(f"npu_hans: every tensor must be contiguous, but one has the strides {x.stride()}")
    return x.reshape(-1).view(msadapter.uint8)


def _turned(words, left: bool):
    """Rotates each word by one bit. A left rotation moves the sign behind the mantissa and the exponent to the last byte."""
    width = words.dtype.itemsize * 8
    by = 1 if left else width - 1
    low = (words >> (width - by)) & ((1 << by) - 1)
    return (words << by) | low


def _split(x):
    """Splits x into bytes: exponents (n,) and the rest (n, itemsize - 1)."""
    if x.dtype.itemsize not in _WORDS or not x.is_floating_point():
        raise RuntimeError(f"npu_hans_encode: input must be float32, float16 or bfloat16, but got {x.dtype}")
    words = _turned(x.detach().contiguous().reshape(-1).view(_WORDS[x.dtype.itemsize]), left=True)
    rows = _bytes(words).reshape(-1, x.dtype.itemsize)
    return rows[:, -1].contiguous(), rows[:, :-1].contiguous()


def npu_hans_encode(input, statistic=False, reshuff=False, *, out=None):
    """Splits a tensor into parts, which are written to ``out`` = (pdf, mantissa, fixed, var).

    Args:
        input: float32, float16 or bfloat16.
        statistic: if true, write the histogram of the exponents to pdf, (256,) int32.
        out: mantissa receives all bits except the exponents; fixed and then var receive the exponents. All contiguous.

    Returns:
        The four tensors of ``out``.

    Raises:
        RuntimeError: the dtype is not supported, or a part is too small.
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
            f"mantissa ({len(spaces[0])} bytes), and fixed and var ({len(spaces[1])} + {len(spaces[2])} bytes)"
        )
    spaces[0][: rest.numel()] = rest.reshape(-1)
    first = min(len(exponents), len(spaces[1]))
    spaces[1][:first] = exponents[:first]
    spaces[2][: len(exponents) - first] = exponents[first:]
    return pdf, mantissa, fixed, var


def npu_hans_decode(mantissa, fixed, var, pdf, reshuff=False, *, out=None):
    """Joins the parts of npu_hans_encode bit for bit and writes the tensor to ``out``, whose size determines its length.

    Raises:
        RuntimeError: ``out`` is missing, or has a dtype or size that does not match the parts.
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
        raise RuntimeError(
            f"npu_hans_decode: mantissa, fixed and var hold fewer than the {count} numbers of out"
        )
    rest = spaces[0][: count * (size - 1)].reshape(count, size - 1)
    exponents = t.cat([spaces[1], spaces[2]])[:count].reshape(count, 1)
    words = t.cat([rest, exponents], 1).reshape(-1).view(_WORDS[size])
    out.detach().copy_(_turned(words, left=False).view(out.dtype).reshape(out.shape))
    return out
