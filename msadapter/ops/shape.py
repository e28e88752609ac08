"""Functions that repeat and rearrange elements; copies of views; diagonals and triangles."""

from __future__ import annotations

from .._values.dtype import ALL
from ._declare import composite, op, raw, t
from ._geometry import as_list, numel, wrap_dim
from .creation import finish
from .view import is_tensor, room_for, zeros_of, zeros_seen


# ---- repeating
@op(
    "repeat(Tensor self, int[] repeats) -> Tensor",
    forms="m",
    grad={"self": lambda g, self, repeats: _repeat_back(g, self.shape, repeats)},
    whole=True,
)
def repeat(self, repeats):
    """Repeat `self` repeats[d] times along each dim d."""
    return raw.Repeat(self, repeats)


def _repeat_back(g, shape, repeats):
    lead = len(repeats) - len(shape)
    shape = [1] * lead + list(shape)
    if 0 in repeats:
        return zeros_of(g, shape[lead:])
    wide, dims = [], []
    for n, r in zip(shape, repeats, strict=True):
        if r != 1:
            dims.append(len(wide))
            wide.append(r)
        wide.append(n)
    out = t.reshape(g, wide)
    return t.reshape(t.sum(out, dims) if dims else out, shape[lead:])


@composite("tile(Tensor self, int[] dims) -> Tensor", forms="fm")
def tile(self, dims):
    """Like `repeat`, but missing leading repeats count as 1."""
    dims = list(dims)
    return t.repeat(self, [1] * (self.ndim - len(dims)) + dims)


@op(
    "_repeat_interleave_int(Tensor self, int repeats, int? dim=None, int? output_size=None) -> Tensor",
    forms="f",
    grad={"self": lambda g, self, repeats, dim: _interleave_back(g, self.shape, repeats, dim)},
    whole=True,
)
def _repeat_interleave_int(self, repeats, dim, output_size):
    return raw.RepeatInterleaveInt(self, repeats, dim, output_size)


def _interleave_back(g, shape, repeats, dim):
    if repeats == 0:
        return zeros_of(g, shape)
    if dim is None:
        return t.reshape(t.sum(t.reshape(g, [-1, repeats]), [1]), shape)
    shape = list(shape) or [1]
    d = wrap_dim(dim, len(shape))
    return t.sum(t.reshape(g, shape[: d + 1] + [repeats] + shape[d + 1 :]), [d + 1])


op(
    "_repeat_interleave_tensor(Tensor self, Tensor repeats, int? dim=None, int? output_size=None) -> Tensor",
    ms="RepeatInterleaveTensor",
    forms="f",
    grad={"self": lambda g, self, repeats, dim: _interleave_tensor_back(g, self.shape, repeats, dim)},
    whole=True,
)


def _interleave_tensor_back(g, shape, repeats, dim):
    n = numel(shape) if dim is None else (shape[dim] if shape else 1)
    at = raw.RepeatInterleaveTensor(t.arange(n), repeats, 0, None)
    sizes = [n] if dim is None else list(shape)
    return t.reshape(t.index_add(zeros_seen(g, sizes), 0 if dim is None else dim, at, g), list(shape))


@composite(
    "repeat_interleave(Tensor self, any repeats=None, int? dim=None, *, int? output_size=None) -> Tensor",
    forms="fm",
)
def repeat_interleave(self, repeats, dim, *, output_size):
    """Repeat every element (or every position of a dim).

    If the only argument is a vector of counts, return the repeated positions.
    """
    if repeats is None:
        if dim is not None:
            raise TypeError(
                "repeat_interleave() received an invalid combination of arguments: dim without repeats"
            )
        if self.dim() != 1 and self.dtype.name in ("int32", "int64"):
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        dtype = self.dtype if self.dtype.name == "int32" else None
        return t._repeat_interleave_tensor(
            t.arange(self.numel(), dtype=dtype), self.reshape(-1), 0, output_size
        )
    if is_tensor(repeats):
        return t._repeat_interleave_tensor(self, repeats, dim, output_size)
    if isinstance(repeats, bool) or not hasattr(repeats, "__index__"):
        raise TypeError(
            "repeat_interleave() received an invalid combination of arguments: repeats must be int or Tensor, not "
            + type(repeats).__name__
        )
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    return t._repeat_interleave_int(self, repeats, dim, output_size)


