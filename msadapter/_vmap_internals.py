"""torch._vmap_internals: an older form of vmap, which gradient checks use."""

from __future__ import annotations

import functools

from ._errors import unsupported
from .func import vmap as _of_func
from .func._batched import levels

__all__ = ["vmap"]
_RANDOM = "vmap: called random operation"


def vmap(func, in_dims=0, out_dims=0):
    """Return ``func``, mapped over a dimension of its arguments. Random operations are errors."""
    return _vmap(func, in_dims, out_dims)


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    if allow_none_pass_through:
        raise unsupported("torch._vmap_internals._vmap(allow_none_pass_through=True)")

    @functools.wraps(func)
    def inside(*args):
        levels[-1].is_transform = False
        return func(*args)

    mapped = _of_func(inside, in_dims, out_dims)

    def run(*args):
        try:
            return mapped(*args)
        except RuntimeError as error:
            if not str(error).startswith(_RANDOM):
                raise
            raise RuntimeError(
                "vmap: We do not yet support calling random operations inside of vmap. Please perform random operations outside of "
                "vmap as a workaround"
            ) from error

    return run
