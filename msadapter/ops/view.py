"""Views: every function here returns a tensor on the memory of its argument."""
from __future__ import annotations

from ._declare import _C, composite, namespaces, op, raw, raw_view, t
from ._geometry import as_list, infer_size, numel, view_strides, wrap_dim, wrap_dims

stride_of, offset_of = _C.stride, _C.storage_offset


def zeros_of(like, sizes):
    """Zeros with the type of `like`, without gradient."""
    return raw.Zeros(list(sizes), like.dtype)


def make_tensor(data, dtype=None):
    """`torch.tensor`, which lives a layer above."""
    tensor = t.tensor
    return tensor(data, dtype=dtype)


def _back(g, self):
    return t.reshape(g, self.shape)


# ---- other sizes, same order of elements
@op("view(Tensor self, int[]? size=None, *, ScalarType? dtype=None) -> Tensor", forms="m", view=True, grad={"self": _back})
def view(self, size, dtype):
    """The same elements in another shape (one size may be -1), or the same bytes as another dtype."""
    if dtype is not None:
        return _view_dtype(self, dtype)
    shape = self.shape
    size = infer_size(size, numel(shape))
    strides = view_strides(shape, stride_of(self), size)
    if strides is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
                           "contiguous subspaces). Use .reshape(...) instead.")
    return raw_view(self, size, strides, offset_of(self))


def _view_method(self, *size, dtype=None):
    """The same elements in another shape (one size may be -1), or the same bytes as another dtype."""
    if len(size) == 1 and hasattr(size[0], "itemsize"):
        return t.view(self, dtype=size[0])
    return t.view(self, *size) if dtype is None else t.view(self, dtype=dtype)


_view_method.__name__ = _view_method.__qualname__ = "view"
namespaces["Tensor"]["view"] = _view_method  # the only method whose first argument is sizes or a dtype


def _view_dtype(self, dtype):
    old, new = self.dtype.itemsize, dtype.itemsize
    names = f"{_kind(self.dtype)} as {_kind(dtype)}"
    sizes, strides, offset = list(self.shape), list(stride_of(self)), offset_of(self)
    if old != new:
        if not sizes:
            raise RuntimeError(f"self.dim() cannot be 0 to view {names} (different element sizes)")
        if strides[-1] != 1:
            raise RuntimeError(f"self.stride(-1) must be 1 to view {names} (different element sizes), but got {strides[-1]}")
        if old > new:
            k = old // new
            sizes[-1] *= k
            strides = [s * k for s in strides[:-1]] + [1]
            offset *= k
        else:
            k = new // old
            if sizes[-1] % k:
                raise RuntimeError(f"self.size(-1) must be divisible by {k} to view {names} (different element sizes), "
                                   f"but got {sizes[-1]}")
            if offset % k:
                raise RuntimeError(f"self.storage_offset() must be divisible by {k} to view {names} (different element "
                                   f"sizes), but got {offset}")
            for d, s in enumerate(strides[:-1]):
                if s % k:
                    raise RuntimeError(f"self.stride({d}) must be divisible by {k} to view {names} (different element "
                                       f"sizes), but got {s}")
            sizes[-1] //= k
            strides = [s // k for s in strides[:-1]] + [1]
            offset //= k
    return raw_view(self, sizes, strides, offset, dtype)


def _kind(dtype) -> str:
    return dtype.storage_name.removesuffix("Storage")


@composite("reshape(Tensor self, int[] shape) -> Tensor", forms="fm")
def reshape(self, shape):
    """`view` where memory allows, else a contiguous copy."""
    size = infer_size(shape, numel(self.shape))
    if view_strides(self.shape, stride_of(self), size) is None:
        return t.view(_copy(self), size)
    return t.view(self, size)


def _copy(x):
    """Contiguous copy."""
    return t._contiguous_copy(x)


@op("_contiguous_copy(Tensor self) -> Tensor", forms="f", grad={"self": lambda g: g})
def _contiguous_copy(self):
    out = _C.raw_empty(self.shape, None, self.dtype)
    _C.copy_into(out, self)
    return out


@composite("view_as(Tensor self, Tensor other) -> Tensor", forms="m")
def view_as(self, other):
    """`self.view(other.shape)`."""
    return t.view(self, other.shape)


@composite("reshape_as(Tensor self, Tensor other) -> Tensor", forms="m")
def reshape_as(self, other):
    """`self.reshape(other.shape)`."""
    return t.reshape(self, other.shape)


@composite("flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor", forms="fm")
def flatten(self, start_dim, end_dim):
    """Dims start_dim..end_dim made one; a 0-dim tensor becomes 1-dim."""
    shape = list(self.shape)
    a, b = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return t.reshape(self, [1])
    return self if a == b else t.reshape(self, shape[:a] + [numel(shape[a:b + 1])] + shape[b + 1:])


@composite("ravel(Tensor self) -> Tensor", forms="fm")
def ravel(self):
    """All elements in one dim."""
    return t.reshape(self, [-1])


@composite("unflatten(Tensor self, int dim, int[] sizes) -> Tensor", forms="fm")
def unflatten(self, dim, sizes):
    """One dim split into `sizes` (one may be -1)."""
    sizes = as_list(sizes)
    dim = wrap_dim(dim, self.ndim)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    shape = list(self.shape)
    try:
        sizes = infer_size(sizes, shape[dim])
    except RuntimeError as e:
        if "invalid for input" not in str(e):
            raise
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
                           "input tensor") from None
    return t.view(self, shape[:dim] + list(sizes) + shape[dim + 1:])


