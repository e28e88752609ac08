"""torch.sparse_coo_tensor and the functions for compressed layouts, with checks of their arguments."""

from __future__ import annotations

import contextlib

from .._host.native import load
from .._values.dtype import ALL
from .._values.layout import LAYOUTS
from ..ops._declare import t
from ..tensor import Size, Tensor
from ._base import MAKERS, check_inside, int64
from ._checks import BLOCKED, ROWS, check_ranks, title
from ._compressed import KINDS, compressed
from ._coo import coo

_C = load()
_checks = {"enabled": False}


class check_sparse_tensor_invariants(contextlib.ContextDecorator):
    """Switches checks of the indices of new sparse tensors, inside ``with``, or by enable() and disable()."""

    def __init__(self, enable: bool = True):
        self._wanted, self._before = enable, None

    @staticmethod
    def is_enabled() -> bool:
        return _checks["enabled"]

    @staticmethod
    def enable() -> None:
        _checks["enabled"] = True

    @staticmethod
    def disable() -> None:
        _checks["enabled"] = False

    def __enter__(self):
        if self._before is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context manager instance for context nesting."
            )
        self._before = _checks["enabled"]
        _checks["enabled"] = self._wanted
        return self

    def __exit__(self, *exc):
        _checks["enabled"], self._before = self._before, None


def _checked(flag) -> bool:
    return _checks["enabled"] if flag is None else flag


def _values(values, dtype, device, requires_grad: bool):
    """Return the values as a tensor: a view if they have a graph, else a new leaf."""
    given = values if isinstance(values, Tensor) else t.tensor(values, dtype=dtype)
    if dtype is not None:
        given = given.to(dtype)
    if device is not None:
        given = given.to(device)
    if given.requires_grad and _C.is_grad_enabled() and not requires_grad:
        return given.view_as(given)
    return given.detach().requires_grad_(requires_grad)


def sparse_coo_tensor(
    indices=None,
    values=None,
    size=None,
    *,
    dtype=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
    is_coalesced=None,
):
    """Return a tensor with ``values`` (nnz, *dense sizes) at ``indices`` (sparse dims, nnz).

    Without ``size`` it is as small as the indices allow. With ``size`` alone it is empty.

    Raises:
        RuntimeError: the shapes do not fit, or (with checks) an index is outside of the size.
    """
    if values is None and (size is not None or isinstance(indices, (tuple, Size, list))):
        size = tuple(indices) if size is None else tuple(size)
        nothing = _values(t.zeros([0], dtype=dtype), None, device, requires_grad)
        return coo(t.zeros([len(size), 0], dtype=ALL["int64"]), nothing, size, True)
    indices, values = int64(indices).to(ALL["int64"]), _values(values, dtype, device, requires_grad)
    if indices.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(indices.shape)}")
    if values.ndim == 0:
        values = values.expand(indices.shape[1])
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: "
            f"{values.shape[0]}"
        )
    if size is None:
        size = _least_size(indices, values)
    size = tuple(size)
    sparse, dense = indices.shape[0], values.ndim - 1
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )
    if tuple(values.shape[1:]) != size[sparse:]:
        raise RuntimeError(
            f"values has incorrect size, expected {[indices.shape[1], *size[sparse:]]}, got {list(values.shape)}"
        )
    if _checked(check_invariants):
        check_inside(indices, size)
    return coo(indices, values, size, bool(is_coalesced))


def _least_size(indices, values) -> tuple:
    for dim, low in enumerate(indices.min(1)[0].tolist() if indices.numel() else ()):
        if low < 0:
            raise RuntimeError(f"found negative index {low} for dim {dim}")
    reach = (indices.max(1)[0] + 1).tolist() if indices.numel() else [0] * indices.shape[0]
    return (*reach, *values.shape[1:])


