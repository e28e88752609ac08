"""Sparse tensors in the coordinate layout: indices (sparse dims, nnz) and values (nnz, *dense sizes)."""

from __future__ import annotations

from .._values.dtype import ALL
from ..ops._declare import t
from ..tensor import Size, Tensor
from ._base import SparseTensor, check_inside, check_masked_gradient

_INT, _BYTE = ALL["int64"], ALL["int8"]


def coo(indices, values, size, coalesced: bool) -> CooTensor:
    """Return the tensor with these parts, without checks."""
    made = CooTensor._shaped(size, values)
    made.__dict__["_i"] = indices
    made.__dict__["_sorted"] = coalesced or values.shape[0] < 2
    return made


def keys(indices, size):
    """Return one number for each column of indices: its position in the sparse dims, row by row."""
    out, step = t.zeros([indices.shape[1]], dtype=_INT, device=indices.device), 1
    for dim in reversed(range(indices.shape[0])):
        out = out + indices[dim] * step
        step *= size[dim]
    return out


def places(numbers, size):
    """Return the indices (len(size), n) for such numbers. This is the inverse of ``keys``."""
    rows = []
    for n in reversed(size):
        rows.append(t.remainder(numbers, max(n, 1)))
        numbers = t.div(numbers, max(n, 1), rounding_mode="floor")
    return t.stack(rows[::-1]) if rows else t.zeros([0, numbers.shape[0]], dtype=_INT, device=numbers.device)


def gathered(values, group, count: int):
    """Return the sum of the values in each group, (count, ...). Bool values are combined with "or"."""
    if values.dtype.name == "bool":
        return gathered(values.to(_BYTE), group, count) != 0
    return t.index_add(
        t.zeros([count, *values.shape[1:]], dtype=values.dtype, device=values.device), 0, group, values
    )


def product(numbers) -> int:
    out = 1
    for n in numbers:
        out *= n
    return out


class CooTensor(SparseTensor):
    """A tensor with the layout torch.sparse_coo."""

    _layout_name = "sparse_coo"

    def _with(self, values, size=None):
        return coo(self._i, values, tuple(self.shape) if size is None else size, self._sorted)

    def clone(self, *, memory_format=None):
        return super().clone(memory_format=memory_format)._coalesced_(self._sorted)

    def _parts(self):
        return [("indices", self._i), ("values", self._v)]

    def _take(self, other):
        """Replace this tensor's parts by those of ``other``, which has the same shape."""
        self.__dict__.update(_i=other._i, _v=other._v, _sorted=other._sorted)
        return self._written()

    def _check(self) -> None:
        """RuntimeError unless the indices lie within the size, and in order if the tensor says so."""
        size = self._sparse_size()
        check_inside(self._i, size)
        if self._sorted and self._nnz() > 1 and not _in_order(self._i):
            raise RuntimeError(
                "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
            )

    def sparse_dim(self) -> int:
        return self._i.shape[0]

    def dense_dim(self) -> int:
        return self._v.ndim - 1

    _dimI, _dimV = sparse_dim, dense_dim

    def _indices(self):
        return self._i

    def _values(self):
        return self._v.detach()

    def is_coalesced(self) -> bool:
        return self._sorted

    def _coalesced_(self, coalesced: bool):
        self.__dict__["_sorted"] = coalesced
        return self

    def indices(self):
        """Return the indices (sparse dims, nnz). RuntimeError if the tensor is not coalesced."""
        self._require_coalesced("indices")
        return self._i

    def values(self):
        """Return the values (nnz, *dense sizes) with their graph.

        RuntimeError if the tensor is not coalesced.
        """
        self._require_coalesced("values")
        return self._v

    def _require_coalesced(self, what: str) -> None:
        if not self._sorted:
            raise RuntimeError(f"Cannot get {what} on an uncoalesced tensor, please call .coalesce() first")

    def _sparse_size(self) -> tuple:
        return tuple(self.shape)[: self.sparse_dim()]

    def coalesce(self):
        """Return a tensor with sorted, unique indices. Values with the same index are added up."""
        if self._sorted:
            return self
        size = self._sparse_size()
        unique, group = t.unique(keys(self._i, size), return_inverse=True)
        return coo(places(unique, size), gathered(self._v, group, len(unique)), tuple(self.shape), True)

    def to_dense(self, dtype=None, *, masked_grad=None):
        """Return the dense tensor. Values with the same index are added up.

        Raises:
            IndexError: an index is outside of the size.
        """
        check_masked_gradient(self, masked_grad)
        size, values = self._sparse_size(), self._v if dtype is None else self._v.to(dtype)
        if self._i.numel() and (
            int(self._i.min()) < 0
            or any(m >= n for m, n in zip(self._i.max(1)[0].tolist(), size, strict=True))
        ):
            raise IndexError("index out of range in self")
        return gathered(values, keys(self._i, size), product(size)).reshape(tuple(self.shape))

    def _looked_up(self, numbers):
        """Return (values at these keys, whether they are stored). The tensor must be coalesced."""
        own = keys(self._i, self._sparse_size())
        if not len(own):
            return t.zeros([len(numbers), *self._v.shape[1:]], dtype=self.dtype), numbers != numbers
        at = t.searchsorted(own, numbers).clamp(max=len(own) - 1)
        there = own[at] == numbers
        shape = (-1,) + (1,) * self.dense_dim()
        return t.index_select(self._v, 0, at) * there.reshape(shape), there

    def _as_gradient(self, values):
        """Return the gradient of this tensor, given that of its values. Values with the same index have the same gradient."""
        if self._sorted:
            return self._with(values)
        size = self._sparse_size()
        unique, group = t.unique(keys(self._i, size), return_inverse=True)
        one = t.zeros([len(unique)], dtype=_INT, device=group.device)
        one = t.scatter(one, 0, group, t.arange(len(group), device=group.device))
        return coo(places(unique, size), t.index_select(values, 0, one), tuple(self.shape), True)

    def _aligned(self, other):
        if self._i is other._i and self._sorted:
            return self._v
        return self.coalesce()._looked_up(keys(other._i, other._sparse_size()))[0]

    def sparse_mask(self, mask):
        """Return the values at the positions of ``mask``, with zeros where nothing is stored."""
        _same_shape(self, mask, "sparse_mask")
        mask = mask.coalesce()
        found, _ = self.coalesce()._looked_up(keys(mask._i, mask._sparse_size()))
        return coo(mask._i, found, tuple(self.shape), True)

    def sparse_resize_(self, size, sparse_dim, dense_dim):
        """Change the shape in place and keep the values."""
        if (sparse_dim, dense_dim) != (self.sparse_dim(), self.dense_dim()) and self._nnz():
            raise RuntimeError(
                "changing the number of sparse dimensions on a non-empty sparse tensor is not supported."
            )
        if self._nnz() and any(n < m for n, m in zip(size, self.shape, strict=True)):
            raise RuntimeError(
                "shrinking the size of sparse dimensions on a non-empty sparse tensor is not supported."
            )
        return _reshaped(self, self._i, self._v, tuple(size))

    def sparse_resize_and_clear_(self, size, sparse_dim, dense_dim):
        """Change the shape in place and remove the values."""
        size = tuple(size)
        empty = t.zeros([0, *size[sparse_dim:]], dtype=self.dtype, device=self.device)
        return _reshaped(self, t.zeros([sparse_dim, 0], dtype=_INT), empty, size)

    def new_empty(self, *size, **options):
        return self.new_zeros(*size, **options)

    def new_zeros(self, *size, dtype=None, device=None, requires_grad=False):
        size = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
        values = t.zeros([0], dtype=dtype or self.dtype, device=device or self.device).requires_grad_(
            requires_grad
        )
        return coo(t.zeros([len(size), 0], dtype=_INT), values, size, True)