@op("squeeze(Tensor self, int[]? dim=None) -> Tensor", forms="fm", view=True, grad={"self": _back})
def squeeze(self, dim):
    """Without its dims of size 1, or without those of `dim` that are 1."""
    sizes, strides = list(self.shape), list(stride_of(self))
    drop = range(len(sizes)) if dim is None else wrap_dims(dim, len(sizes))
    keep = [d for d in range(len(sizes)) if sizes[d] != 1 or d not in drop]
    return raw_view(self, [sizes[d] for d in keep], [strides[d] for d in keep], offset_of(self))


@op("unsqueeze(Tensor self, int dim) -> Tensor", forms="fm", view=True, grad={"self": lambda g, dim: t.squeeze(g, dim)})
def unsqueeze(self, dim):
    """With a new dim of size 1."""
    sizes, strides = list(self.shape), list(stride_of(self))
    dim = wrap_dim(dim, len(sizes) + 1)
    step = sizes[dim] * strides[dim] if dim < len(sizes) else 1
    sizes.insert(dim, 1)
    strides.insert(dim, step)
    return raw_view(self, sizes, strides, offset_of(self))


@op("expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor", forms="m", view=True, grad={"self": lambda g: g})
def expand(self, size, implicit):
    """Dims of size 1 repeated without copies; -1 keeps a size."""
    shape, strides = self.shape, stride_of(self)
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(f"expand({_describe(self)}, size={list(size)}): the number of sizes provided ({len(size)}) must be greater or "
                           f"equal to the number of dimensions in the tensor ({len(shape)})")
    out, steps = [], []
    for d, s in enumerate(size):
        if d < lead:
            if s < 0:
                raise RuntimeError(f"The expanded size of the tensor ({s}) isn't allowed in a leading, non-existing dimension {d}")
            out.append(s)
            steps.append(0)
            continue
        have = shape[d - lead]
        if s == -1 or s == have:
            out.append(have)
            steps.append(strides[d - lead])
        elif have == 1 and s >= 0:
            out.append(s)
            steps.append(0)
        else:
            raise RuntimeError(f"The expanded size of the tensor ({s}) must match the existing size ({have}) at non-singleton dimension {d}.  "
                               f"Target sizes: {list(size)}.  Tensor sizes: {list(shape)}")
    return raw_view(self, out, steps, offset_of(self))


def _describe(x) -> str:
    return f"torch.{x.dtype.storage_name.replace('Storage', 'Tensor')}{{{list(x.shape)}}}"


@composite("expand_as(Tensor self, Tensor other) -> Tensor", forms="m")
def expand_as(self, other):
    """`self.expand(other.shape)`."""
    return t.expand(self, other.shape)


@composite("broadcast_to(Tensor self, int[] size) -> Tensor", forms="fm")
def broadcast_to(self, size):
    """`self` expanded to `size`."""
    return t.expand(self, size)


# ---- other order of dims
def _unpermute(g, dims):
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return t.permute(g, inverse)