def sparse_compressed_tensor(
    compressed_indices,
    plain_indices,
    values,
    size=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=False,
    requires_grad=False,
    check_invariants=None,
):
    """Return a matrix in a compressed layout, or a batch of matrices if the indices have more than one dim.

    Line i (a row, a column, or a row or column of blocks) has the values ``values[compressed[i]:compressed[i
    + 1]]``, at the positions that ``plain_indices`` gives.

    Raises:
        RuntimeError: the layout is missing, the shapes do not fit, or (with checks) the indices are not
        valid.
    """
    if layout is None or layout._name not in KINDS:
        raise RuntimeError(
            "expected layout to be one of SparseCsr, SparseCsc, SparseBsr or SparseBsc but got "
            + ("None" if layout is None else title(layout._name))
        )
    outer, inner = int64(compressed_indices), int64(plain_indices)
    values = _values(values, dtype, device, requires_grad)
    check_ranks(layout._name, outer, inner, values)
    if size is None:
        size = _least_compressed_size(layout._name, outer, inner, values)
    made = compressed(layout._name, outer, inner, values, tuple(size))
    if _checked(check_invariants):
        made._check()
    elif inner.shape[-1] != values.shape[outer.ndim - 1]:
        raise RuntimeError(
            f"number of elements in plain indices {inner.shape[-1]} and values {list(values.shape)} do not fit"
        )
    return made


def _least_compressed_size(name: str, outer, inner, values) -> tuple:
    """Return the least size of a tensor with these parts."""
    count, blocked = outer.ndim - 1, name in BLOCKED
    lines, most = max(outer.shape[-1] - 1, 0), int(inner.max()) + 1 if inner.numel() else 0
    n, m = (lines, most) if name in ROWS else (most, lines)
    height, width = values.shape[count + 1 : count + 3] if blocked else (1, 1)
    dense = values.shape[count + (3 if blocked else 1) :]
    return (*inner.shape[:-1], n * height, m * width, *dense)


def _of_layout(name: str):
    def make(outer, inner, values, size=None, **options):
        options.pop("layout", None)
        return sparse_compressed_tensor(outer, inner, values, size, layout=LAYOUTS[name], **options)

    make.__name__ = make.__qualname__ = f"{name}_tensor"
    make.__doc__ = f"`sparse_compressed_tensor` of layout torch.{name}."
    return make


sparse_csr_tensor = _of_layout("sparse_csr")
sparse_csc_tensor = _of_layout("sparse_csc")
sparse_bsr_tensor = _of_layout("sparse_bsr")
sparse_bsc_tensor = _of_layout("sparse_bsc")


def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None, check_pinning=None) -> None:
    """RuntimeError unless these are the parts of a coordinate tensor."""
    sparse_coo_tensor(indices, values, size, is_coalesced=is_coalesced, check_invariants=True)._check()


def _validate_sparse_compressed_tensor_args(
    compressed_indices, plain_indices, values, size, layout, check_pinning=None
) -> None:
    """RuntimeError unless these are the parts of a tensor of a compressed layout."""
    sparse_compressed_tensor(
        compressed_indices, plain_indices, values, size, layout=layout, check_invariants=True
    )


def _validator_of(name: str):
    def validate(outer, inner, values, size, check_pinning=None) -> None:
        _validate_sparse_compressed_tensor_args(outer, inner, values, size, LAYOUTS[name])

    validate.__name__ = validate.__qualname__ = f"_validate_{name}_tensor_args"
    validate.__doc__ = f"`_validate_sparse_compressed_tensor_args` of layout torch.{name}."
    return validate


_validate_sparse_csr_tensor_args = _validator_of("sparse_csr")
_validate_sparse_csc_tensor_args = _validator_of("sparse_csc")
_validate_sparse_bsr_tensor_args = _validator_of("sparse_bsr")
_validate_sparse_bsc_tensor_args = _validator_of("sparse_bsc")
MAKERS.update(dict.fromkeys(KINDS, sparse_compressed_tensor), sparse_coo=sparse_coo_tensor)
