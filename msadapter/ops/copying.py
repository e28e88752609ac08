"""Copies, casts, transfers between devices, and fills."""

from __future__ import annotations

from .._values.layout import format_strides
from ._declare import _C, composite, op, raw, raw_view, t
from .pointwise import zero_grad


def in_format(x, memory_format):
    """Return a copy in a memory format, without gradient."""
    if memory_format._name == "preserve_format":
        return raw.Clone(x)
    sizes, strides = list(x.shape), format_strides(x.shape, memory_format._name)
    if strides is None:
        return raw.Contiguous(x)
    flat = raw.Contiguous(t.permute(x, [0, *range(2, x.ndim), 1]))
    return raw_view(flat, sizes, strides, 0)


@op(
    "clone(Tensor self, *, any memory_format=None) -> Tensor",
    forms="fm",
    grad={"self": lambda g: g},
    pointwise=True,
    linear=("self",),
    native=("body", "gradient"),
    copies=True,
)
def clone(self, memory_format):
    """Return a copy with the layout of a dense tensor, or with the given memory format."""
    return raw.Clone(self) if memory_format is None else in_format(self, memory_format)


@op(
    "_to_meta(Tensor self) -> Tensor", forms="f", grad={"self": lambda g, self: t.zeros_like(g, device="cpu")}
)
def _to_meta(self):
    """Return a meta tensor with the same sizes and strides."""
    return _C.to_meta(self)


@op(
    "_to_device(Tensor self, int tag, bool non_blocking=False) -> Tensor",
    forms="f",
    grad={"self": lambda g: g},
)
def _to_device(self, tag, non_blocking):
    """Return a copy on the device with this tag. The gradient goes back to the device of ``self``.

    A copy from pinned memory that is ``non_blocking`` does not wait. A copy to the host always does, because its
    result may be read at once; ``copy_`` into a pinned tensor need not wait.
    """
    return _C.copied_to(self, tag, non_blocking and tag != 0)


op(
    "_to_dtype(Tensor self, ScalarType dtype) -> Tensor",
    ms="Cast",
    forms="f",
    grad={"self": lambda g: g},
    pointwise=True,
    linear=("self",),
    native="gradient",
    node="ToCopyBackward0",
    converted="self",
)
op(
    "copy(Tensor self, TensorOrScalar other, bool non_blocking=False) -> Tensor",
    ms="InplaceCopy",
    numbers={"other": ""},
    forms="i",
    grad={"self": zero_grad, "other": lambda g: g},
    pointwise=True,
    linear="jointly",
    node="CopyBackwards",
    converted="other",
)
op(
    "zero(Tensor self) -> Tensor",
    ms="InplaceZero",
    forms="in",
    grad={"self": zero_grad},
    pointwise=True,
    linear=("self",),
    writes_expanded=True,
)
op(
    "_fill_scalar(Tensor self, Scalar value) -> Tensor",
    limits={"value": "element"},
    node="FillBackward0",
    ms="InplaceFillScalar",
    forms="fi",
    grad={"self": zero_grad},
    pointwise=True,
    writes_expanded=True,
)
op(
    "_fill_tensor(Tensor self, Tensor value) -> Tensor",
    ms="InplaceFillTensor",
    forms="fi",
    grad={"self": zero_grad, "value": lambda g: g.sum()},
    pointwise=True,
)


@composite(
    "fill(Tensor self, TensorOrScalar value) -> Tensor",
    forms="f",
    pointwise=True,
)
def fill(self, value):
    """Return a tensor like `self` with every element set to `value`."""
    # Only a graph needs the copy, which makes the result depend on `self`.
    result = self.clone() if _C.is_grad_enabled() and self.requires_grad else t.empty_like(self)
    return result.fill_(value)


@composite("Tensor.fill_diagonal_(Tensor self, Scalar fill_value, bool wrap=False) -> Tensor", forms="m")
def fill_diagonal_(self, fill_value, wrap):
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    size, step, start = min(self.shape[:2]), sum(self.stride()), self.storage_offset()
    self.as_strided((size,), (step,), start).fill_(fill_value)
    width = self.shape[1]
    # in a tall matrix the next diagonal starts one row below the square
    if wrap and self.ndim == 2 and self.shape[0] > width + 1:
        rest = -(-self.numel() // (width + 1)) - size
        self.as_strided((rest,), (step,), start + self.stride(0) * (width + 1)).fill_(fill_value)
    return self


@composite("fill_(Tensor self, TensorOrScalar value) -> Tensor", forms="fm")
def fill_(self, value):
    """Set every element to `value`, in place."""
    if not isinstance(value, (int, float, complex)):
        return t._fill_tensor_(self, value)
    beyond = not isinstance(value, complex) and abs(value) > _LARGEST_HALF
    if beyond and self.numel() == 1 and self.device.type == "cpu":
        # A single element stores what a tensor without dims does, which the kernel knows. More elements refuse the number.
        value = t.scalar_tensor(value, dtype=self.dtype).item()
    return t._fill_scalar_(self, value)


_LARGEST_HALF = 65504
