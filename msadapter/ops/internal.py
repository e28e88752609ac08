"""Operators that the C++ dispatcher calls."""

from __future__ import annotations

import threading
import warnings

from .._values.base import as_leaf
from .._values.device import resolve
from .._values.dtype import cpp_name
from ._declare import _C, composite, namespaces, t
from ._geometry import is_dense


@composite("_inplace_from(Tensor self, Tensor result) -> Tensor", forms="f")
def _inplace_from(self, result):
    """The in-place form of a composed function: copy its result into self."""
    if self.shape != result.shape:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    return t.copy_(self, result)


@composite("_copy_to_out(any result, any out, str? dtypes=None) -> Tensor", forms="f")
def _copy_to_out(result, out, dtypes):
    """Implement ``out=``: write the result into the given tensors. A tensor of another shape is resized.

    ``dtypes`` is the operator's fact ``out_dtype``.
    """
    if isinstance(result, (tuple, list)):
        if not isinstance(out, (tuple, list)) or len(out) != len(result):
            raise TypeError(f"out must be a tuple of {len(result)} tensors")
        for r, o in zip(result, out, strict=True):
            _copy_one(r, o, dtypes)
        kind = namespaces["return_types"].get(f"{type(result).__name__}_out", type(result))
        return kind(out) if isinstance(result, tuple) else out
    return _copy_one(result, out, dtypes)


def _copy_one(result, out, dtypes):
    if dtypes == "same" and result.dtype is not out.dtype:
        wanted, given = cpp_name(result.dtype), cpp_name(out.dtype)
        raise RuntimeError(f"Expected out tensor to have dtype {wanted}, but got {given} instead")
    if dtypes == "same scalar type" and result.dtype is not out.dtype:
        wanted, given = (x.dtype.scalar_name for x in (result, out))
        raise RuntimeError(f"expected scalar_type {wanted} but found {given}")
    if dtypes == "floating" and not out.is_floating_point():
        raise RuntimeError(f"expected a floating point output tensor, but got {_pretty(out.dtype)}")
    if dtypes == "cat" and not _castable(result.dtype, out.dtype):
        raise TypeError(
            f"torch.cat(): input types can't be cast to the desired output type {_pretty(out.dtype)}"
        )
    if dtypes in ("truth of all", "truth of any") and out.dtype.storage_name not in (
        "BoolStorage",
        "ByteStorage",
    ):
        name = dtypes.removeprefix("truth of ")
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {_pretty(out.dtype)}")
    if dtypes == "cast":
        check_castable(result.dtype, out.dtype)
    if dtypes == "fills" and out.numel() == result.numel():
        result = result.reshape(out.shape)
    if out.shape != result.shape:
        if out.numel() and dtypes not in ("creates", "fills"):
            _warn_resized(out.shape, result.shape)
        out.resize_(result.shape)
        if not result.is_contiguous() and is_dense(
            result.shape, result.stride()
        ):  # its dims have another order
            _C.set_geometry(out, out, tuple(result.shape), result.stride(), out.storage_offset())
    _C.copy_into(out, result)
    _C.bump_version(out)
    if result.requires_grad:  # a new tensor, for which the program asked that
        as_leaf(out)
    return out


def _warn_resized(shape, needed) -> None:
    warnings.warn(
        f"An output with one or more elements was resized since it had shape {list(shape)}, which does not match the required "
        f"output shape {list(needed)}. This behavior is deprecated, and in a future PyTorch release outputs will not be "
        "resized unless they have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero "
        "elements with t.resize_(0).",
        stacklevel=3,
    )


@composite("_check_option_of_out(any option, Tensor out) -> bool", forms="f")
def _check_option_of_out(option, out):
    """RuntimeError if a layout or a device, which a call names besides ``out=``, is not that of ``out``."""
    if hasattr(option, "_name"):
        name, given, own = "layout", option, out.layout
        fits = given is own
        given, own = (str(x).removeprefix("torch.").removesuffix("_coo").capitalize() for x in (given, own))
    else:
        name, given, own = "device type", resolve(option).type, out.device.type
        fits = given == own
    if not fits:
        raise RuntimeError(f"{name} {given} does not match {name} of out parameter ({own})")
    return True


def _castable(source, target) -> bool:
    def rank(d):
        return (
            3 if d.is_complex else 2 if d.is_floating_point else 0 if d.storage_name == "BoolStorage" else 1
        )

    return rank(source) <= rank(target)


def check_castable(source, target) -> None:
    """RuntimeError if a result of one dtype cannot be written to a tensor of the other."""
    if not _castable(source, target):
        raise RuntimeError(
            f"result type {_pretty(source)} can't be cast to the desired output type {_pretty(target)}"
        )


def _pretty(d) -> str:
    return d.scalar_name


_autocast_cache: dict = {}


class _CacheState(threading.local):
    """Whether autocast keeps its casts, for each thread."""

    enabled = True


autocast_cache = _CacheState()


@composite("_autocast_cast(Tensor self, any dtype) -> Tensor", forms="f")
def _autocast_cast(self, dtype):
    """The cast that autocast inserts. Casts of leaf tensors are cached until the autocast region ends."""
    kept = autocast_cache.enabled and self.is_leaf and self.requires_grad and _C.is_grad_enabled()
    if kept and not _C.is_inference(self):
        key = (id(self), self._version, dtype)
        hit = _autocast_cache.get(key)
        if hit is None or hit[0] is not self:
            hit = (self, self.to(dtype))
            _autocast_cache[key] = hit
        return hit[1]
    return self.to(dtype)


def clear_autocast_cache() -> None:
    _autocast_cache.clear()
