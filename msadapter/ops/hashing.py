"""Hashes of the bits of a tensor."""

from __future__ import annotations

from ._declare import composite, op, t
from ._geometry import numel, wrap_dims
from .creation import dtype_of


# ---- for an NPU, which has no operator for it
def _bits(x):
    """Convert the elements to 64 bits and return their bits as int64."""
    if x.dtype.is_floating_point:
        return x.to(dtype_of("float64")).contiguous().view(dtype_of("int64"))
    return x.to(dtype_of("int64"))


def _folded(x):
    """Combine the last dimension with exclusive or: what exceeds a power of two first, then halving it again and again."""
    n = x.shape[-1]
    kept = 1 << (n.bit_length() - 1)
    if n > kept:
        pairs = t.bitwise_xor(t._slice(x, -1, 0, n - kept, 1), t._slice(x, -1, kept, n, 1))
        x = t.cat([pairs, t._slice(x, -1, n - kept, kept, 1)], -1)
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = t.bitwise_xor(t._slice(x, -1, 0, half, 1), t._slice(x, -1, half, 2 * half, 1))
    return t.squeeze(x, -1)


def _xor_of_operators(self, dim, keepdim):
    """The combined bits, of operators that an NPU has."""
    if self.is_complex():
        return NotImplemented
    kept = [d for d in range(self.ndim) if d not in dim]
    bits = t.permute(_bits(self), kept + list(dim)) if self.ndim else _bits(self)
    count = numel(self.shape[d] for d in dim) if self.ndim else 1
    folded = _folded(t.reshape(bits, [self.shape[d] for d in kept] + [count]))
    if keepdim:
        folded = t.reshape(folded, [1 if d in dim else self.shape[d] for d in range(self.ndim)])
    return folded.view(dtype_of("uint64"))


op(
    "_xor_of_bits(Tensor self, int[] dim, bool keepdim) -> Tensor",
    ms="XorOfBits",
    npu=_xor_of_operators,
    forms="f",
    whole=True,
)


@composite(
    "hash_tensor(Tensor self, int[]? dim=(), *, bool keepdim=False, int mode=0) -> Tensor",
    forms="fmo",
    copied_to_out=True,
)
def hash_tensor(self, dim, *, keepdim, mode):
    """Combine the 64-bit patterns of the elements with exclusive or over ``dim`` (default: all), as uint64."""
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    dim = [dim] if isinstance(dim, int) else dim
    dims = list(wrap_dims(dim, self.ndim)) if dim else list(range(self.ndim))
    if self.numel() == 0:
        if not dim:
            raise RuntimeError(
                "hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction "
                "dim with the 'dim' argument."
            )
        for d in dims:
            if self.ndim and self.shape[d] == 0:
                raise IndexError(f"hash_tensor: Expected reduction dim {d} to have non-zero size.")
    return t._xor_of_bits(self, dims, keepdim)