@op("permute(Tensor self, int[] dims) -> Tensor", forms="fm", view=True, grad={"self": _unpermute})
def permute(self, dims):
    """Dims in the given order."""
    sizes, strides = self.shape, stride_of(self)
    if len(dims) != len(sizes):
        raise RuntimeError(f"permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering "
                           f"of dimensions i.e. input.dim() = {len(sizes)} is not equal to len(dims) = {len(dims)}")
    try:
        order = wrap_dims(dims, len(sizes))
    except RuntimeError:
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None
    return raw_view(self, [sizes[d] for d in order], [strides[d] for d in order], offset_of(self))


@op("transpose(Tensor self, int dim0, int dim1) -> Tensor", forms="fm", view=True, aliases=("swapaxes", "swapdims"),
    grad={"self": lambda g, dim0, dim1: t.transpose(g, dim0, dim1)})
def transpose(self, dim0, dim1):
    """Two dims swapped."""
    sizes, strides = list(self.shape), list(stride_of(self))
    a, b = wrap_dim(dim0, len(sizes)), wrap_dim(dim1, len(sizes))
    if sizes:
        sizes[a], sizes[b] = sizes[b], sizes[a]
        strides[a], strides[b] = strides[b], strides[a]
    return raw_view(self, sizes, strides, offset_of(self))


@op("t(Tensor self) -> Tensor", forms="fm", view=True, grad={"self": lambda g: t.t(g)})
def t_(self):
    """A matrix transposed; vectors and numbers as they are."""
    sizes, strides = list(self.shape), list(stride_of(self))
    if len(sizes) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(sizes)}D")
    return raw_view(self, sizes[::-1], strides[::-1], offset_of(self))


@composite("movedim(Tensor self, any source, any destination) -> Tensor", forms="fm", aliases=("moveaxis",))
def movedim(self, source, destination):
    """Dims moved to other places; the rest keep their order."""
    n, source, destination = self.ndim, as_list(source), as_list(destination)
    if len(source) != len(destination):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the same number of dims "
                           f"as destination ({list(destination)} dims)")
    a, b = [wrap_dim(d, n) for d in source], [wrap_dim(d, n) for d in destination]
    for dims, what in ((a, "source"), (b, "destination")):
        if len(set(dims)) != len(dims):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({list(dims)})")
    if n == 0:
        return t.view(self, [])
    order = [-1] * n
    for s, d in zip(a, b, strict=True):
        order[d] = s
    rest = iter(d for d in range(n) if d not in a)
    return t.permute(self, [next(rest) if o < 0 else o for o in order])


@composite("adjoint(Tensor self) -> Tensor", forms="fm")
def adjoint(self):
    """Conjugate transpose of the last two dims."""
    if self.ndim < 2:
        raise RuntimeError(f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return _conjugated(t.transpose(self, -2, -1))


def _conjugated(x):
    return t.conj(x) if x.is_complex() else x


# ---- parts
@op("_region(Tensor self, int[] spec) -> Tensor", forms="f", view=True,
    grad={"self": lambda g, self, spec: t._region_backward(g, list(self.shape), spec)})
def _region(self, spec):
    """Basic indexing in one node. `spec` holds, four numbers an item, (0, index, 0, 0) for one position of the next dim,
    (1, start, step, length) for a slice of it, (2, 0, 0, 0) for a new dim; dims without an item are whole."""
    return region(self, spec)


def region(x, spec):
    """The view that `spec` describes, without gradient."""
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


@op("_region_backward(Tensor grad, int[] sizes, int[] spec) -> Tensor", forms="f",
    grad={"grad": lambda g, spec: t._region(g, spec)})
def _region_backward(grad, sizes, spec):
    """Zeros of `sizes` that hold `grad` in the region."""
    out = zeros_of(grad, sizes)
    _C.copy_into(region(out, spec), grad)
    return out



def _whole(sizes):
    """Items that take the first dims as they are."""
    spec = []
    for s in sizes:
        spec += [1, 0, 1, s]
    return spec


def _select_spec(shape, dim, index):
    dim = wrap_dim(dim, len(shape))
    return _whole(shape[:dim]) + [0, index if index >= 0 else index + shape[dim], 0, 0]


@op("select(Tensor self, int dim, int index) -> Tensor", forms="fm", view=True,
    grad={"self": lambda g, self, dim, index: t._region_backward(g, list(self.shape), _select_spec(self.shape, dim, index))})
def select(self, dim, index):
    """One position of a dim, without that dim."""
    shape = self.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = wrap_dim(dim, len(shape))
    if not -shape[dim] <= index < shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(shape)} at dimension {dim}")
    return region(self, _select_spec(shape, dim, index))


