"""Compressed tensors: csr and csc, and bsr and bsc, whose values are blocks. All may be batches of matrices.

A "line" is a row in csr and bsr, and a column in csc and bsc. Every matrix of a batch has the same number of values.
"""

from __future__ import annotations

from .._values.layout import FORMATS
from ..ops._declare import t
from ..tensor._rare_methods import not_for
from ._base import SparseTensor, check_masked_gradient
from ._checks import BLOCKED, ROWS, check_parts, index_names
from ._coo import _INT, coo, keys, places, product

KINDS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_FLIPPED = {
    "sparse_csr": "sparse_csc",
    "sparse_csc": "sparse_csr",
    "sparse_bsr": "sparse_bsc",
    "sparse_bsc": "sparse_bsr",
}


class CompressedTensor(SparseTensor):
    """Base class of the four layouts.

    Attributes:
        _outer: the positions at which lines begin (*batch, lines + 1).
        _inner: the place of each value in its line (*batch, nnz).
        _v: the values (*batch, nnz, *block, *dense sizes), without block in csr and csc.
    """

    def _rows(self) -> bool:
        """Return whether lines are rows."""
        return self._layout_name in ROWS

    def _blocked(self) -> bool:
        return self._layout_name in BLOCKED

    def _batch(self) -> tuple:
        """Return the sizes of the batch dims."""
        return tuple(self._outer.shape[:-1])

    def _block(self) -> tuple:
        at = self._outer.ndim
        return tuple(self._v.shape[at : at + 2]) if self._blocked() else (1, 1)

    def _with(self, values, size=None):
        return compressed(
            self._layout_name, self._outer, self._inner, values, tuple(self.shape) if size is None else size
        )

    def _take(self, other):
        self.__dict__.update(_outer=other._outer, _inner=other._inner, _v=other._v)
        return self._written()

    def _parts(self):
        first, second = index_names(self._layout_name)
        return [(first, self._outer), (second, self._inner), ("values", self._v)]

    def _nnz(self) -> int:
        return self._inner.shape[-1]

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self.ndim - 2 - len(self._batch())

    def values(self):
        return self._v

    def _values(self):
        return self._v.detach()

    def _lines(self):
        """Return three flat tensors: the batch, the row and the column of each value, or of its block."""
        ends = self._outer.reshape(product(self._batch()), -1).long()
        count = max(ends.shape[1] - 1, 1)
        steps = (ends[:, 1:] - ends[:, :-1]).reshape(-1)
        number = t.repeat_interleave(t.arange(len(steps), device=ends.device), steps)
        batch, line, inner = number // count, number % count, self._inner.reshape(-1).long()
        return (batch, line, inner) if self._rows() else (batch, inner, line)

    def _check(self) -> None:
        """Raise RuntimeError if the parts do not fit each other, or are not valid indices."""
        check_parts(self._layout_name, self._outer, self._inner, self._v, tuple(self.shape))

    def _coo(self):
        """Return the same tensor in the coordinate layout, whose first dims are those of the batch."""
        batch, rows, columns = self._lines()
        height, width = self._block()
        count = len(rows)
        values = self._v.reshape(count, *self._v.shape[self._outer.ndim :])
        if self._blocked():
            inside = t.arange(height * width, device=rows.device)
            rows = (rows.reshape(-1, 1) * height + inside // max(width, 1)).reshape(-1)
            columns = (columns.reshape(-1, 1) * width + inside % max(width, 1)).reshape(-1)
            batch = batch.reshape(-1, 1).expand(count, height * width).reshape(-1)
            values = values.reshape(count * height * width, *values.shape[3:])
        indices = t.cat([places(batch, self._batch()), t.stack([rows, columns])])
        found = coo(indices, values, tuple(self.shape), False)
        if self._layout_name == "sparse_csr" and _ordered(found):
            return found._coalesced_(True)
        return found.coalesce()

    def _with_elements(self, dense):
        """Return a tensor with the positions of this one and the elements of a dense tensor."""
        batch, rows, columns = self._lines()
        count = len(self._batch())
        tiles = _tiles(dense, self._block(), count) if self._blocked() else dense
        tiles = tiles.reshape(product(self._batch()), *tiles.shape[count:])
        return self._with(tiles[(batch, rows, columns)].reshape(self._v.shape))

    def _aligned(self, other):
        same = self._inner is other._inner and self._outer is other._outer
        if same or (t.equal(self._outer, other._outer) and t.equal(self._inner, other._inner)):
            return self._v
        return other._with_elements(self.to_dense())._v

    def to_dense(self, dtype=None, *, masked_grad=None):
        check_masked_gradient(self, masked_grad)
        return self._coo().to_dense(dtype)

    def _to(self, name: str, blocksize=None):
        """Convert to another layout. The indices keep their dtype in the compressed ones."""
        if name == self._layout_name and blocksize in (None, self._block()):
            return self
        found = self._coo()
        if name in BLOCKED and blocksize is None and self._blocked():
            blocksize = self._block()
        return found if name == "sparse_coo" else from_coo(found, name, blocksize, self._outer.dtype)

    def _transposed(self):
        """Return the transposed matrices, which have the same numbers in the other layout."""
        at = self._outer.ndim
        values = self._v.transpose(at, at + 1) if self._blocked() else self._v
        *batch, n, m = self.shape[: at + 1]
        size = (*batch, m, n, *self.shape[at + 1 :])
        return compressed(_FLIPPED[self._layout_name], self._outer, self._inner, values, size)

    def _of_batch(self, dim: int, index: int):
        """Return one element of a batch dim."""
        parts = (part.select(dim, index) for part in (self._outer, self._inner, self._v))
        size = tuple(n for d, n in enumerate(self.shape) if d != dim)
        return compressed(self._layout_name, *parts, size)


def _ordered(found) -> bool:
    numbers = keys(found._i, found._sparse_size())
    return len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all())


