"""Joining tensors: concatenation, stacks and grids, and combinations of elements."""

from __future__ import annotations

import math

from .._host.warn import warn_once
from .._values.size import Size
from ._declare import _C, composite, namespaces, op, raw, t
from ._geometry import wrap_dim
from .view import is_tensor, room_for, zeros_of


# ---- joining
def _cat_back(g, dim, lengths):
    out, at = [], 0
    for n in lengths:
        out.append(zeros_of(g, [0]) if n < 0 else t._slice(g, dim, at, at + n, 1))
        at += max(n, 0)
    return out


# The lengths are arguments, so that the gradient does not have to save the tensors.
@op(
    "_cat(Tensor[] tensors, int dim, int[] lengths) -> Tensor",
    promote="default",
    promote_args=("tensors",),
    forms="f",
    autocast={"cpu": "widest"},
    grad={"tensors": _cat_back},
    linear="jointly",
    native=("body", "gradient"),
)
def _cat(tensors, dim, lengths):
    if _C.has_own_memory() and -1 in lengths and any(n >= 0 for n in lengths):
        tensors = [
            x for x, n in zip(tensors, lengths, strict=True) if n >= 0
        ]  # MindSpore's operator refuses the others
    return raw.Concat(tensors, dim)


@composite(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    out_dtype="cat",
    forms="fo",
    aliases=("concat", "concatenate"),
    native="call",
)
def cat(tensors, dim):
    """Join tensors along a dim. Empty vectors are ignored."""
    lengths = []
    for i, x in enumerate(tensors):
        if not is_tensor(x):
            raise TypeError(f"expected Tensor as element {i} in argument 0, but got {type(x).__name__}")
        shape = x.shape
        rank = len(shape)
        lengths.append(-1 if rank == 1 and shape[0] == 0 else shape[dim] if -rank <= dim < rank else 0)
    if all(n < 0 for n in lengths):  # then the dim does not matter, in range or not
        dim = 0
    return t._cat(tensors, dim, lengths)


op(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    out_dtype="cat",
    ms="StackExt",
    promote="default",
    forms="fo",
    autocast={"cpu": "widest"},
    grad={"tensors": lambda g, dim: list(t.unbind(g, dim))},
    linear="jointly",
)


