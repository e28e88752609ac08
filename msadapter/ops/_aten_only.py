"""Operators that have a name in torch.ops.aten alone: checks that tracers put into programs, methods as functions."""

from __future__ import annotations

import builtins

_INT64 = (-(2**63), 2**63 - 1)


def _assert_scalar(self, assert_msg: str) -> None:
    """RuntimeError with the message unless the number is true."""
    if not self:
        raise RuntimeError(assert_msg)


def _assert_async(self, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """RuntimeError with the message unless the tensor's one element is true; here at once."""
    if not bool(self):
        raise RuntimeError(assert_msg)


def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None) -> None:
    """RuntimeError unless ``a`` has the shape, strides, dtype, device and layout that are given."""
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
    """RuntimeError unless ``min <= size <= max``."""
    least, most = _INT64[0] if min is None else min, _INT64[1] if max is None else max
    if most < least:
        raise RuntimeError(f"Max must be greater than or equal to min. Got min={least} max={most}")
    if not least <= size <= most:
        raise RuntimeError(f"Invalid value range for {size} between [{least}, {most}].")


def sym_constrain_range_for_size(size, *, min=None, max=None) -> None:
    """The same for a length, which is not negative."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)


def _is_all_true(self):
    """0-dim bool: no element of the bool tensor is false."""
    return self.all()


def alias(self):
    """A view of the whole."""
    return self.view_as(self)


def slice(self, dim=0, start=None, end=None, step=1):
    """``self[start:end:step]`` along ``dim``, a view."""
    index = [builtins.slice(None)] * self.ndim
    index[dim] = builtins.slice(start, end, step)
    return self[tuple(index)]


def sym_size(self, dim=None):
    return self.size() if dim is None else self.size(dim)


def sym_stride(self, dim=None):
    return self.stride() if dim is None else self.stride(dim)


def sym_numel(self) -> int:
    return self.numel()


OPERATORS = {
    f.__name__: f
    for f in (
        _assert_scalar,
        _assert_async,
        _assert_tensor_metadata,
        sym_constrain_range,
        sym_constrain_range_for_size,
        _is_all_true,
        alias,
        slice,
        sym_size,
        sym_stride,
        sym_numel,
    )
}
METHODS = (
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
