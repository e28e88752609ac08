"""Products of matrices of which some are sparse, and softmax."""

from __future__ import annotations

from ..ops._declare import t
from ..ops._geometry import wrap_dim
from ..tensor._rare_methods import not_for
from ._base import SparseTensor, operator
from ._checks import title
from ._compressed import CompressedTensor
from ._coo import coo, gathered, is_coo, is_dense, keys
from ._operators import in_layout_of, select, transposed


def _coordinates(x):
    return x._coo() if isinstance(x, CompressedTensor) else x


def _check_mm(a, b) -> None:
    if a.ndim != 2 or b.ndim != 2:
        raise RuntimeError(f"mm: Expected 2D matrices, but got {a.ndim}D and {b.ndim}D")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"addmm: Argument #3 (dense): Expected dim 0 size {a.shape[1]}, got {b.shape[0]}")


def _sparse_dense(a, b):
    """Multiply (n, m) coordinates by (m, k) dense: add value * row of b to the row of the value's index."""
    rows = t.index_select(b, 0, a._i[1]) * a._v.unsqueeze(-1)
    return gathered(rows, a._i[0], a.shape[0])


def _sparse_sparse(a, b):
    """Multiply two coordinate matrices.

    Each value of a is multiplied by all values of b in the row that equals the value's column.
    """
    a, b = a.coalesce(), b.coalesce()
    starts = t.searchsorted(b._i[0].contiguous(), t.arange(b.shape[0] + 1))
    first, count = starts[a._i[1]], starts[a._i[1] + 1] - starts[a._i[1]]
    left = t.repeat_interleave(t.arange(a._nnz()), count)
    before = t.cumsum(count, 0) - count
    right = t.arange(len(left)) - before[left] + first[left]
    indices = t.stack([a._i[0][left], b._i[1][right]])
    values = t.index_select(a._v, 0, left) * t.index_select(b._v, 0, right)
    return coo(indices, values, (a.shape[0], b.shape[1]), False).coalesce()


@operator("mm", "_sparse_mm", "spmm")
def _mm(self, mat2):
    """Return the product of two matrices, of which one is sparse.

    The product of two sparse ones is sparse.
    """
    _check_mm(self, mat2)
    a, b = _coordinates(self), _coordinates(mat2)
    if is_coo(a) and is_coo(b):
        found = _sparse_sparse(a, b)
        return in_layout_of(found, self) if isinstance(self, CompressedTensor) else found
    if is_coo(a):
        return _sparse_dense(a, b)
    return _sparse_dense(transposed(b), a.t()).t()


_REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def mm(sparse, dense, reduce=None):
    """Return the product of two matrices of which one is sparse, torch.sparse.mm.

    reduce: how the products of an element are combined, sum, mean, amax or amin. Then `sparse` is (n, m) in the layout csr,
        `dense` (m, k), and an element to which nothing is stored is zero. By default, products are added, in all layouts.

    Raises:
        NotImplementedError: there is such a product for the layout csr and for floating point numbers only.
        RuntimeError: a reduction, layout, shape or dtype that PyTorch refuses.
    """
    if reduce is None:
        return _mm(sparse, dense)
    _check_reduced(sparse, dense, reduce)
    place, count = _coordinates(sparse)._i, sparse.shape[0]
    rows = place[0]
    products = t.index_select(dense, 0, place[1]) * sparse._v.unsqueeze(-1)
    if reduce == "sum":
        return gathered(products, rows, count)
    if reduce == "mean":
        stored = t.bincount(rows, minlength=count).clamp(min=1)
        return gathered(products, rows, count) / stored.unsqueeze(-1).to(products.dtype)
    return _extremes(products, rows, count, reduce)


def _extremes(products, rows, count: int, reduce: str):
    """Return the largest or smallest product of each group of rows, (count, k). The first of equal ones gets the gradient."""
    stored = len(rows)
    empty = t.zeros([count, products.shape[1]], dtype=products.dtype, device=products.device)
    if not stored or not products.numel():
        return empty
    values = products.detach()
    found = t.index_reduce(empty, 0, rows, values, reduce, include_self=False)[rows]
    chosen = (values == found) | (values != values)  # nan is not equal to itself
    place = t.where(chosen, t.arange(stored, device=products.device).unsqueeze(-1), stored)
    none = t.full([count, products.shape[1]], stored, dtype=place.dtype, device=products.device)
    first = t.index_reduce(none, 0, rows, place, "amin", include_self=False)
    return t.where(first < stored, t.gather(products, 0, first.clamp(max=stored - 1)), empty)