_classes = {}
for _kind in KINDS:
    _classes[_kind] = type(CompressedTensor)(
        "Tensor",
        (CompressedTensor,),
        {"_layout_name": _kind, "__module__": "torch", "__doc__": f"layout torch.{_kind}."},
    )
    _first, _second = index_names(_kind)
    setattr(_classes[_kind], _first, lambda self: self._outer)
    setattr(_classes[_kind], _second, lambda self: self._inner)


def compressed(name: str, outer, inner, values, size) -> CompressedTensor:
    """Return the tensor with these parts, without checks."""
    made = _classes[name]._shaped(size, values)
    made.__dict__.update(_outer=outer, _inner=inner)
    return made


def without_elements(name: str, size, values, function: str) -> CompressedTensor:
    """Return a csr or csc tensor of a size that stores nothing. ``values`` is empty and gives the dtype and the device."""
    if len(size) < 2:
        raise RuntimeError(
            f"torch.{function}: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}"
        )
    *batch, n, m = size
    lines = n if name == "sparse_csr" else m
    outer = t.zeros([*batch, lines + 1], dtype=_INT, device=values.device)
    inner = t.zeros([*batch, 0], dtype=_INT, device=values.device)
    return compressed(name, outer, inner, values.reshape(*batch, 0), tuple(size))


