"""Compressed matrices: csr and csc, and bsr and bsc, whose values are blocks.

A "line" is a row in csr and bsr, and a column in csc and bsc.
"""

from __future__ import annotations

from .._errors import unsupported
from ..ops._declare import t
from ._base import CONVERTERS, SparseTensor
from ._coo import _INT, coo, keys

KINDS = ("sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc")
_FLIPPED = {
    "sparse_csr": "sparse_csc",
    "sparse_csc": "sparse_csr",
    "sparse_bsr": "sparse_bsc",
    "sparse_bsc": "sparse_bsr",
}


class CompressedTensor(SparseTensor):
    """Base class of the four layouts: `_outer` (lines + 1), `_inner` (nnz) and the values."""

    def _rows(self) -> bool:
        """Return whether lines are rows."""
        return self._layout_name in ("sparse_csr", "sparse_bsr")

    def _block(self) -> tuple:
        return tuple(self._v.shape[1:3]) if self._layout_name in ("sparse_bsr", "sparse_bsc") else (1, 1)

    def _with(self, values, size=None):
        return compressed(
            self._layout_name, self._outer, self._inner, values, tuple(self.shape) if size is None else size
        )

    def _take(self, other):
        self.__dict__.update(_outer=other._outer, _inner=other._inner, _v=other._v)
        return self

    def _parts(self):
        names = ("crow_indices", "col_indices") if self._rows() else ("ccol_indices", "row_indices")
        return [(names[0], self._outer), (names[1], self._inner), ("values", self._v)]

    def sparse_dim(self) -> int:
        return 2

    def dense_dim(self) -> int:
        return self._v.ndim - (3 if self._block() != (1, 1) or "bs" in self._layout_name else 1)

    def values(self):
        return self._v

    def _values(self):
        return self._v.detach()

    def _lines(self):
        """Return the line of each value."""
        return t.repeat_interleave(
            t.arange(len(self._outer) - 1), self._outer[1:].long() - self._outer[:-1].long()
        )

    def _check(self) -> None:
        """Raise RuntimeError if the indices are not valid."""
        outer, inner = self._outer, self._inner
        block = self._block()
        dense = tuple(self._v.shape[3 if "bs" in self._layout_name else 1 :])
        if inner.ndim != 1 or self.ndim < 2 or tuple(self.shape[2:]) != dense:
            raise RuntimeError(
                f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (=0 + 2 + {len(dense)}) but "
                f"got size {list(self.shape)}"
            )
        if any(b < 1 or n % b for n, b in zip(self.shape, block, strict=False)):
            raise RuntimeError(f"size {list(self.shape)} must be divisible by the block size {list(block)}")
        shape = [n // b for n, b in zip(self.shape, block, strict=False)]
        lines, width = shape if self._rows() else shape[::-1]
        first, second = ("crow_indices", "col_indices") if self._rows() else ("ccol_indices", "row_indices")
        if len(outer) != lines + 1:
            what = "rows" if self._rows() else "columns"
            raise RuntimeError(
                f"{first}.shape[-1] must be equal to the number of {what} + 1 (={lines + 1}), but got {len(outer)}"
            )
        steps = outer[1:] - outer[:-1]
        if int(outer[0]) != 0:
            raise RuntimeError(f"`{first}[..., 0] == 0` is not satisfied.")
        if int(outer[-1]) != len(inner):
            raise RuntimeError(f"`{first}[..., -1] == nnz` is not satisfied.")
        if lines and (int(steps.min()) < 0 or int(steps.max()) > width):
            raise RuntimeError(f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {width}` is not satisfied.")
        if inner.numel() and (int(inner.min()) < 0 or int(inner.max()) >= width):
            raise RuntimeError(f"`0 <= {second} < {width}` is not satisfied.")

    def _coo(self):
        """Return the same matrix in the coordinate layout."""
        lines, inner, values = self._lines(), self._inner.long(), self._v
        rows, columns = (lines, inner) if self._rows() else (inner, lines)
        height, width = self._block()
        if "bs" in self._layout_name:
            n, each = len(rows), height * width
            inside = t.arange(each)
            rows = (rows.reshape(-1, 1) * height + inside // width).reshape(-1)
            columns = (columns.reshape(-1, 1) * width + inside % width).reshape(-1)
            values = values.reshape(n * each, *values.shape[3:])
        found = coo(t.stack([rows, columns]), values, tuple(self.shape), False)
        return (
            found.coalesce()
            if not (self._layout_name == "sparse_csr" and _ordered(found))
            else found._coalesced_(True)
        )

    def _with_coo_values(self, dense):
        """Return a matrix with the positions of this one and the elements of a dense matrix."""
        lines, inner = self._lines(), self._inner.long()
        if "bs" in self._layout_name:
            raise unsupported("torch.Tensor.sparse_mask", "a mask of blocks is not supported")
        return self._with(dense[(lines, inner) if self._rows() else (inner, lines)])

    def _aligned(self, other):
        if self._inner is other._inner or (
            t.equal(self._outer, other._outer) and t.equal(self._inner, other._inner)
        ):
            return self._v
        return other._with_coo_values(self.to_dense())._v

    def to_dense(self, dtype=None, *, masked_grad=None):
        return self._coo().to_dense(dtype)

    def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
        name = "sparse_coo" if layout is None else layout._name
        if name == self._layout_name and blocksize in (None, self._block()):
            return self
        return (
            self._coo().to_sparse(layout=layout, blocksize=blocksize) if name != "sparse_coo" else self._coo()
        )

    to_sparse_coo = to_sparse

    def _transposed(self):
        """Return the transposed matrix, which has the same numbers in the other layout."""
        values = self._v.transpose(1, 2) if "bs" in self._layout_name else self._v
        return compressed(
            _FLIPPED[self._layout_name], self._outer, self._inner, values, tuple(self.shape)[::-1]
        )


def _ordered(found) -> bool:
    numbers = keys(found._i, found._sparse_size())
    return len(numbers) < 2 or bool((numbers[1:] > numbers[:-1]).all())


def _row_names(kind) -> None:
    kind.crow_indices = lambda self: self._outer
    kind.col_indices = lambda self: self._inner


def _column_names(kind) -> None:
    kind.ccol_indices = lambda self: self._outer
    kind.row_indices = lambda self: self._inner


_classes = {}
for _kind in KINDS:
    _classes[_kind] = type(CompressedTensor)(
        "Tensor",
        (CompressedTensor,),
        {"_layout_name": _kind, "__module__": "torch", "__doc__": f"layout torch.{_kind}."},
    )
    (_row_names if _kind in ("sparse_csr", "sparse_bsr") else _column_names)(_classes[_kind])


def compressed(name: str, outer, inner, values, size) -> CompressedTensor:
    """Return the matrix with these parts, without checks."""
    made = _classes[name]._shaped(size, values)
    made.__dict__.update(_outer=outer, _inner=inner)
    return made


def from_coo(found, name: str, blocksize=None) -> CompressedTensor:
    """Convert a coalesced matrix from the coordinate layout to a compressed layout."""
    if found.sparse_dim() != 2:
        raise RuntimeError(f"to_{name}: expected a matrix, but got sparse_dim {found.sparse_dim()}")
    if name in ("sparse_bsr", "sparse_bsc"):
        return _blocks(found, name, blocksize)
    rows, columns = found._i
    values = found._v
    if name == "sparse_csc":
        order = t.argsort(columns, stable=True)
        rows, columns, values = columns[order], rows[order], t.index_select(values, 0, order)
    lines = found.shape[0 if name == "sparse_csr" else 1]
    return compressed(name, _ends(rows, lines), columns.contiguous(), values, tuple(found.shape))


def _ends(lines, count: int):
    """Return a tensor (count + 1) with the position at which the values of each line begin."""
    return t.cat([t.zeros([1], dtype=_INT), t.cumsum(t.bincount(lines, minlength=count), 0)])


def _blocks(found, name: str, blocksize):
    if blocksize is None:
        raise RuntimeError(f"to_{name}: blocksize must be given")
    height, width = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    n, m = found.shape
    if n % height or m % width:
        raise RuntimeError(
            f"dense_to_sparse_{name[-3:]}: tensor sparse size ({n},{m}) must be divisible by given blocksize ({height},{width})"
        )
    rows, columns = found._i
    across = m // width
    line, other = (
        (rows // height, columns // width) if name == "sparse_bsr" else (columns // width, rows // height)
    )
    wide = across if name == "sparse_bsr" else n // height
    unique, group = t.unique(line * wide + other, return_inverse=True)
    inside = (rows % height) * width + columns % width
    shape = [len(unique) * height * width, *found._v.shape[1:]]
    empty = t.zeros(shape, dtype=found.dtype, device=found.device)
    values = t.index_add(empty, 0, group * (height * width) + inside, found._v)
    lines = n // height if name == "sparse_bsr" else m // width
    values = values.reshape(len(unique), height, width, *found._v.shape[1:])
    return compressed(name, _ends(unique // wide, lines), unique % wide, values, tuple(found.shape))


CONVERTERS.update(dict.fromkeys(KINDS, from_coo))