def _check_reduced(sparse, dense, reduce) -> None:
    if reduce not in _REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either {', '.join(_REDUCTIONS[:-1])} or amin, got {reduce}"
        )
    if not isinstance(sparse, CompressedTensor):
        raise not_for(sparse, "_sparse_mm_reduce_impl")
    if sparse._layout_name != "sparse_csr":
        raise RuntimeError(f"sparse_mm_reduce: expect self to be SparseCsr, got {title(sparse._layout_name)}")
    if not is_dense(dense):
        raise RuntimeError(
            f"Expected tensor to have Strided Layout, but got tensor with {title(dense._layout_name)} Layout (while checking "
            "arguments for sparse_mm_reduce)"
        )
    if dense.ndim != 2 or dense.shape[0] != sparse.shape[1]:
        raise RuntimeError(
            f"Expected a tensor of dimension 2 and tensor.size[0] == {sparse.shape[1]} but got: dimension {dense.ndim} and "
            f"tensor.size[0] = {dense.shape[0]}"
        )
    if sparse.dtype is not dense.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'other' to have scalar type {sparse.dtype.scalar_name}; but got "
            f"torch.{dense.dtype.scalar_name}Tensor instead (while checking arguments for sparse_mm_reduce)"
        )
    if not dense.is_floating_point():
        raise NotImplementedError(f"\"spmm_reduce_kernel\" not implemented for '{dense.dtype.scalar_name}'")
    if reduce == "prod":
        raise RuntimeError("sparse_mm_reduce: reduce type of prod has not been enabled.")


@operator("mv")
def _mv(self, vec):
    return _mm(self, vec.unsqueeze(-1)).squeeze(-1)


@operator("matmul", "__rmatmul__")
def _matmul(self, other):
    if other.ndim == 1 and is_dense(other):
        return _mv(self, other)
    if self.ndim == 1 and is_dense(self):
        return _mm(self.unsqueeze(0), other).squeeze(0)
    return _bmm(self, other) if self.ndim == 3 else _mm(self, other)


@operator("bmm")
def _bmm(self, mat2):
    if not is_coo(self) or not is_dense(mat2) or self.ndim != 3:
        raise not_for(mat2 if isinstance(mat2, SparseTensor) else self, "bmm")
    return t.stack([_mm(select(self, 0, i), mat2[i]) for i in range(self.shape[0])])


@operator("addmm", "_sparse_addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """Return beta * self + alpha * (mat1 @ mat2)."""
    product = _mm(mat1, mat2)
    if isinstance(product, SparseTensor) != isinstance(self, SparseTensor):
        raise RuntimeError("addmm: the product and what it is added to must both be sparse or both be dense")
    scaled = product * alpha if alpha != 1 else product
    return (self * beta if beta != 1 else self) + scaled


@operator("smm")
def smm(self, mat):
    """Return the product of a sparse and a dense matrix as a sparse tensor that stores all elements."""
    found = _mm(self, mat)
    n, k = found.shape
    rows = t.stack([t.arange(n).repeat_interleave(k), t.arange(k).repeat(n)])
    return coo(rows, found.reshape(-1), (n, k), False)


@operator("linear")
def _linear(input, weight, bias=None):
    found = _matmul(input, transposed(weight) if isinstance(weight, SparseTensor) else weight.t())
    return found if bias is None else found + bias


# ---- softmax over what is there
def softmax(input, dim, *, dtype=None, log: bool = False):
    """softmax of the values along ``dim``. Elements that are not stored count as minus infinity."""
    self = input.coalesce() if dtype is None else input.to(dtype).coalesce()
    dim, sparse = wrap_dim(dim, self.ndim), self.sparse_dim()
    if dim >= sparse:
        return self._with((t.log_softmax if log else t.softmax)(self._v, dim - sparse + 1))
    others = [d for d in range(sparse) if d != dim]
    numbers = keys(self._i[others], [self.shape[d] for d in others]) if others else t.zeros_like(self._i[dim])
    group = t.unique(numbers, return_inverse=True)[1]
    count = int(group.max()) + 1 if len(group) else 0
    lowest = t.full([count, *self._v.shape[1:]], float("-inf"), dtype=self.dtype)
    top = t.index_reduce(lowest, 0, group, self._v.detach(), "amax")
    shifted = self._v - t.index_select(top, 0, group)
    powers = t.exp(shifted)
    sums = t.index_select(gathered(powers, group, count), 0, group)
    return self._with(shifted - t.log(sums) if log else powers / sums)
