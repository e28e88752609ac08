"""Views of a part: select, slices, diagonals, windows, splits; views in place."""

from __future__ import annotations

from .._host import extensions
from .._values.base import is_batched
from .._values.dtype import int64
from ._declare import _C, composite, namespaces, op, raw_view, t
from ._geometry import wrap_dim
from .view import offset_of, room_for, stride_of, zeros_of, zeros_seen


@op(
    "_region(Tensor self, int[] spec) -> Tensor",
    forms="f",
    view=True,
    grad={"self": lambda g, self, spec: t._region_backward(g, list(self.shape), spec)},
    native=("body", "gradient"),
    whole=True,
    chain_of_views=True,
)
def _region(self, spec):
    """Basic indexing as a single node of the graph.

    `spec` holds four numbers for each item: (0, index, 0, 0) selects a position of the next dim, (1, start,
    step, length) takes a slice of it, and (2, 0, 0, 0) inserts a new dim. Dims without an item are taken
    whole.
    """
    return region(self, spec)


def region(x, spec):
    """Return the view that `spec` describes, without gradient."""
    shape, old = x.shape, stride_of(x)
    sizes, strides, offset, d = [], [], offset_of(x), 0
    for i in range(0, len(spec), 4):
        kind, start = spec[i], spec[i + 1]
        if kind == 2:
            sizes.append(1)
            strides.append(shape[d] * old[d] if d < len(old) else 1)
            continue
        offset += start * old[d]
        if kind == 1:
            sizes.append(spec[i + 3])
            strides.append(old[d] * spec[i + 2])
        d += 1
    sizes.extend(shape[d:])
    strides.extend(old[d:])
    return raw_view(x, sizes, strides, offset)


@op(
    "_region_backward(Tensor grad, int[] sizes, int[] spec) -> Tensor",
    forms="f",
    grad={"grad": lambda g, spec: t._region(g, spec)},
)
def _region_backward(grad, sizes, spec):
    """Return zeros of `sizes` with `grad` in the region."""
    out = zeros_of(grad, sizes)
    _C.copy_into(region(out, spec), grad)
    return out


def _whole(sizes):
    """Return the items of a spec that take the first dims whole."""
    spec = []
    for s in sizes:
        spec += [1, 0, 1, s]
    return spec


def _select_spec(shape, dim, index):
    dim = wrap_dim(dim, len(shape))
    return _whole(shape[:dim]) + [0, index if index >= 0 else index + shape[dim], 0, 0]


@op(
    "select(Tensor self, int dim, int index) -> Tensor",
    forms="fm",
    view=True,
    grad={
        "self": lambda g, self, dim, index: t._region_backward(
            g, list(self.shape), _select_spec(self.shape, dim, index)
        )
    },
    along="dim",
    native=("body", "gradient"),
)
def select(self, dim, index):
    """Select one position of a dim and remove this dim. The result is a view."""
    shape = self.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}"
        )
    return region(self, _select_spec(shape, dim, index))


def slice_bounds(start, end, size):
    """Return start and length of a slice with step 1, limited to the size as in PyTorch."""
    start = 0 if start is None else start
    end = size if end is None else end
    start = max(start + size, 0) if start < 0 else min(start, size)
    end = max(end + size, 0) if end < 0 else min(end, size)
    return start, max(end - start, 0)