@composite("hstack(Tensor[] tensors) -> Tensor", out_dtype="cat", forms="fo")
def hstack(tensors):
    """Join tensors along dim 1, or vectors along dim 0."""
    if not tensors:
        raise RuntimeError("hstack expects a non-empty TensorList")
    rows = [t.atleast_1d(x) for x in tensors]
    return t.cat(rows, 0 if rows[0].ndim == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", out_dtype="cat", forms="fo", aliases=("row_stack",))
def vstack(tensors):
    """Join tensors along dim 0, after making them at least 2-dimensional."""
    if not tensors:
        raise RuntimeError("vstack expects a non-empty TensorList")
    return t.cat([t.atleast_2d(x) for x in tensors], 0)


@composite("dstack(Tensor[] tensors) -> Tensor", out_dtype="cat", forms="fo")
def dstack(tensors):
    """Join tensors along dim 2, after making them at least 3-dimensional."""
    if not tensors:
        raise RuntimeError("dstack expects a non-empty TensorList")
    return t.cat([t.atleast_3d(x) for x in tensors], 2)


@composite("column_stack(Tensor[] tensors) -> Tensor", out_dtype="cat", forms="fo")
def column_stack(tensors):
    """Join vectors as columns, and matrices along dim 1."""
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return t.cat([t.reshape(x, [x.numel(), 1]) if x.ndim <= 1 else x for x in tensors], 1)


def _several(tensors):
    return tuple(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors


def _at_least(name, grow):
    def function(*tensors):
        if len(tensors) == 1 and not isinstance(tensors[0], (list, tuple)):
            return grow(tensors[0])
        return tuple(grow(x) for x in _several(tensors))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Each tensor with dims of size 1 added, to at least {name[-2]} dims."
    setattr(t, name, function)
    namespaces["torch"][name] = function


_at_least("atleast_1d", lambda x: x if x.ndim else t.reshape(x, [1]))
_at_least(
    "atleast_2d", lambda x: t.reshape(x, [1, 1]) if x.ndim == 0 else t.unsqueeze(x, 0) if x.ndim == 1 else x
)
_at_least(
    "atleast_3d",
    lambda x: (
        t.reshape(x, [1, 1, 1])
        if x.ndim == 0
        else t.unsqueeze(t.unsqueeze(x, 0), -1)
        if x.ndim == 1
        else t.unsqueeze(x, -1)
        if x.ndim == 2
        else x
    ),
)


def _function(f):
    """Publish a function that takes any number of tensors, which a schema cannot express."""
    setattr(t, f.__name__, f)
    namespaces["torch"][f.__name__] = f
    return f


@_function
def broadcast_shapes(*shapes):
    """Return the shape to which all given shapes broadcast."""
    rows = [_shape_row(shape) for shape in shapes]
    out = [1] * max(map(len, rows), default=0)
    for k, row in enumerate(rows):
        for d in range(-1, -1 - len(row), -1):
            if row[d] in (1, out[d]):
                continue
            if out[d] != 1:
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {row[d]} at {d}! Mismatching argument at "
                    f"index {k} had {tuple(row)}; but expected shape should be broadcastable to {out}"
                )
            if row[d] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            out[d] = row[d]
    return Size(out)


def _shape_row(shape):
    if isinstance(shape, int):
        return [shape]
    if not isinstance(shape, (list, tuple)):
        raise RuntimeError(
            f"Input shapes should be of type ints, a tuple of ints, or a list of ints, got {shape}"
        )
    return list(Size(shape))


@_function
def broadcast_tensors(*tensors):
    """Expand all tensors to their common shape."""
    tensors = _several(tensors)
    out: list[int] = []
    for x in tensors:
        shape = list(x.shape)
        out = [1] * (len(shape) - len(out)) + out
        for d in range(1, len(shape) + 1):
            if out[-d] == 1:
                out[-d] = shape[-d]
            elif shape[-d] not in (1, out[-d]):
                raise RuntimeError(
                    f"The size of tensor a ({out[-d]}) must match the size of tensor b ({shape[-d]}) at "
                    "non-singleton dimension "
                    f"{len(out) - d}"
                )
    return tuple(t.expand(x, out) for x in tensors)


@_function
def meshgrid(*tensors, indexing=None):
    """Return grids of coordinates from vectors, in "ij" or "xy" order."""
    tensors = _several(tensors)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    for x in tensors:
        if x.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {x}")
    if len({x.dtype for x in tensors}) > 1:
        raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    if indexing is None:
        warn_once(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
        )
    sizes = [x.numel() for x in tensors]
    grids = []
    for i, x in enumerate(tensors):
        shape = [1] * len(sizes)
        shape[i] = sizes[i]
        grids.append(t.expand(t.reshape(x, shape), sizes))
    if indexing == "xy" and len(grids) > 1:
        grids = [t.transpose(x, 0, 1) for x in _xy(tensors, sizes)]
    return tuple(grids)


def _xy(tensors, sizes):
    out = []
    for i, x in enumerate(tensors):
        shape = [1] * len(sizes)
        shape[i] = sizes[i]
        out.append(t.expand(t.reshape(x, shape), sizes))
    return out


@_function
def cartesian_prod(*tensors):
    """Return all combinations of one element from each vector, one per row."""
    for x in tensors:
        if x.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(x.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return t.stack([t.reshape(x, [-1]) for x in meshgrid(*tensors, indexing="ij")], 1)


@_function
def block_diag(*tensors):
    """Return a matrix with the given matrices along its diagonal."""
    tensors = _several(tensors)
    if not tensors:
        return t.zeros([1, 0])
    blocks = []
    for i, x in enumerate(tensors):
        if x.ndim > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {x.ndim} dimensions"
            )
        blocks.append(t.atleast_2d(x))
    width = sum(b.shape[1] for b in blocks)
    rows, left = [], 0
    for b in blocks:
        n, m = b.shape
        rows.append(t.cat([zeros_of(b, [n, left]), b, zeros_of(b, [n, width - left - m])], 1))
        left += m
    return t.cat(rows, 0)


@composite("combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor", forms="f")
def combinations(self, r, with_replacement):
    """Return the combinations of r elements of a vector, one per row."""
    if self.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(self.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return zeros_of(self, [0])
    n = self.shape[0]
    count = math.comb(n + r - 1, r) if with_replacement and n else 0 if with_replacement else math.comb(n, r)
    if not count:
        return t.narrow(self, 0, 0, 0).unsqueeze(1).expand([0, r])  # its gradient is zero
    room_for(self, [count, r])
    positions = _positions(n, r, with_replacement).reshape([-1])
    return t.index_select(self, 0, positions.to(self.device)).reshape([count, r])


def _positions(n: int, r: int, with_replacement: bool):
    """Return the combinations of r of the numbers below n in their order, (count, r) in int64."""
    columns = [t.arange(n)]
    for _ in range(r - 1):
        # each combination so far goes on with each of the numbers after its last one
        first = columns[-1] if with_replacement else columns[-1] + 1
        follow = n - first
        columns = [t.repeat_interleave(column, follow) for column in (*columns, first)]
        starts = t.repeat_interleave(t.cumsum(follow, 0) - follow, follow)
        columns[-1] = columns[-1] + t.arange(starts.shape[0]) - starts
    return t.stack(columns, 1)


@composite("_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor", out_dtype="cat", forms="fo")
def _chunk_cat(tensors, dim, num_chunks):
    """Pad each tensor and split it into `num_chunks` chunks, then join the i-th chunks of all tensors."""
    if num_chunks < 1:
        raise RuntimeError(f"_chunk_cat expects positive num_chunks, got {num_chunks}")
    out = []
    for x in tensors:
        shape = list(x.shape)
        d = wrap_dim(dim, len(shape))
        each = -(-shape[d] // num_chunks)
        missing = each * num_chunks - shape[d]
        if missing:
            x = t.cat([x, zeros_of(x, shape[:d] + [missing] + shape[d + 1 :])], d)
        lead = shape[:d]
        out.append(t.reshape(x, lead + [num_chunks, -1]))
    return t.cat(out, wrap_dim(dim, tensors[0].ndim) + 1)