def slice_bounds(start, end, size):
    """Start and length of torch's clamped slice with step 1."""
    start = 0 if start is None else start
    end = size if end is None else end
    start = max(start + size, 0) if start < 0 else min(start, size)
    end = max(end + size, 0) if end < 0 else min(end, size)
    return start, max(end - start, 0)


def _slice_spec(shape, dim, start, end, step):
    dim = wrap_dim(dim, len(shape))
    if not shape:
        raise RuntimeError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    start, length = slice_bounds(start, end, shape[dim])
    return _whole(shape[:dim]) + [1, start, step, (length + step - 1) // step]


@op("_slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor", forms="f", view=True,
    grad={"self": lambda g, self, dim, start, end, step:
          t._region_backward(g, list(self.shape), _slice_spec(self.shape, dim, start, end, step))})
def _slice(self, dim, start, end, step):
    """Positions start, start + step, ... below end of one dim."""
    return region(self, _slice_spec(self.shape, dim, start, end, step))


@composite("narrow(Tensor self, int dim, any start, int length) -> Tensor", forms="fm")
def narrow(self, dim, start, length):
    """`length` positions of a dim from `start` on."""
    start = int(start)
    if self.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    size = self.shape[wrap_dim(dim, self.ndim)]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
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


@op("diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", forms="fm", view=True,
    grad={"self": lambda g, self, offset, dim1, dim2: t._diagonal_backward(g, list(self.shape), offset, dim1, dim2)})
def diagonal(self, offset, dim1, dim2):
    """A diagonal of two dims, as the last dim."""
    return raw_view(self, *_diagonal_geometry(self, offset, dim1, dim2))


@op("_diagonal_backward(Tensor grad, int[] sizes, int offset, int dim1, int dim2) -> Tensor", forms="f",
    grad={"grad": lambda g, offset, dim1, dim2: t.diagonal(g, offset, dim1, dim2)})
def _diagonal_backward(grad, sizes, offset, dim1, dim2):
    out = zeros_of(grad, sizes)
    _C.copy_into(raw_view(out, *_diagonal_geometry(out, offset, dim1, dim2)), grad)
    return out


@composite("linalg.diagonal(Tensor A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor", forms="f")
def linalg_diagonal(A, *, offset, dim1, dim2):
    """`torch.diagonal` with the last two dims by default."""
    return t.diagonal(A, offset, dim1, dim2)


# ---- any geometry
@op("as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor", forms="fm", view=True,
    grad={"self": lambda g, self, size, stride, storage_offset: _as_strided_back(g, self, size, stride, storage_offset)})
def as_strided(self, size, stride, storage_offset):
    """A view with the given sizes, strides and offset into the storage."""
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    offset = offset_of(self) if storage_offset is None else storage_offset
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    if offset < 0:
        raise RuntimeError(f"invalid storage offset {offset}")
    if 0 not in size:
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1
        item = self.dtype.itemsize
        have = _C.storage_nbytes(self)
        if last * item > have:
            raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and itemsize {item} "
                               f"requiring a storage size of {last * item} are out of bounds for storage of size {have}")
    return raw_view(self, list(size), list(stride), offset)


def _positions(like, sizes, strides):
    """Flat storage positions (relative) of every element of a geometry."""
    at = t._region(t.arange(1), [])
    for d, (n, s) in enumerate(zip(sizes, strides, strict=True)):
        step = t.arange(n) * s
        at = at + t.view(step, [n] + [1] * (len(sizes) - 1 - d))
    return t.reshape(at, [-1])