def _slice_spec(shape, dim, start, end, step):
    dim = wrap_dim(dim, len(shape))
    if not shape:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start, length = slice_bounds(start, end, shape[dim])
    return _whole(shape[:dim]) + [1, start, step, (length + step - 1) // step]


@op(
    "_slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    forms="f",
    view=True,
    grad={
        "self": lambda g, self, dim, start, end, step: t._region_backward(
            g, list(self.shape), _slice_spec(self.shape, dim, start, end, step)
        )
    },
    along="dim",
    native=("body", "gradient"),
)
def _slice(self, dim, start, end, step):
    """Return the positions start, start + step, ... below end of one dim, as a view."""
    return region(self, _slice_spec(self.shape, dim, start, end, step))


@composite(
    "narrow(Tensor self, int dim, any start, int length) -> Tensor",
    forms="fm",
    along="dim",
    native="call",
)
def narrow(self, dim, start, length):
    """Return `length` positions of a dim, beginning at `start`, as a view."""
    if hasattr(start, "ndim") and (start.ndim or start.is_floating_point() or start.dtype.name == "bool"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self.shape[wrap_dim(dim, self.ndim)]
    if not -size <= start <= size:
        raise IndexError(
            f"start out of range (expected to be in range of [{-size}, {size}], but got {start})"
        )
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return t._slice(self, dim, start, start + length, 1)


def _diagonal_geometry(x, offset, dim1, dim2):
    sizes, strides = list(x.shape), list(stride_of(x))
    a, b = wrap_dim(dim1, len(sizes)), wrap_dim(dim2, len(sizes))
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    start = offset_of(x)
    if offset >= 0:
        length = max(min(sizes[a], sizes[b] - offset), 0)
        start += offset * strides[b] if length else 0
    else:
        length = max(min(sizes[a] + offset, sizes[b]), 0)
        start -= offset * strides[a] if length else 0
    step = strides[a] + strides[b]
    keep = [d for d in range(len(sizes)) if d not in (a, b)]
    return [sizes[d] for d in keep] + [length], [strides[d] for d in keep] + [step], start


@op(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    forms="fm",
    view=True,
    grad={
        "self": lambda g, self, offset, dim1, dim2: t._diagonal_backward(
            g, list(self.shape), offset, dim1, dim2
        )
    },
    whole=True,
)
def diagonal(self, offset, dim1, dim2):
    """Return a view in which a diagonal of two dims is the last dim."""
    return raw_view(self, *_diagonal_geometry(self, offset, dim1, dim2))


@op(
    "_diagonal_backward(Tensor grad, int[] sizes, int offset, int dim1, int dim2) -> Tensor",
    forms="f",
    grad={"grad": lambda g, offset, dim1, dim2: t.diagonal(g, offset, dim1, dim2)},
)
def _diagonal_backward(grad, sizes, offset, dim1, dim2):
    out = zeros_of(grad, sizes)
    _C.copy_into(raw_view(out, *_diagonal_geometry(out, offset, dim1, dim2)), grad)
    return out


@composite("linalg.diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", forms="f")
def linalg_diagonal(A, *, offset, dim1, dim2):
    """Like `torch.diagonal`, but of the last two dims by default."""
    return t.diagonal(A, offset, dim1, dim2)


# ---- any geometry
@op(
    "_as_strided(Tensor self, int[] size, int[] stride, int offset, int[] own_size, int[] own_stride, int own_offset) -> Tensor",
    forms="f",
    view=True,
    grad={
        "self": lambda g, size, stride, offset, own_size, own_stride, own_offset: _as_strided_back(
            g, list(own_size), list(own_stride), own_offset, size, stride, offset
        )
    },
    whole=True,
)
def _as_strided(self, size, stride, offset, own_size, own_stride, own_offset):
    # The gradient needs only the sizes and strides of self. They are arguments, so that self is not saved and
    # may be changed in place before backward.
    return raw_view(self, list(size), list(stride), offset)


@composite(
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    forms="fm",
    native="body",
)
def as_strided(self, size, stride, storage_offset):
    """Return a view with the given sizes, strides and offset into the storage."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    offset = offset_of(self) if storage_offset is None else storage_offset
    if any(s < 0 for s in stride):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}"
        )
    for n in size:
        if n < 0:
            raise RuntimeError(
                f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
            )
    return t._as_strided(
        self, list(size), list(stride), offset, list(self.shape), list(stride_of(self)), offset_of(self)
    )


def may_overlap(sizes, strides) -> bool:
    """Return whether two elements may share memory. The answer is true if it is not certain."""
    extent = 1
    for step, n in sorted((s, n) for n, s in zip(sizes, strides, strict=True) if n > 1):
        if step < extent:
            return True
        extent += step * (n - 1)
    return False


def positions(sizes, strides):
    """Return the storage position of every element, relative to the first one."""
    at = t._region(t.arange(1), [])
    for d, (n, s) in enumerate(zip(sizes, strides, strict=True)):
        step = t.arange(n) * s
        at = at + t.view(step, [n] + [1] * (len(sizes) - 1 - d))
    return t.reshape(at, [-1])


def _as_strided_back(g, shape, own, start, size, stride, offset):
    """Return the gradient of as_strided.

    Gradients of elements that share memory are added up. If the input overlaps itself, its elements at the
    same address get equal shares.
    """
    low = min(start, offset)

    def extent(n, s, at):
        return 0 if 0 in n else at - low + sum((a - 1) * b for a, b in zip(n, s, strict=True)) + 1

    room = max(extent(shape, own, start), extent(size, stride, offset), 1)
    flat = zeros_of(g, [room])
    if 0 not in size:
        flat = t.index_add(flat, 0, positions(size, stride) + (offset - low), t.reshape(g, [-1]))
    if 0 in shape:
        return zeros_of(g, shape)
    at = positions(shape, own) + (start - low)
    if may_overlap(shape, own):
        hits = t.index_add(zeros_of(g, [room]), 0, at, t.ones_like(t.index_select(flat, 0, at)))
        flat = flat / t.clamp(hits, min=1)
    return t.reshape(t.index_select(flat, 0, at), shape)


def _unfold_back(g, self, dimension, size, step):
    dim = wrap_dim(dimension, self.ndim)
    if self.ndim == 0:
        return t.reshape(g, [])
    n = g.shape[dim]
    g = t.movedim(g, [-1], [dim + 1])
    shape = list(g.shape)
    g = t.reshape(g, shape[:dim] + [n * size] + shape[dim + 2 :])
    at = t.reshape(t.view(t.arange(n) * step, [n, 1]) + t.arange(size), [-1])
    return t.index_add(zeros_seen(g, self.shape), dim, at, g)


@op(
    "Tensor.unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    forms="m",
    view=True,
    grad={"self": _unfold_back},
    whole=True,
)
def unfold(self, dimension, size, step):
    """Return all windows of `size` along a dim, `step` apart, as a new last dim. The result is a view."""
    sizes, strides = list(self.shape), list(stride_of(self))
    dim = wrap_dim(dimension, len(sizes))
    have = sizes[dim] if sizes else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > have:
        raise RuntimeError(f"maximum size for tensor at dimension {dim} is {have} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if not sizes:
        return raw_view(self, [size], [1], offset_of(self))
    own = strides[dim]
    sizes[dim] = (have - size) // step + 1
    strides[dim] = own * step
    return raw_view(self, sizes + [size], strides + [own], offset_of(self))


# ---- several views
def _each(found) -> tuple:
    """Return views, or their gradients, one for each part. Of a single part, the dispatcher gives the tensor itself."""
    return tuple(found) if isinstance(found, (tuple, list)) else (found,)


def _parts_back(gs, shape, dim, lengths):
    """Join the gradients of consecutive parts of a dim."""
    gs = _each(gs)
    shape, like = list(shape), next(g for g in gs if g is not None)
    dim = wrap_dim(dim, len(shape))
    parts = []
    for g, n in zip(gs, lengths, strict=True):
        parts.append(zeros_of(like, shape[:dim] + [n] + shape[dim + 1 :]) if g is None else g)
    return t.cat(parts, dim)


def _even(size, each):
    return [min(each, size - i) for i in range(0, size, each)] if size else [0]


def _consecutive(self, sizes, dim):
    """Return consecutive parts of a dim, as a tuple of views."""
    shape, strides, offset = list(self.shape), stride_of(self), offset_of(self)
    out = []
    for n in sizes:
        shape[dim] = n
        out.append(raw_view(self, shape, strides, offset))
        offset += n * strides[dim]
    return tuple(out)


for _name in ("_split", "_split_with_sizes"):  # the two operators differ only in the name of their graph node
    op(
        f"{_name}(Tensor self, int[] sizes, int dim) -> Tensor[]",
        forms="f",
        view=True,
        grad={"self": lambda gs, self, sizes, dim: _parts_back(gs, self.shape, dim, sizes)},
        native="body",
    )(_consecutive)


def _unsafe_parts(self, sizes, dim):
    """Return consecutive parts of a dim that share memory with the whole, but neither its version nor its graph."""
    return tuple(_C.fresh_version(part) for part in _consecutive(self, sizes, dim))


op(
    "_unsafe_split(Tensor self, int[] sizes, int dim) -> Tensor[]",
    forms="f",
    grad={"self": lambda gs, self, sizes, dim: _parts_back(gs, self.shape, dim, sizes)},
)(_unsafe_parts)


def _given_sizes(x, split_sizes, dim):
    """Return the lengths into which `split_with_sizes` splits a dim."""
    if x.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if any(n < 0 for n in split_sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(split_sizes)}"
        )
    if sum(split_sizes) != x.shape[dim]:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {x.shape[dim]} (input tensor's size at dimension "
            f"{dim}), but got split_sizes={list(split_sizes)}"
        )
    return list(split_sizes)


def _even_sizes(x, each, dim):
    """Return the lengths into which `split` splits a dim."""
    if x.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if each < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={each}")
    size = x.shape[dim]
    if each == 0 and size:
        raise RuntimeError(
            f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}"
        )
    return _even(size, each) if each else [0]


def _chunk_sizes(x, chunks, dim):
    """Return the lengths into which `chunk` splits a dim."""
    if x.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    size = x.shape[wrap_dim(dim, x.ndim)]
    each = (size + chunks - 1) // chunks
    return [0] * chunks if each == 0 else _even(size, each)


@composite("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", forms="fm")
def split_with_sizes(self, split_sizes, dim):
    """Split a dim into parts of the given lengths."""
    dim = wrap_dim(dim, self.ndim)
    return _each(t._split_with_sizes(self, _given_sizes(self, split_sizes, dim), dim))


@composite("unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]", forms="fm")
def unsafe_split_with_sizes(self, split_sizes, dim):
    """`split_with_sizes` whose parts are no views to autograd: each may be written without the others."""
    dim = wrap_dim(dim, self.ndim)
    return _each(t._unsafe_split(self, _given_sizes(self, split_sizes, dim), dim))


@composite("split(Tensor self, any split_size_or_sections, int dim=0) -> Tensor[]", forms="fm", along="dim")
def split(self, split_size_or_sections, dim):
    """Split a dim into parts of one length (the last may be shorter), or of the given lengths."""
    each = split_size_or_sections
    if isinstance(each, (list, tuple)):
        return t.split_with_sizes(self, [int(n) for n in each], dim)
    dim = wrap_dim(dim, self.ndim)
    return _each(t._split(self, _even_sizes(self, int(each), dim), dim))


@composite("unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]", forms="fm", along="dim")
def unsafe_split(self, split_size, dim):
    """`split` whose parts are no views to autograd: each may be written without the others."""
    dim = wrap_dim(dim, self.ndim)
    return _each(t._unsafe_split(self, _even_sizes(self, split_size, dim), dim))


@composite("chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", forms="fm", along="dim", native="call")
def chunk(self, chunks, dim):
    """Split a dim into at most `chunks` parts of equal length (the last may be shorter)."""
    sizes = _chunk_sizes(self, chunks, dim)
    return _each(t._split(self, sizes, wrap_dim(dim, self.ndim)))


@composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", forms="fm", along="dim")
def unsafe_chunk(self, chunks, dim):
    """`chunk` whose parts are no views to autograd: each may be written without the others."""
    sizes = _chunk_sizes(self, chunks, dim)
    return _each(t._unsafe_split(self, sizes, wrap_dim(dim, self.ndim)))


@composite(
    "tensor_split(Tensor self, any indices_or_sections=None, int dim=0, *, any sections=None, any indices=None) -> Tensor[]",
    forms="fm",
    along="dim",
)
def tensor_split(self, indices_or_sections, dim, *, sections, indices):
    """Split a dim into parts of nearly equal length, or at the given positions."""
    where = next(v for v in (indices_or_sections, sections, indices) if v is not None)
    if self.ndim == 0:
        raise RuntimeError(
            "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims"
        )
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if hasattr(where, "tolist"):
        if where.dtype is not int64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
                f"{where.dtype.scalar_name}"
            )
        if where.ndim > 1:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but "
                f"got a tensor with {where.ndim} dims"
            )
        where = where.tolist()
    if isinstance(where, (list, tuple)):
        cuts = [0, *where, size]
        return tuple(
            t._slice(self, dim, a, b if i < len(cuts) - 2 else size, 1)
            for i, (a, b) in enumerate(zip(cuts, cuts[1:], strict=False))
        )
    if where <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {where}")
    # there are as many views as sections, also empty ones; too many raise an error here
    room_for(self, [where])
    small, longer = divmod(size, where)
    ends = [(i + 1) * small + min(i + 1, longer) for i in range(where)]
    return tuple(t._slice(self, dim, a, b, 1) for a, b in zip([0, *ends], ends, strict=False))


def _axis_split(name, least, dim_of):
    def body(self, indices_or_sections=None, *, sections=None, indices=None):
        where = next(v for v in (indices_or_sections, sections, indices) if v is not None)
        if self.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but "
                "got a tensor "
                f"with {self.ndim} dimensions!"
            )
        dim = dim_of(self)
        if isinstance(where, int) and (where == 0 or self.shape[dim] % where):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {self.shape[dim]} is "
                f"not divisible by the split_size {where}!"
            )
        return t.tensor_split(self, where, dim)

    body.__doc__ = f"`tensor_split` as numpy's {name}."
    composite(
        f"{name}(Tensor self, any indices_or_sections=None, *, any sections=None, any indices=None) -> Tensor[]",
        forms="fm",
    )(body)


_axis_split("hsplit", 1, lambda x: 0 if x.ndim == 1 else 1)
_axis_split("vsplit", 2, lambda x: 0)
_axis_split("dsplit", 3, lambda x: 2)


def _unbind_back(gs, self, dim):
    gs = _each(gs)
    shape, like = list(self.shape), next(g for g in gs if g is not None)
    one = shape[:dim] + shape[dim + 1 :]
    return t.stack([zeros_of(like, one) if g is None else g for g in gs], dim)


@op(
    "_unbind(Tensor self, int dim=0) -> Tensor[]",
    forms="f",
    view=True,
    grad={"self": _unbind_back},
    along="dim",
    native="body",
)
def _unbind(self, dim):
    shape, strides, offset = list(self.shape), list(stride_of(self)), offset_of(self)
    n, step = shape.pop(dim), strides.pop(dim)
    return tuple(raw_view(self, shape, strides, offset + i * step) for i in range(n))


@composite(
    "unbind(Tensor self, int dim=0) -> Tensor[]",
    forms="fm",
    along="dim",
)
def unbind(self, dim):
    """Return all positions of a dim, as a tuple of views."""
    if self.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, self.ndim)
    return _each(t._unbind(self, dim)) if self.shape[dim] else ()


# ---- in place: the tensor itself gets another geometry
def _inplace_view(name, aliases=()):
    function = getattr(t, name)

    def inplace(self, *args, **kwargs):
        if is_batched(self):
            return getattr(self, name + "_")(*args, **kwargs)
        _C.check_history(self)
        if name == "t" and self.ndim > 2:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {self.ndim}D")
        view = function(self, *args, **kwargs)
        if extensions.take_tangent.value is not None:
            extensions.take_tangent.value(self, view)
        _C.become_view(self, view)
        return self

    for public in (name, *aliases):
        namespaces["Tensor"][public + "_"] = inplace
    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"`{name}` of the tensor itself."
    setattr(t, name + "_", inplace)
    return inplace


for _name, _aliases in (
    ("squeeze", ()),
    ("unsqueeze", ()),
    ("transpose", ("swapaxes", "swapdims")),
    ("t", ()),
    ("as_strided", ()),
):
    _inplace_view(_name, _aliases)
namespaces["torch"]["as_strided_"] = t.as_strided_
