"""What the operators have in common: checks with torchvision's error texts, and gradients of one input."""

from __future__ import annotations

from .._values.base import as_leaf
from .._values.dtype import float16, float32, float64
from ..autograd import grad as gradient_of
from ..autograd import grad_mode
from ..ops._declare import t


def need(condition: bool, text: str) -> None:
    """Raise RuntimeError with a text unless a condition holds."""
    if not condition:
        raise RuntimeError(text)


def need_dtype(name: str, given, dtypes: tuple) -> None:
    """Raise NotImplementedError with PyTorch's text for a dtype that an operator does not compute."""
    if given not in dtypes:
        raise NotImplementedError(f"\"{name}\" not implemented for '{given.scalar_name}'")


def need_regions(input, rois, name: str) -> None:
    """Check a feature map (N, C, H, W) and the regions (K, 5), each an image's index and two corners."""
    need(input.dim() == 4, f"input must have shape as Tensor[N, C, H, W], but has {input.dim()} dimensions")
    demand = "Tensor rois should" if name.startswith("ps_") else "rois must"
    need(rois.dim() == 2 and rois.size(1) == 5, f"{demand} have shape as Tensor[K, 5]")
    need(
        input.dtype is rois.dtype,
        f"Expected tensor for argument #1 'input' to have the same type as tensor for argument #2 'rois'; but type "
        f"{input.type()} does not equal {rois.type()} (while checking arguments for {name})",
    )
    need_dtype(name.replace("_forward", ""), input.dtype, (float16, float32, float64))
    images = rois[:, 0]
    outside = ((images > -1) & (images < input.size(0))).logical_not()
    if bool(outside.any()):
        raise RuntimeError(
            f"rois: the first column must be the index of one of the {input.size(0)} images, but a row has "
            f"{float(images[outside][0]):g}"
        )


def need_multiple(channels: int, bins: int) -> int:
    """Return the number of output channels of a position-sensitive operator."""
    need(
        bins > 0 and channels % bins == 0,
        "input channels must be a multiple of pooling height * pooling width",
    )
    return channels // bins


def gradient(function, inputs: tuple, grad):
    """Return the gradients of ``function(*inputs)`` for ``inputs``, given the gradient of its result.

    They are zeros for an input that nothing was read from, for example where there are no regions.
    """
    with grad_mode.enable_grad():
        leaves = tuple(as_leaf(x.detach()) for x in inputs)
        result = function(*leaves)
        found = [None] * len(leaves)
        if result.requires_grad:
            found = gradient_of(result, leaves, grad, allow_unused=True)
    return tuple(t.zeros_like(x) if g is None else g.contiguous() for x, g in zip(inputs, found, strict=True))