def _as_strided_back(g, self, size, stride, storage_offset):
    """Gradients of elements that share memory add up; an input that overlaps itself gets equal shares."""
    shape, own = list(self.shape), list(stride_of(self))
    start, offset = offset_of(self), storage_offset
    offset = start if offset is None else offset
    low = min(start, offset)

    def extent(n, s, at):
        return 0 if 0 in n else at - low + sum((a - 1) * b for a, b in zip(n, s, strict=True)) + 1

    room = max(extent(shape, own, start), extent(size, stride, offset), 1)
    flat = zeros_of(g, [room])
    if 0 not in size:
        flat = t.index_add(flat, 0, _positions(g, size, stride) + (offset - low), t.reshape(g, [-1]))
    if 0 in shape:
        return zeros_of(g, shape)
    at = _positions(g, shape, own) + (start - low)
    if any(s == 0 and n > 1 for n, s in zip(shape, own, strict=True)):
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
    g = t.reshape(g, shape[:dim] + [n * size] + shape[dim + 2:])
    at = t.reshape(t.view(t.arange(n) * step, [n, 1]) + t.arange(size), [-1])
    return t.index_add(zeros_of(g, self.shape), dim, at, g)


@op("Tensor.unfold(Tensor self, int dimension, int size, int step) -> Tensor", forms="m", view=True, grad={"self": _unfold_back})
def unfold(self, dimension, size, step):
    """All windows of `size` along a dim, `step` apart, as a new last dim."""
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
def _parts_back(gs, shape, dim, lengths):
    """Gradients of consecutive parts of a dim, put side by side."""
    shape, like = list(shape), next(g for g in gs if g is not None)
    dim = wrap_dim(dim, len(shape))
    parts = []
    for g, n in zip(gs, lengths, strict=True):
        parts.append(zeros_of(like, shape[:dim] + [n] + shape[dim + 1:]) if g is None else g)
    return t.cat(parts, dim)


def _even(size, each):
    return [min(each, size - i) for i in range(0, size, each)] if size else [0]


@op("_split_sizes(Tensor self, int[] sizes, int dim) -> Tensor", forms="f", view=True,
    grad={"self": lambda gs, self, sizes, dim: _parts_back(gs, self.shape, dim, sizes)})
def _split_sizes(self, sizes, dim):
    """Consecutive parts of a dim, as a tuple of views."""
    shape, strides, offset = list(self.shape), stride_of(self), offset_of(self)
    out = []
    for n in sizes:
        shape[dim] = n
        out.append(raw_view(self, shape, strides, offset))
        offset += n * strides[dim]
    return tuple(out)


def _split(x, sizes, dim):
    return tuple(t._split_sizes(x, sizes, dim)) if len(sizes) != 1 else (t._slice(x, dim, 0, sizes[0], 1),)


@composite("split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor", forms="fm", aliases=("unsafe_split_with_sizes",))
def split_with_sizes(self, split_sizes, dim):
    """Parts of the given lengths."""
    dim = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if any(n < 0 for n in split_sizes):
        raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(split_sizes)}")
    if sum(split_sizes) != self.shape[dim]:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {self.shape[dim]} (input tensor's size at dimension "
                           f"{dim}), but got split_sizes={list(split_sizes)}")
    return _split(self, list(split_sizes), dim)


@composite("split(Tensor self, any split_size_or_sections, int dim=0) -> Tensor", forms="fm", aliases=("unsafe_split",))
def split(self, split_size_or_sections, dim):
    """Parts of one length (the last may be shorter), or of the given lengths."""
    each = split_size_or_sections
    if isinstance(each, (list, tuple)):
        return t.split_with_sizes(self, [int(n) for n in each], dim)
    each = int(each)
    dim = wrap_dim(dim, self.ndim)
    if self.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    if each < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={each}")
    size = self.shape[dim]
    if each == 0 and size:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
    return _split(self, _even(size, each) if each else [0], dim)


@composite("chunk(Tensor self, int chunks, int dim=0) -> Tensor", forms="fm", aliases=("unsafe_chunk",))
def chunk(self, chunks, dim):
    """At most `chunks` parts of equal length (the last may be shorter)."""
    if self.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    each = (size + chunks - 1) // chunks
    return _split(self, [0] * chunks if each == 0 else _even(size, each), dim)


