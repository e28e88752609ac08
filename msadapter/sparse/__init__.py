"""torch.sparse: tensors that store only some of their elements, and functions of them."""

from __future__ import annotations

from .._errors import unsupported
from .._host import extensions
from .._values.dtype import ALL
from ..ops._declare import t
from . import _conversion
from ._base import SparseTensor, give_to_leaves, stored_in
from ._checks import title
from ._compressed import CompressedTensor
from ._construct import (  # noqa: F401  (torch has the private names too)
    _validate_sparse_bsc_tensor_args,
    _validate_sparse_bsr_tensor_args,
    _validate_sparse_compressed_tensor_args,
    _validate_sparse_coo_tensor_args,
    _validate_sparse_csc_tensor_args,
    _validate_sparse_csr_tensor_args,
    check_sparse_tensor_invariants,
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from ._coo import coo
from ._coo import sparse_mask as dense_sparse_mask
from ._mkldnn import to_mkldnn as dense_to_mkldnn
from ._products import addmm, mm, smm
from ._products import softmax as _softmax
from ._typed import typed

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]

for _name, _kind in (
    ("Byte", "uint8"),
    ("Char", "int8"),
    ("Short", "int16"),
    ("Int", "int32"),
    ("Long", "int64"),
    ("Half", "float16"),
    ("BFloat16", "bfloat16"),
    ("Float", "float32"),
    ("Double", "float64"),
):
    globals()[f"{_name}Tensor"] = typed(f"{_name}Tensor", ALL[_kind])

extensions.sparse_gradients.provide((SparseTensor, give_to_leaves))

# What extensions.sparse_conversion gives to the lower layers.
CONVERSIONS = {
    "zeros": _conversion.zeros,
    "to_sparse": _conversion.to_sparse,
    "to_sparse_coo": _conversion.to_sparse,
    "to_sparse_csr": _conversion.to_sparse_csr,
    "to_sparse_csc": _conversion.to_sparse_csc,
    "to_sparse_bsr": _conversion.to_sparse_bsr,
    "to_sparse_bsc": _conversion.to_sparse_bsc,
    "sparse_mask": dense_sparse_mask,
    "to_mkldnn": dense_to_mkldnn,
}


def sum(input, dim=None, dtype=None):
    """Return the sum of a sparse tensor.

    A sum over some dims is sparse if a sparse dim is left, and dense otherwise.
    """
    return t.sum(input, dtype=dtype) if dim is None else t.sum(input, dim, dtype=dtype)


def softmax(input, dim, *, dtype=None):
    """softmax along ``dim`` over the stored values."""
    return _softmax(input, dim, dtype=dtype)


def log_softmax(input, dim, *, dtype=None):
    """The logarithm of `softmax`."""
    return _softmax(input, dim, dtype=dtype, log=True)


def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """Return alpha * (mat1 @ mat2) + beta * input at the stored positions of ``input``, a csr matrix.

    ``out``: a csr matrix that gets the result.
    """
    if out is not None and out.layout._name != "sparse_csr":
        raise RuntimeError(
            f"sampled_addmm: Expected result to have sparse csr layout, but got {title(out.layout._name)}"
        )
    if not isinstance(input, CompressedTensor) or input.layout._name != "sparse_csr":
        raise RuntimeError(f"Expected input to have sparse csr layout, but got {title(input.layout._name)}")
    batch, rows, columns = input._lines()
    left = mat1.reshape(-1, *mat1.shape[-2:])[(batch, rows)]
    right = mat2.mT.reshape(-1, *mat2.mT.shape[-2:])[(batch, columns)]
    found = (left * right).sum(-1).reshape(input._v.shape)
    result = input._with(found * alpha + input._v * beta)
    return result if out is None else stored_in(out, result)


def spdiags(diagonals, offsets, shape, layout=None):
    """Return a matrix of ``shape`` whose diagonals ``offsets`` are the rows of ``diagonals``."""
    if diagonals.ndim == 1:
        diagonals = diagonals.unsqueeze(0)
    offsets = offsets.reshape(-1)
    if len(offsets) != diagonals.shape[0]:
        raise RuntimeError(
            f"Number of diagonals ({diagonals.shape[0]}) does not match the number of offsets ({len(offsets)})"
        )
    if len(offsets.unique()) != len(offsets):
        raise RuntimeError("Offset tensor contains duplicate values")
    width = min(diagonals.shape[1], shape[1])
    columns = t.arange(width).expand(len(offsets), width)
    rows = columns - offsets.unsqueeze(-1)
    inside = ((rows >= 0) & (rows < shape[0])).reshape(-1)
    indices = t.stack([rows.reshape(-1)[inside], columns.reshape(-1)[inside]])
    made = coo(indices, diagonals[:, :width].reshape(-1)[inside], tuple(shape), False)
    return made if layout is None else _conversion.convert(made, layout._name)


def as_sparse_gradcheck(gradcheck):
    """Not supported: raises NotImplementedError.

    In PyTorch it is a gradcheck for functions of sparse tensors.
    """
    raise unsupported("torch.sparse.as_sparse_gradcheck")


def solve(*args, **kwargs):
    """Not supported: raises NotImplementedError, like a PyTorch that was built without cuDSS."""
    raise unsupported("torch.sparse.solve")


def to_sparse_semi_structured(original_tensor, transposed=False):
    """Not supported: raises NotImplementedError.

    This layout keeps two of four values, for GPU tensor cores.
    """
    raise unsupported("torch.sparse.to_sparse_semi_structured")
