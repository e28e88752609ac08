"""Conversions between dense tensors and the sparse layouts, and sparse tensors of a size that store nothing."""

from __future__ import annotations

from .._values.layout import LAYOUTS
from ..ops._declare import t
from ._base import SparseTensor
from ._checks import BLOCKED, check_conversion, conversion_name, title
from ._compressed import CompressedTensor, from_coo, from_dense, without_elements
from ._coo import _INT, CooTensor, coo, dense_to_coo

_COO, _LAYOUT = LAYOUTS["sparse_coo"], type(LAYOUTS["sparse_coo"])


def convert(tensor, name: str, blocksize=None, dense_dim=None, what: str = "to_sparse"):
    """Convert a tensor of any layout to the layout ``name``. A tensor that has it already is returned itself.

    Args:
        dense_dim: how many of the last dims of a dense tensor belong to each stored element.
        what: the name of the method, for errors.

    Raises:
        RuntimeError: PyTorch does not have this conversion, or the arguments do not fit it.
    """
    if name == "strided":
        return tensor.to_dense()
    if isinstance(blocksize, int):
        blocksize = (blocksize, blocksize)
    blocksize = None if blocksize is None else tuple(blocksize)
    what = conversion_name(what, tensor)
    check_conversion(what, tensor, name, blocksize, dense_dim)
    if isinstance(tensor, CompressedTensor):
        return _from_compressed(what, tensor, name, blocksize)
    if isinstance(tensor, CooTensor):
        return tensor if name == "sparse_coo" else _from_coo(what, tensor, name, blocksize)
    if name == "sparse_coo":
        return dense_to_coo(tensor, None if dense_dim is None else tensor.ndim - dense_dim)
    _check_matrices(what, tensor, name, blocksize, dense_dim or 0)
    return from_dense(tensor, name, blocksize, dense_dim or 0)


def _from_compressed(what: str, tensor, name: str, blocksize):
    if tensor._batch() and not tensor._blocked() and name in BLOCKED:
        raise RuntimeError(
            f"{what}: conversion from {title(tensor._layout_name)} to {title(name)} for batched inputs is not supported"
        )
    if blocksize is not None:
        if tensor._blocked() and blocksize != tensor._block():
            raise RuntimeError(
                f"{what}: conversion from {title(tensor._layout_name)} to {title(name)} with blocksize changed from "
                f"{list(tensor._block())} to {list(blocksize)} is not supported"
            )
        _check_blocks(name, tensor.shape[len(tensor._batch()) :], blocksize)
    return tensor._to(name, blocksize)


def _from_coo(what: str, tensor, name: str, blocksize):
    if tensor.sparse_dim() != 2:
        raise RuntimeError(
            f"{what}: conversion from Sparse to {title(name)} for input tensors with sparse_dim()!=2 is not supported"
        )
    if blocksize is not None:
        _check_blocks(name, tensor.shape, blocksize)
    return from_coo(tensor.coalesce(), name, blocksize)


def _check_matrices(what: str, dense, name: str, blocksize, dense_dim: int) -> None:
    count = dense.ndim - 2 - dense_dim
    if dense.ndim < 2:
        # The text of PyTorch's select, which looks for the two dims of the matrix.
        raise IndexError(
            f"select(): index 1 out of range for tensor of size {[*dense.shape, 1]} at dimension 1"
        )
    if dense_dim < 0 or count < 0:
        raise RuntimeError(
            f"{what}: dense_dim argument must be in [0,{dense.ndim - 2}] range, but {dense_dim} is given"
        )
    if 0 in dense.shape[:count]:
        raise RuntimeError(f"to_{name}: Expected product of batch dimensions to be non-zero.")
    if blocksize is not None:
        _check_blocks(name, dense.shape[count:], blocksize)


def _check_blocks(name: str, size, blocksize) -> None:
    if any(n % b for n, b in zip(size[:2], blocksize, strict=True)):
        raise RuntimeError(
            f"dense_to_sparse_{name[-3:]}: tensor sparse size ({size[0]},{size[1]}) must be divisible by given blocksize "
            f"({blocksize[0]},{blocksize[1]})"
        )


def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """Convert to coordinates with ``sparse_dim`` sparse dims, or to ``layout``."""
    if isinstance(sparse_dim, _LAYOUT):
        sparse_dim, layout = None, sparse_dim
    if sparse_dim is None:
        return convert(self, (layout or _COO)._name, blocksize, dense_dim)
    if isinstance(self, CompressedTensor):
        if sparse_dim != 2:
            raise RuntimeError(
                f"sparse_compressed_to_sparse: conversion from {title(self._layout_name)} to Sparse with sparse_dim argument !=2 "
                "is not supported"
            )
        return self._coo()
    if not isinstance(self, CooTensor):
        return dense_to_coo(self, sparse_dim)
    if sparse_dim != self.sparse_dim():
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    return self


def to_sparse_csr(self, dense_dim=None):
    return convert(self, "sparse_csr", None, dense_dim, "to_sparse_csr")


def to_sparse_csc(self, dense_dim=None):
    return convert(self, "sparse_csc", None, dense_dim, "to_sparse_csc")


def to_sparse_bsr(self, blocksize, dense_dim=None):
    return convert(self, "sparse_bsr", blocksize, dense_dim, "to_sparse_bsr")


def to_sparse_bsc(self, blocksize, dense_dim=None):
    return convert(self, "sparse_bsc", blocksize, dense_dim, "to_sparse_bsc")


def zeros(size, layout, dtype=None, device=None, requires_grad=False, function="empty"):
    """Return a tensor of a sparse layout that stores nothing, for a function whose name errors tell.

    Raises:
        RuntimeError: it is a layout of blocks, whose size nothing says here.
    """
    size, name = tuple(size), layout._name
    nothing = t.zeros([0], dtype=dtype, device=device).requires_grad_(requires_grad)
    if name == "sparse_coo":
        return coo(t.zeros([len(size), 0], dtype=_INT, device=nothing.device), nothing, size, True)
    if name in ("sparse_csr", "sparse_csc"):
        return without_elements(name, size, nothing, function)
    raise RuntimeError(
        f"{function}_sparse_compressed expected sparse compressed (non-block) tensor layout but got {title(name)}"
    )


def zeros_as(tensor, name: str, dtype, device, requires_grad: bool):
    """Return a tensor of the sparse layout ``name`` that stores nothing, with the shape and the blocks of a sparse tensor."""
    size = tuple(tensor.shape)
    sparse = len(size) - tensor.dense_dim()
    nothing = t.zeros([0, *size[sparse:]], dtype=dtype or tensor.dtype, device=device or tensor.device)
    indices = t.zeros([sparse, 0], dtype=_INT, device=nothing.device)
    made = coo(indices, nothing, size, True)
    if name != "sparse_coo":
        made = from_coo(made, name, tensor._block() if name in BLOCKED else None)
    return made.requires_grad_(requires_grad)


SparseTensor.to_sparse = SparseTensor.to_sparse_coo = to_sparse
for _function in (to_sparse_csr, to_sparse_csc, to_sparse_bsr, to_sparse_bsc):
    setattr(SparseTensor, _function.__name__, _function)
