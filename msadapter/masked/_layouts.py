"""Masks in the layout of their inputs, and masked reductions of sparse tensors."""

from __future__ import annotations

import functools

from .. import ops
from .._values.dtype import bool as bool_
from .._values.dtype import int64
from .._values.layout import LAYOUTS
from ..sparse import sparse_coo_tensor, sparse_csr_tensor
from ..tensor import Tensor
from ._fill import all_dims, broadcast_mask

_STRIDED, _COO, _CSR = LAYOUTS["strided"], LAYOUTS["sparse_coo"], LAYOUTS["sparse_csr"]
_REDUCTIONS = frozenset(
    ["sum", "prod", "amax", "amin", "argmax", "argmin", "mean", "median", "norm", "var", "std", "logsumexp"]
)
_NORMALIZATIONS = frozenset(["softmax", "log_softmax", "softmin", "normalize", "cumsum", "cumprod"])


def _canonical_dim(dim, ndim: int) -> tuple[int, ...]:
    """Return the dims of a reduction as a sorted tuple of numbers that are not negative. None and () mean all of them."""
    given = isinstance(dim, int) or (isinstance(dim, (tuple, list)) and len(dim) > 0)
    return tuple(all_dims(dim, ndim)) or ((0,) if given else ())


def _check_layout(name: str, layout) -> None:
    if layout not in (_STRIDED, _COO, _CSR):
        raise ValueError(f"{name} expects strided or sparse COO or sparse CSR tensor but got {layout}")


def _sparse_like(dense: Tensor, held: Tensor, like: Tensor) -> Tensor:
    """Return a tensor in the layout of ``like`` that specifies the elements of ``dense`` where ``held`` is true.

    Where ``like`` has dense dims, whole slices are specified.
    """
    if like.layout is _CSR:
        return dense.sparse_mask(held.to_sparse_csr())
    sparse_dims = min(like.sparse_dim(), dense.ndim)
    if dense.ndim == 0:
        count = int(held)
        indices = ops.zeros((0, count), dtype=int64, device=dense.device)
        return sparse_coo_tensor(indices, dense.reshape(1)[:count], ())
    dense_dims = tuple(range(sparse_dims, dense.ndim))
    slices = held.any(dense_dims, keepdim=True).expand(held.shape) if dense_dims else held
    return dense.sparse_mask(slices.to_sparse(sparse_dims))


def _held(input: Tensor, mask) -> Tensor:
    """Return the elements of a sparse tensor that count, as a strided mask. Without a mask, they are the specified ones."""
    if mask is not None:
        return broadcast_mask(input, mask)
    if input.layout is _CSR:
        ones = ops.ones_like(input.values(), dtype=bool_)
        return sparse_csr_tensor(input.crow_indices(), input.col_indices(), ones, input.shape).to_dense()
    return sparse_coo_tensor(
        input._indices(), ops.ones_like(input._values(), dtype=bool_), input.shape
    ).to_dense()


def reduces_sparse(*layouts: str, needs_mask: bool = False):
    """Decorate a masked reduction, which then takes tensors of these layouts too and returns their layout.

    needs_mask: PyTorch takes no sparse input without a mask.
    """
    kinds = tuple(LAYOUTS[name] for name in layouts)
    expected = ", ".join(("strided", *layouts[:-1])) + f" or {layouts[-1]}"

    def decorate(reduction):
        name = reduction.__name__

        @functools.wraps(reduction)
        def reduce(input, dim=None, *, keepdim=False, dtype=None, mask=None):
            if input.layout is _STRIDED:
                return reduction(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
            if input.layout not in kinds:
                raise ValueError(f"masked {name} expects {expected} tensor (got {input.layout} tensor)")
            if needs_mask and mask is None:
                layout = str(input.layout).removeprefix("torch.")
                raise ValueError(f"masked {name} expects explicit mask for {layout} tensor input")
            if input.layout is _CSR and not keepdim:
                kind = RuntimeError if name in ("sum", "mean") else AssertionError
                raise kind("reduction operations on CSR tensors with keepdim=False is unsupported")
            held = _held(input, mask)
            found = reduction(input.to_dense(), dim, keepdim=keepdim, dtype=dtype, mask=held)
            return _sparse_like(found, _any(held, _canonical_dim(dim, input.ndim), keepdim), input)

        return reduce

    return decorate


def _any(mask: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return mask.any(dims, bool(keepdim)) if dims else mask


def _where(mask: Tensor, input: Tensor, fill_value: Tensor) -> Tensor:
    """Return ``input`` where the mask is true, and ``fill_value`` elsewhere, in the layout of the mask.

    A sparse result specifies the elements where the mask is true. They are 0 where ``input`` does not specify them.
    """
    _check_layout("_where", mask.layout)
    if mask.layout is _STRIDED:
        return ops.where(mask, input, fill_value)
    held = mask.to_dense()
    return _sparse_like(ops.where(held, input.to_dense(), fill_value), held, mask)


def _input_mask(input: Tensor, *args, mask=None, **kwargs) -> Tensor:
    """Return the mask of a masked operation as booleans, in the shape and the layout of its input."""
    _check_layout("_input_mask", input.layout)
    if mask is None:
        raise ValueError("_input_mask requires explicit mask")
    held = broadcast_mask(input, mask)
    if input.layout is _STRIDED:
        return held
    return held.to_sparse_csr() if input.layout is _CSR else held.to_sparse(input.sparse_dim()).coalesce()


def _output_mask(op, input: Tensor, *args, **kwargs) -> Tensor:
    """Return which elements of the result of a masked operation have been computed from elements that count."""
    if not callable(op):
        raise ValueError(f"_output_mask expected masked operation (got {type(op).__name__} object)")
    if op.__name__ in _NORMALIZATIONS:
        return _input_mask(input, *args, **kwargs)
    if op.__name__ not in _REDUCTIONS:
        raise ValueError(
            f"_output_mask expected masked operation (got callable {op.__module__}.{op.__name__})"
        )
    given = args[1:] if op.__name__ == "norm" else args
    dims = _canonical_dim(given[0] if given else kwargs.get("dim"), input.ndim)
    mask = _input_mask(input, *args, **kwargs)
    keepdim = bool(kwargs.get("keepdim", False))
    if mask.layout is _STRIDED:
        return _any(mask, dims, keepdim)
    return _sparse_like(*[_any(mask.to_dense(), dims, keepdim)] * 2, input)