@composite("tensor_split(Tensor self, any indices_or_sections=None, int dim=0, *, any sections=None, any indices=None) -> Tensor", forms="fm")
def tensor_split(self, indices_or_sections, dim, *, sections, indices):
    """Parts of nearly equal length, or parts cut at the given positions."""
    where = next(v for v in (indices_or_sections, sections, indices) if v is not None)
    if self.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = wrap_dim(dim, self.ndim)
    size = self.shape[dim]
    if hasattr(where, "tolist"):
        where = where.tolist()
    if isinstance(where, (list, tuple)):
        cuts = [0, *where, size]
        return tuple(t._slice(self, dim, a, b if i < len(cuts) - 2 else size, 1) for i, (a, b) in enumerate(zip(cuts, cuts[1:], strict=False)))
    if where <= 0:
        raise RuntimeError(f"number of sections must be larger than 0, got {where}")
    small, longer = divmod(size, where)
    return _split(self, [small + (i < longer) for i in range(where)], dim)


def _axis_split(name, least, dim_of):
    def body(self, indices_or_sections=None, *, sections=None, indices=None):
        where = next(v for v in (indices_or_sections, sections, indices) if v is not None)
        if self.ndim < least:
            raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a tensor "
                               f"with {self.ndim} dimensions!")
        dim = dim_of(self)
        if isinstance(where, int) and (where == 0 or self.shape[dim] % where):
            raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {self.shape[dim]} is "
                               f"not divisible by the split_size {where}!")
        return t.tensor_split(self, where, dim)

    body.__doc__ = f"`tensor_split` as numpy's {name}."
    composite(f"{name}(Tensor self, any indices_or_sections=None, *, any sections=None, any indices=None) -> Tensor", forms="fm")(body)


_axis_split("hsplit", 1, lambda x: 0 if x.ndim == 1 else 1)
_axis_split("vsplit", 2, lambda x: 0)
_axis_split("dsplit", 3, lambda x: 2)


def _unbind_back(gs, self, dim):
    shape, like = list(self.shape), next(g for g in gs if g is not None)
    one = shape[:dim] + shape[dim + 1:]
    return t.stack([zeros_of(like, one) if g is None else g for g in gs], dim)


@op("_unbind(Tensor self, int dim=0) -> Tensor", forms="f", view=True, grad={"self": _unbind_back})
def _unbind(self, dim):
    shape, strides, offset = list(self.shape), list(stride_of(self)), offset_of(self)
    n, step = shape.pop(dim), strides.pop(dim)
    return tuple(raw_view(self, shape, strides, offset + i * step) for i in range(n))


@composite("unbind(Tensor self, int dim=0) -> Tensor", forms="fm")
def unbind(self, dim):
    """Every position of a dim, as a tuple of views."""
    if self.ndim == 0:
        raise RuntimeError("Dimension specified as 0 but tensor has no dimensions")
    dim = wrap_dim(dim, self.ndim)
    n = self.shape[dim]
    if n == 0:
        return ()
    return tuple(t._unbind(self, dim)) if n != 1 else (t.select(self, dim, 0),)


@composite("contiguous(Tensor self, *, any memory_format=None) -> Tensor", forms="m")
def contiguous(self, *, memory_format):
    """`self` when its elements are dense and in order, else a copy that is."""
    if memory_format is not None and "channels_last" in str(memory_format):
        return t.clone(self, memory_format=memory_format)
    return self if _C.is_contiguous(self) else _copy(self)


# ---- in place: the tensor itself gets another geometry
def _inplace_view(name, aliases=()):
    function = getattr(t, name)

    def inplace(self, *args, **kwargs):
        if self.requires_grad and _C.is_grad_enabled():
            raise NotImplementedError(f"torch.Tensor.{name}_: a tensor that requires grad is not supported (docs/coverage.md)")
        made = function(self.detach(), *args, **kwargs)
        _C.set_geometry(self, self, list(made.shape), list(stride_of(made)), offset_of(made))
        _C.bump_version(self)
        return self

    for public in (name, *aliases):
        namespaces["Tensor"][public + "_"] = inplace
    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"`{name}` of the tensor itself."
    setattr(t, name + "_", inplace)
    return inplace


for _name, _aliases in (("squeeze", ()), ("unsqueeze", ()), ("transpose", ("swapaxes", "swapdims")), ("t", ()), ("as_strided", ())):
    _inplace_view(_name, _aliases)
namespaces["torch"]["as_strided_"] = t.as_strided_