def _reshaped(self, indices, values, size):
    """Give ``self`` another shape, in place."""
    self.__dict__["_extent"] = Size(size)
    return self._take(coo(indices, values, size, self._sorted))


def _same_shape(a, b, name: str) -> None:
    if tuple(a.shape) != tuple(b.shape):
        raise RuntimeError(
            f"{name}(): operands have incompatible sizes; self has size {list(a.shape)} but mask has size {list(b.shape)}"
        )


CooTensor.__name__ = CooTensor.__qualname__ = "Tensor"
CooTensor.__module__ = "torch"


def dense_to_coo(dense, sparse_dim=None) -> CooTensor:
    """Return a sparse tensor of the nonzero elements, or of the nonzero slices if there are fewer sparse
    dims.
    """
    dims = dense.ndim if sparse_dim is None else sparse_dim
    if not 0 <= dims <= dense.ndim:
        raise RuntimeError(
            f"to_sparse: sparse_dim argument must be in >=0 and <={dense.ndim}, but got {dims}"
        )
    found = dense.detach() != 0
    for _ in range(dense.ndim - dims):
        found = found.any(-1)
    indices = t.nonzero(found).t().contiguous() if dims else t.zeros([0, 1], dtype=_INT)
    values = dense[tuple(indices)] if dims else dense.unsqueeze(0)
    return coo(indices, values, tuple(dense.shape), True)


def sparse_mask(self, mask):
    """Return the elements of a dense tensor at the positions of a sparse one."""
    _same_shape(self, mask, "sparse_mask")
    if isinstance(mask, CooTensor):
        return mask._with(self[tuple(mask._i)])
    return mask._with_elements(self)


def is_coo(x) -> bool:
    return isinstance(x, CooTensor)


def is_dense(x) -> bool:
    return isinstance(x, Tensor) and not isinstance(x, SparseTensor)


def _in_order(indices) -> bool:
    """Whether every column of indices is greater than the one before it."""
    rising = t.zeros([indices.shape[1] - 1], dtype=ALL["bool"])
    same = t.logical_not(rising)
    for row in indices.unbind(0):
        rising = t.logical_or(rising, t.logical_and(same, row[1:] > row[:-1]))
        same = t.logical_and(same, row[1:] == row[:-1])
    return bool(rising.all())