def _tiles(dense, block, count: int):
    """Return the blocks of a dense tensor with ``count`` batch dims: (*batch, rows, columns of blocks, *block, *dense sizes)."""
    n, m = dense.shape[count : count + 2]
    height, width = block
    rest = dense.shape[count + 2 :]
    split = dense.reshape(*dense.shape[:count], n // height, height, m // width, width, *rest)
    return split.transpose(count + 1, count + 2)


def from_dense(dense, name: str, blocksize=None, dense_dim: int = 0) -> CompressedTensor:
    """Convert a dense tensor: a matrix or a batch of matrices, whose elements have the last ``dense_dim`` dims."""
    count = dense.ndim - 2 - dense_dim
    batch, blocked = tuple(dense.shape[:count]), name in BLOCKED
    tiles = _tiles(dense, blocksize, count) if blocked else dense
    tiles = tiles.reshape(product(batch), *tiles.shape[count:])
    stored = tiles.detach() != 0
    for _ in range(stored.ndim - 3):
        stored = stored.any(-1)
    by_columns = name not in ROWS
    at = t.nonzero(stored.transpose(1, 2) if by_columns else stored)
    which, line, inner = at[:, 0], at[:, 1], at[:, 2]
    values = tiles[(which, inner, line) if by_columns else (which, line, inner)]
    lines = tiles.shape[2 if by_columns else 1]
    return _gathered(name, tuple(dense.shape), batch, lines, (which * lines + line, inner, values), _INT)


def from_coo(found, name: str, blocksize=None, index_dtype=_INT) -> CompressedTensor:
    """Convert coalesced coordinates. All sparse dims but the last two are those of a batch."""
    count = found.sparse_dim() - 2
    batch, (n, m) = found._sparse_size()[:count], found._sparse_size()[count:]
    which, rows, columns = keys(found._i[:count], batch), found._i[-2], found._i[-1]
    if name in BLOCKED:
        line, inner, lines, values = _blocks(name, which, rows, columns, (n, m), blocksize, found._v)
        return _gathered(name, tuple(found.shape), batch, lines, (line, inner, values), index_dtype)
    values = found._v
    if name == "sparse_csc":
        order = t.argsort((which * m + columns) * n + rows)
        which, rows, columns = which[order], columns[order], rows[order]
        values = t.index_select(values, 0, order)
    lines = n if name == "sparse_csr" else m
    parts = (which * lines + rows, columns.contiguous(), values)
    return _gathered(name, tuple(found.shape), batch, lines, parts, index_dtype)


def _blocks(name: str, which, rows, columns, size, blocksize, values):
    """Put values into blocks, in which elements that are not stored are zero.

    Args:
        which, rows, columns: the matrix of the batch and the place in it of each value.
        size: the sizes of a matrix.

    Returns:
        the number of the line of each block, counted through the batch, its place in the line, the number of lines of a matrix,
        and the blocks.
    """
    (n, m), (height, width) = size, blocksize
    line, other, lines, wide = rows // height, columns // width, n // height, m // width
    if name not in ROWS:
        line, other, lines, wide = other, line, wide, lines
    unique, group = t.unique((which * lines + line) * wide + other, return_inverse=True)
    inside = (rows % height) * width + columns % width
    rest = values.shape[1:]
    empty = t.zeros([len(unique) * height * width, *rest], dtype=values.dtype, device=values.device)
    blocks = t.index_put(empty, [group * (height * width) + inside], values)
    blocks = blocks.reshape(len(unique), height, width, *rest)
    return unique // max(wide, 1), unique % max(wide, 1), lines, blocks


def _gathered(name: str, size, batch, lines: int, parts, index_dtype) -> CompressedTensor:
    """Return the tensor whose values are given in order.

    Args:
        parts: the number of the line of each value, counted through the whole batch, its place in the line, and the values.
    """
    number, inner, values = parts
    count = product(batch)
    steps = t.bincount(number, minlength=count * lines).reshape(count, lines)
    start = t.zeros([count, 1], dtype=_INT, device=number.device)
    ends = t.cat([start, t.cumsum(steps, 1)], 1)
    nnz = len(inner) // count if count else 0
    if count > 1 and not bool((ends[:, -1] == nnz).all()):
        raise RuntimeError("Expect the same number of specified elements per batch.")
    return compressed(
        name,
        ends.reshape(*batch, lines + 1).to(index_dtype),
        t.clone(inner.reshape(*batch, nnz).to(index_dtype), memory_format=FORMATS["contiguous_format"]),
        values.reshape(*batch, nnz, *values.shape[1:]),
        size,
    )


def transposed_sparse_dims(self, order):
    """Return a permuted tensor, if only the two dims of the matrices change places."""
    at = len(self._batch())
    swapped = list(range(self.ndim))
    swapped[at], swapped[at + 1] = at + 1, at
    if list(order) != swapped:
        raise not_for(self, "permute")
    return self._transposed()