# ---- rearranging
@op(
    "roll(Tensor self, any shifts, int[]? dims=None) -> Tensor",
    forms="fm",
    grad={"self": lambda g, shifts, dims: t.roll(g, [-s for s in as_list(shifts)], dims)},
)
def roll(self, shifts, dims):
    """Shift positions along dims. Those pushed out at one end return at the other.

    Without dims, shift the flattened tensor.
    """
    return raw.Roll(self, as_list(shifts), dims or None)


@op(
    "flip(Tensor self, int[] dims) -> Tensor",
    forms="fm",
    grad={"self": lambda g, dims: t.flip(g, dims)},
    linear=("self",),
    along="dims",
)
def flip(self, dims):
    """Reverse the order of dims. The result is a copy."""
    return raw.ReverseV2(self, dims)


@composite("fliplr(Tensor self) -> Tensor", forms="fm")
def fliplr(self):
    """Reverse dim 1."""
    if self.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return t.flip(self, [1])


@composite("flipud(Tensor self) -> Tensor", forms="fm")
def flipud(self):
    """Reverse dim 0."""
    if self.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return t.flip(self, [0])


@composite("rot90(Tensor self, int k=1, int[] dims=(0, 1)) -> Tensor", forms="fm")
def rot90(self, k, dims):
    """Rotate k times by 90 degrees in the plane of two dims."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if self.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {self.ndim}")
    a, b = (wrap_dim(d, self.ndim) for d in dims)
    if a == b:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    k %= 4
    if k == 1:
        return t.transpose(t.flip(self, [b]), a, b)
    if k == 2:
        return t.flip(self, [a, b])
    if k == 3:
        return t.transpose(t.flip(self, [a]), a, b)
    return t.clone(self)


op(
    "tril(Tensor self, int diagonal=0) -> Tensor",
    ms="TrilExt",
    forms="fmio",
    grad={"self": lambda g, diagonal: t.tril(g, diagonal)},
)
op(
    "triu(Tensor self, int diagonal=0) -> Tensor",
    ms="Triu",
    forms="fmio",
    grad={"self": lambda g, diagonal: t.triu(g, diagonal)},
)


def _triangle_indices(row, col, offset, dtype, lower):
    if row < 0 or col < 0:
        raise RuntimeError(
            f"{'row' if row < 0 else 'col'} must be non-negative, got{row if row < 0 else col}"
        )
    at = raw.TriangleIndices(row, col, offset, lower)
    return at if dtype is None else t._to_dtype(at, dtype)


@op(
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    forms="f",
)
def tril_indices(row, col, offset, *, dtype, layout, device, pin_memory):
    """Return the positions of the lower triangle of a row x col matrix, as two rows."""
    return finish(
        _triangle_indices(row, col, offset, dtype, True), layout, device, False, pin_memory=pin_memory
    )


@op(
    "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=None) -> Tensor",
    forms="f",
)
def triu_indices(row, col, offset, *, dtype, layout, device, pin_memory):
    """Return the positions of the upper triangle of a row x col matrix, as two rows."""
    return finish(
        _triangle_indices(row, col, offset, dtype, False), layout, device, False, pin_memory=pin_memory
    )


# ---- diagonals
@composite("diag(Tensor self, int diagonal=0) -> Tensor", forms="fmo", copied_to_out=True)
def diag(self, diagonal):
    """Return a vector as a diagonal matrix, or the diagonal of a matrix."""
    if self.ndim == 1:
        return t.diag_embed(self, diagonal)
    if self.ndim == 2:
        return t._contiguous_copy(t.diagonal(self, diagonal))
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {self.ndim}D")


@composite("diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", forms="fm")
def diag_embed(self, offset, dim1, dim2):
    """Return matrices whose diagonal is the last dim of `self`."""
    rank = self.ndim + 1
    a, b = wrap_dim(dim1, rank), wrap_dim(dim2, rank)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = self.shape[-1] + abs(offset)
    room_for(self, [n, n])
    sizes = list(self.shape[:-1])
    for d in sorted((a, b)):
        sizes.insert(d, n)
    return t._diagonal_backward(self, sizes, offset, a, b)


@composite("diagflat(Tensor self, int offset=0) -> Tensor", forms="fm")
def diagflat(self, offset):
    """Return the flattened tensor as a diagonal matrix."""
    return t.diag_embed(t.reshape(self, [-1]), offset)


@composite(
    "trace(Tensor self) -> Tensor",
    forms="fm",
    autocast={"cpu": "float32", "accelerator": "as given"},
)
def trace(self):
    """Sum of the diagonal of a matrix."""
    if self.ndim != 2:
        raise RuntimeError("trace: expected a matrix")
    return t.sum(t.diagonal(self))


@composite("kron(Tensor self, Tensor other) -> Tensor", out_dtype="cast", forms="fmo")
def kron(self, other):
    """Kronecker product."""
    rank = max(self.ndim, other.ndim)
    a = [1] * (rank - self.ndim) + list(self.shape)
    b = [1] * (rank - other.ndim) + list(other.shape)
    left = t.reshape(self, [n for s in a for n in (s, 1)])
    right = t.reshape(other, [n for s in b for n in (1, s)])
    return t.reshape(left * right, [x * y for x, y in zip(a, b, strict=True)])


@composite("sum_to_size(Tensor self, int[] size) -> Tensor", forms="m")
def sum_to_size(self, size):
    """Sum `self` to a shape that broadcasts to its own."""
    shape, lead = list(self.shape), self.ndim - len(size)
    if not size:
        return t.sum(self)
    if lead < 0 or any(s not in (1, n) for s, n in zip(size, shape[lead:], strict=True)):
        raise RuntimeError(f"size {{{list(size)}}} is not expandable to size {{{shape}}}.")
    dims = list(range(lead)) + [d + lead for d, s in enumerate(size) if s == 1 and shape[d + lead] != 1]
    return t.reshape(t.sum(self, dims, True), list(size)) if dims else self


@composite("unravel_index(Tensor indices, any shape) -> Tensor", forms="f")
def unravel_index(indices, shape):
    """Convert positions of the flattened tensor to coordinates, one tensor for each dim."""
    if indices.dtype.is_floating_point or indices.dtype.is_complex or indices.dtype.is_bool:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    if not isinstance(shape, (int, list, tuple)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    shape = [shape] if isinstance(shape, int) else list(shape)
    for n in shape:
        if not isinstance(n, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(n)}")
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(shape)}")
    out, step, wide = [], numel(shape), ALL["int64"]
    for n in shape:
        step //= n or 1
        place = t.remainder(t.div(indices, step or 1, rounding_mode="floor"), n)
        out.append(t._to_dtype(place, wide) if indices.dtype is not wide else place)
    return tuple(out)


# ---- copies of views: torch.view_copy and the like
def _copies(*schemas):
    for schema in schemas:
        name = schema[: schema.index("(")]

        def body(*args, _view=name, **kwargs):
            make = _VIEW_OF.get(_view) or getattr(t, _view)
            made = make(*args, **kwargs)
            return (
                tuple(t._contiguous_copy(x) for x in made)
                if isinstance(made, (tuple, list))
                else t._contiguous_copy(made)
            )

        body.__doc__ = f"`{name}` as a copy."
        composite(schema.replace(name, name + "_copy", 1), forms="fo", copied_to_out=True)(body)


def _viewed_or_reshaped(self, size=None, dtype=None):
    """Return a view, or a reshaped copy if the strides allow no view. The caller copies the result anyway."""
    if isinstance(size, type(self.dtype)):
        size, dtype = None, size
    return t.reshape(self, size) if dtype is None else t.view(self, dtype=dtype)


_VIEW_OF = {"slice": lambda *args, **kwargs: t._slice(*args, **kwargs), "view": _viewed_or_reshaped}
_copies(
    "view(Tensor self, any size=None, *, ScalarType? dtype=None) -> Tensor",
    "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
    "permute(Tensor self, int[] dims) -> Tensor",
    "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    "t(Tensor self) -> Tensor",
    "squeeze(Tensor self, int[]? dim=None) -> Tensor",
    "unsqueeze(Tensor self, int dim) -> Tensor",
    "select(Tensor self, int dim, int index) -> Tensor",
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    "unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    "unbind(Tensor self, int dim=0) -> Tensor[]",
    "split(Tensor self, any split_size, int dim=0) -> Tensor[]",
    "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
)


@composite("alias_copy(Tensor self) -> Tensor", forms="fo", copied_to_out=True)
def alias_copy(self):
    """Return a copy."""
    return t.clone(self)


@composite("narrow_copy(Tensor self, int dim, any start, int length) -> Tensor", forms="fmo")
def narrow_copy(self, dim, start, length):
    """Like `narrow`, but a copy."""
    return t._contiguous_copy(t.narrow(self, dim, start, length))
