"""Products of matrices of which some are sparse, and softmax."""

from __future__ import annotations

from ..ops._declare import t
from ..ops._geometry import wrap_dim
from ..tensor._rare_methods import not_for
from ._base import SparseTensor, operator
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
def mm(self, mat2):
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


@operator("mv")
def _mv(self, vec):
    return mm(self, vec.unsqueeze(-1)).squeeze(-1)


@operator("matmul", "__rmatmul__")
def _matmul(self, other):
    if other.ndim == 1 and is_dense(other):
        return _mv(self, other)
    if self.ndim == 1 and is_dense(self):
        return mm(self.unsqueeze(0), other).squeeze(0)
    return _bmm(self, other) if self.ndim == 3 else mm(self, other)


@operator("bmm")
def _bmm(self, mat2):
    if not is_coo(self) or not is_dense(mat2) or self.ndim != 3:
        raise not_for(mat2 if isinstance(mat2, SparseTensor) else self, "bmm")
    return t.stack([mm(select(self, 0, i), mat2[i]) for i in range(self.shape[0])])


@operator("addmm", "_sparse_addmm")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    """Return beta * self + alpha * (mat1 @ mat2)."""
    product = mm(mat1, mat2)
    if isinstance(product, SparseTensor) != isinstance(self, SparseTensor):
        raise RuntimeError("addmm: the product and what it is added to must both be sparse or both be dense")
    scaled = product * alpha if alpha != 1 else product
    return (self * beta if beta != 1 else self) + scaled


@operator("smm")
def smm(self, mat):
    """Return the product of a sparse and a dense matrix as a sparse tensor that stores all elements."""
    found = mm(self, mat)
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
