"""Operators that exist only in torch.ops.aten, such as the checks that tracers add to programs."""

from __future__ import annotations

import builtins

from .._errors import unsupported
from .._host.native import load
from .._values.base import as_leaf
from ..ops._declare import declarations, namespaces, t
from ..tensor import Tensor, UntypedStorage

_INT64 = (-(2**63), 2**63 - 1)


def _assert_scalar(self, assert_msg: str) -> None:
    """Raise RuntimeError with the message, unless the number is true."""
    if not self:
        raise RuntimeError(assert_msg)


def _assert_async(self, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise RuntimeError with the message, unless the tensor's single element is true.

    The check happens immediately, although the name says "async".
    """
    if not bool(self):
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None) -> None:
    """Raise RuntimeError unless ``a`` has the given shape, strides, dtype, device and layout."""
    wanted = (
        ("sizes", None if size is None else list(size), list(a.shape)),
        ("strides", None if stride is None else list(stride), list(a.stride())),
        ("dtype", dtype, a.dtype),
        ("device", None if device is None else type(a.device)(device), a.device),
        ("layout", layout, a.layout),
    )
    for what, expected, found in wanted:
        if expected is not None and expected != found:
            raise RuntimeError(f"Tensor {what} mismatch! Expected: {expected}, Got: {found}")


def sym_constrain_range(size, *, min=None, max=None) -> None:
    """Raise RuntimeError unless ``min <= size <= max``."""
    least, most = _INT64[0] if min is None else min, _INT64[1] if max is None else max
    if most < least:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={least} max={most}")
    if not least <= size <= most:
        raise RuntimeError(f"Invalid value range for {size} between [{least}, {most}].")


def sym_constrain_range_for_size(size, *, min=None, max=None) -> None:
    """Like sym_constrain_range for a size, which must not be negative."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _is_all_true(self):
    """Return a 0-dimensional bool tensor: whether all elements of the bool tensor are true."""
    return self.all()


def _local_scalar_dense(self):
    """Return the number in a tensor of one element."""
    if self.numel() == 0:
        raise RuntimeError("Empty tensor not supported")
    return self.reshape(-1)[0].item()


def alias(self):
    """Return a view of the whole tensor."""
    return self.view_as(self)


def slice(self, dim=0, start=None, end=None, step=1):
    """Return ``self[start:end:step]`` along ``dim`` as a view."""
    index = [builtins.slice(None)] * self.ndim
    index[dim] = builtins.slice(start, end, step)
    return self[tuple(index)]


def sym_size(self, dim=None):
    return self.size() if dim is None else self.size(dim)


def sym_stride(self, dim=None):
    return self.stride() if dim is None else self.stride(dim)


def sym_numel(self) -> int:
    return self.numel()


def index(self, indices):
    """Return the elements at the indices; None in the list stands for a whole dimension."""
    return self[tuple(builtins.slice(None) if index is None else index for index in indices)]


def _to_copy(
    self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None
):
    """Return a copy, also where nothing changes."""
    wanted = {"dtype": dtype, "layout": layout, "device": device, "memory_format": memory_format}
    copied = self.to(
        **{k: v for k, v in wanted.items() if v is not None}, non_blocking=non_blocking, copy=True
    )
    return copied.pin_memory() if pin_memory else copied


def _pin_memory(self, device=None):
    """Return the tensor in memory that a device can read directly."""
    return self.pin_memory(device)


def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """Return ``beta * self + alpha * mat1 @ mat2`` for a sparse ``mat1``."""
    return namespaces["torch"]["addmm"](self, mat1, mat2, beta=beta, alpha=alpha)


def from_file(filename, shared=None, size=0, *, dtype=None, device=None, requires_grad=False) -> Tensor:
    """Return ``size`` elements on the bytes of a file; with ``shared``, what is written goes into the file."""
    dtype = dtype or load().default_dtype()
    untyped = UntypedStorage.from_file(filename, bool(shared), size * dtype.itemsize)
    found = Tensor._from_storage(untyped, dtype, 0, (size,), (1,))
    return as_leaf(found) if requires_grad else found


def _scaled_dot_product_attention_math(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, dropout_mask=None, *, scale=None, enable_gqa=False
):  # fmt: skip
    """Return the attention by the formula, and its weights."""
    if dropout_p or dropout_mask is not None:
        raise unsupported("torch.ops.aten._scaled_dot_product_attention_math", "dropout is not supported")
    attention = namespaces["nn.functional"]["scaled_dot_product_attention"]
    options = {"is_causal": is_causal, "scale": scale, "enable_gqa": enable_gqa}
    keys = namespaces["torch"]["eye"](key.shape[-2], dtype=key.dtype, device=key.device)
    weights = attention(query, key, keys.expand(*key.shape[:-2], *keys.shape), attn_mask, **options)
    return attention(query, key, value, attn_mask, **options), weights


def _of_accelerators(name: str):
    """Return an operator that PyTorch has for its accelerators alone.

    A call raises NotImplementedError, as it does on PyTorch's CPU.
    """

    def operator(*args, **kwargs):
        raise unsupported(
            f"Could not run 'aten::{name}'",
            "it is a kernel of PyTorch's accelerators; torch.nn.functional.scaled_dot_product_attention computes the same here",
        )

    operator.__name__ = name
    return operator


_ATTENTION_KERNELS = (
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)


def _averaging(name: str):
    """Return a loss of torch whose ``reduction`` is 1 (mean) by default, as in PyTorch's dispatcher, and not 0 (none)."""
    function, position = namespaces["torch"][name], declarations[name].schema.index("reduction")

    def operator(*args, **kwargs):
        if len(args) <= position:
            kwargs.setdefault("reduction", 1)
        return function(*args, **kwargs)

    operator.__name__ = name
    return operator


def _border(name: str, mode: str, count: int):
    """Return the operator that extends the last ``count`` dims by a mode of nn.functional.pad."""

    def operator(self, padding):
        if len(padding) != 2 * count:
            raise RuntimeError(f"padding size is expected to be {2 * count}, but got: {len(padding)}")
        return t.pad(self, list(padding), mode=mode)

    operator.__name__ = name
    return operator


_BORDERS = (("reflection_pad", "reflect"), ("replication_pad", "replicate"))
_LOSSES = (
    "kl_div",
    "binary_cross_entropy_with_logits",
    "hinge_embedding_loss",
    "cosine_embedding_loss",
    "margin_ranking_loss",
    "triplet_margin_loss",
    "ctc_loss",
)
OPERATORS = {name: _averaging(name) for name in _LOSSES}
OPERATORS |= {f"{name}{n}d": _border(f"{name}{n}d", mode, n) for name, mode in _BORDERS for n in (1, 2, 3)}
OPERATORS |= {
    f.__name__: f
    for f in (
        *map(_of_accelerators, _ATTENTION_KERNELS),
        _scaled_dot_product_attention_math,
        _assert_scalar,
        _assert_async,
        _assert_tensor_metadata,
        sym_constrain_range,
        sym_constrain_range_for_size,
        _is_all_true,
        _local_scalar_dense,
        alias,
        slice,
        sym_size,
        sym_stride,
        sym_numel,
        from_file,
        index,
        _to_copy,
        _pin_memory,
        _sparse_addmm,
    )
}
METHODS = (  # methods of Tensor that are not operators of the table
    "detach",
    "detach_",
    "fill_diagonal_",
    "to",
    "contiguous",
    "set_",
    "resize_",
    "is_pinned",
    "pin_memory",
)
