"""Operators that the C++ dispatcher calls."""

from __future__ import annotations

import threading

from ._declare import _C, composite, t


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
        return type(result)(out) if isinstance(result, tuple) else out
    return _copy_one(result, out, dtypes)


def _copy_one(result, out, dtypes):
    if dtypes == "same" and result.dtype is not out.dtype:
        raise RuntimeError(f"expected scalar_type {_pretty(result.dtype)} but found {_pretty(out.dtype)}")
    if dtypes != "any" and not _castable(result.dtype, out.dtype):
        raise RuntimeError(
            f"result type {_pretty(result.dtype)} can't be cast to the desired output type {_pretty(out.dtype)}"
        )
    if out.shape != result.shape:
        out.resize_(result.shape)
    _C.copy_into(out, result)
    _C.bump_version(out)
    return out


def _castable(source, target) -> bool:
    def rank(d):
        return (
            3 if d.is_complex else 2 if d.is_floating_point else 0 if d.storage_name == "BoolStorage" else 1
        )

    return rank(source) <= rank(target)


def _pretty(d) -> str:
    return d.storage_name.removesuffix("Storage")


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
