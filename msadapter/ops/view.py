"""Views. Every function here returns a tensor that shares memory with its argument."""

from __future__ import annotations

from ._declare import _C, composite, namespaces, op, raw, raw_view, t
from ._geometry import as_list, contiguous_strides, infer_size, numel, view_strides, wrap_dim, wrap_dims

stride_of, offset_of = _C.stride, _C.storage_offset


def beside(x, like):
    """Return ``x`` (a tensor or None), or its copy in device memory if ``like`` is there and ``x`` is on the host."""
    if x is None or not _C.in_device_memory(like) or _C.in_device_memory(x):
        return x
    return t._to_device(x, _C.device_tag(like))


def zeros_of(like, sizes):
    """Return zeros with the dtype and on the device of `like`, without gradient."""
    zeros = raw.Zeros(list(sizes), like.dtype)
    return _C.placed(zeros, _C.device_tag(like)) if _C.in_device_memory(like) else zeros


def zeros_seen(like, sizes):
    """Return one zero that is seen with all these sizes, with the dtype and on the device of `like`, without gradient.

    It takes no memory of these sizes. It is meant for operators that return a changed copy of their operand.
    """
    return raw_view(zeros_of(like, [1]), list(sizes), [0] * len(sizes), 0)


def room_for(like, sizes) -> None:
    """Raise RuntimeError if there is no memory for a tensor of this shape, before a slow computation starts."""
    _C.raw_empty(list(sizes), None, like.dtype)


def is_tensor(x) -> bool:
    """Whether an argument is a tensor, of any device. Storages have ``data_ptr`` too."""
    return hasattr(x, "data_ptr") and hasattr(x, "requires_grad")


def make_tensor(data, dtype=None, device=None):
    """Call `torch.tensor`. It is looked up at the call, because its module imports this package."""
    tensor = t.tensor
    return tensor(data, dtype=dtype, device=device)


def _back(g, self):
    return t.reshape(g, self.shape)


# ---- other sizes, same order of elements
@op(
    "view(Tensor self, int[]? size=None, *, ScalarType? dtype=None) -> Tensor",
    forms="m",
    view=True,
    grad={"self": _back},
    native=("body", "gradient"),
)
def view(self, size, dtype):
    """Return the same elements in another shape (one size may be -1), or the same bytes as another dtype."""
    if dtype is not None:
        return _view_dtype(self, dtype)
    shape = self.shape
    size = infer_size(size, numel(shape))
    strides = view_strides(shape, stride_of(self), size)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return raw_view(self, size, strides, offset_of(self))


def _view_method(self, *size, dtype=None):
    """Return the same elements in another shape (one size may be -1), or the same bytes as another dtype."""
    if len(size) == 1 and hasattr(size[0], "itemsize"):
        dtype = size[0]
    if dtype is None:
        return t.view(self, *size)
    # The bytes as another dtype have no gradient.
    return t.view(t.detach(self), dtype=dtype)


_view_method.__name__ = _view_method.__qualname__ = "view"
# this is the only method whose first argument is either sizes or a dtype
namespaces["Tensor"]["view"] = _view_method


def _view_dtype(self, dtype):
    old, new = self.dtype.itemsize, dtype.itemsize
    names = f"{_kind(self.dtype)} as {_kind(dtype)}"
    sizes, strides, offset = list(self.shape), list(stride_of(self)), offset_of(self)
    if old != new:
        if not sizes:
            raise RuntimeError(f"self.dim() cannot be 0 to view {names} (different element sizes)")
        if strides[-1] != 1:
            raise RuntimeError(
                f"self.stride(-1) must be 1 to view {names} (different element sizes), but got {strides[-1]}"
            )
        if old > new:
            k = old // new
            sizes[-1] *= k
            strides = [s * k for s in strides[:-1]] + [1]
            offset *= k
        else:
            k = new // old
            if sizes[-1] % k:
                raise RuntimeError(
                    f"self.size(-1) must be divisible by {k} to view {names} (different element sizes), "
                    f"but got {sizes[-1]}"
                )
            if offset % k:
                raise RuntimeError(
                    f"self.storage_offset() must be divisible by {k} to view {names} (different element "
                    f"sizes), but got {offset}"
                )
            for d, s in enumerate(strides[:-1]):
                if s % k:
                    raise RuntimeError(
                        f"self.stride({d}) must be divisible by {k} to view {names} (different element "
                        f"sizes), but got {s}"
                    )
            sizes[-1] //= k
            strides = [s // k for s in strides[:-1]] + [1]
            offset //= k
    return raw_view(self, sizes, strides, offset, dtype)


def _kind(dtype) -> str:
    return dtype.scalar_name


@composite(
    "reshape(Tensor self, int[] shape) -> Tensor",
    forms="fm",
    native="call",
)
def reshape(self, shape):
    """Return a view in another shape if the strides allow it, else a contiguous copy."""
    size = infer_size(shape, numel(self.shape))
    if view_strides(self.shape, stride_of(self), size) is None:
        return t._unsafe_view(_copy(self), size)
    return t.view(self, size)


@op(
    "_unsafe_view(Tensor self, int[] size) -> Tensor",
    forms="f",
    grad={"self": lambda g, self: t.reshape(g, list(self.shape))},
    native=("body", "gradient"),
)
def _unsafe_view(self, size):
    """Return other sizes for a contiguous temporary tensor.

    No other code has this tensor, so autograd need not treat the result as a view.
    """
    return raw_view(self, list(size), contiguous_strides(size), offset_of(self))


def _copy(x):
    """Return a contiguous copy."""
    return t._contiguous_copy(x)


@op(
    "_contiguous_copy(Tensor self) -> Tensor",
    forms="f",
    grad={"self": lambda g: g},
    pointwise=True,
    linear=("self",),
    native=("body", "gradient"),
    copies=True,
)
def _contiguous_copy(self):
    out = _C.raw_empty(self.shape, None, self.dtype)
    _C.copy_into(out, self)
    return out


@composite("view_as(Tensor self, Tensor other) -> Tensor", forms="m")
def view_as(self, other):
    """Return `self.view(other.shape)`."""
    return t.view(self, other.shape)


@composite("reshape_as(Tensor self, Tensor other) -> Tensor", forms="m")
def reshape_as(self, other):
    """Return `self.reshape(other.shape)`."""
    return t.reshape(self, other.shape)


@composite(
    "flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor",
    forms="fm",
    native="call",
)
def flatten(self, start_dim, end_dim):
    """Merge the dims from start_dim to end_dim. A 0-dimensional tensor becomes 1-dimensional."""
    shape = list(self.shape)
    a, b = wrap_dim(start_dim, len(shape)), wrap_dim(end_dim, len(shape))
    if a > b:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return t.reshape(self, [1])
    return self if a == b else t.reshape(self, shape[:a] + [numel(shape[a : b + 1])] + shape[b + 1 :])


@composite("ravel(Tensor self) -> Tensor", forms="fm")
def ravel(self):
    """Return all elements in one dim, contiguous."""
    return t.view(t.contiguous(self), [-1])


@composite(
    "unflatten(Tensor self, int dim, int[] sizes) -> Tensor",
    forms="fm",
    along="dim",
)
def unflatten(self, dim, sizes):
    """Split a dim into `sizes` (one may be -1)."""
    sizes = as_list(sizes)
    if not self.ndim:
        raise RuntimeError(
            "unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions"
        )
    dim = wrap_dim(dim, self.ndim)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    shape = list(self.shape)
    try:
        sizes = infer_size(sizes, shape[dim])
    except RuntimeError as e:
        if "invalid for input" not in str(e):
            raise
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in the "
            "input tensor"
        ) from None
    return t.view(self, shape[:dim] + list(sizes) + shape[dim + 1 :])


@op(
    "squeeze(Tensor self, int[]? dim=None) -> Tensor",
    nodes={"dim list": "SqueezeBackward2", "dim given": "SqueezeBackward1"},
    forms="fm",
    view=True,
    grad={"self": _back},
    along="dim",
    native=("body", "gradient"),
)
def squeeze(self, dim):
    """Remove the dims of size 1, or those of `dim` that have size 1."""
    sizes, strides = list(self.shape), list(stride_of(self))
    drop = range(len(sizes)) if dim is None else wrap_dims(dim, len(sizes))
    keep = [d for d in range(len(sizes)) if sizes[d] != 1 or d not in drop]
    return raw_view(self, [sizes[d] for d in keep], [strides[d] for d in keep], offset_of(self))


@op(
    "unsqueeze(Tensor self, int dim) -> Tensor",
    forms="fm",
    view=True,
    grad={"self": lambda g, dim: t.squeeze(g, dim)},
    native=("body", "gradient"),
)
def unsqueeze(self, dim):
    """Insert a dim of size 1."""
    sizes, strides = list(self.shape), list(stride_of(self))
    dim = wrap_dim(dim, len(sizes) + 1)
    step = sizes[dim] * strides[dim] if dim < len(sizes) else 1
    sizes.insert(dim, 1)
    strides.insert(dim, step)
    return raw_view(self, sizes, strides, offset_of(self))


@op(
    "expand(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
    forms="m",
    view=True,
    grad={"self": lambda g: g},
    native=("body", "gradient"),
)
def expand(self, size, implicit):
    """Repeat dims of size 1 without copying. A size of -1 keeps the dim."""
    shape, strides = self.shape, stride_of(self)
    lead = len(size) - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"expand({_describe(self)}, size={list(size)}): the number of sizes provided ({len(size)}) must be greater or "
            f"equal to the number of dimensions in the tensor ({len(shape)})"
        )
    out, steps = [], []
    for d, s in enumerate(size):
        if d < lead:
            if s < 0:
                raise RuntimeError(
                    f"The expanded size of the tensor ({s}) isn't allowed in a leading, non-existing dimension {d}"
                )
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
            raise RuntimeError(
                f"The expanded size of the tensor ({s}) must match the existing size ({have}) at non-singleton "
                f"dimension {d}.  "
                f"Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    for d in reversed(range(lead)):  # a new dim of size 1 gets the stride that unsqueeze gives
        if out[d] == 1 and shape:
            steps[d] = out[d + 1] * steps[d + 1] if d + 1 < len(out) else 1
    return raw_view(self, out, steps, offset_of(self))


def _describe(x) -> str:
    return f"torch.{x.dtype.storage_name.replace('Storage', 'Tensor')}{{{list(x.shape)}}}"


@composite("expand_as(Tensor self, Tensor other) -> Tensor", forms="m")
def expand_as(self, other):
    """Return `self.expand(other.shape)`."""
    return t.expand(self, other.shape)


@composite("broadcast_to(Tensor self, int[] size) -> Tensor", forms="fm")
def broadcast_to(self, size):
    """Expand `self` to `size`."""
    return t.expand(self, size)


# ---- other order of dims
def _unpermute(g, dims):
    inverse = [0] * len(dims)
    for i, d in enumerate(dims):
        inverse[d] = i
    return t.permute(g, inverse)


@op(
    "permute(Tensor self, int[] dims) -> Tensor",
    forms="fm",
    view=True,
    grad={"self": _unpermute},
    native=("body", "gradient"),
)
def permute(self, dims):
    """Put the dims into the given order."""
    sizes, strides = self.shape, stride_of(self)
    if len(dims) != len(sizes):
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the "
            "desired ordering "
            f"of dimensions i.e. input.dim() = {len(sizes)} is not equal to len(dims) = {len(dims)}"
        )
    try:
        order = wrap_dims(dims, len(sizes))
    except RuntimeError:
        raise RuntimeError("permute(): duplicate dims are not allowed.") from None
    return raw_view(self, [sizes[d] for d in order], [strides[d] for d in order], offset_of(self))


@op(
    "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    forms="fm",
    view=True,
    aliases=("swapaxes", "swapdims"),
    grad={"self": lambda g, dim0, dim1: t.transpose(g, dim0, dim1)},
    along=("dim0", "dim1"),
    native=("body", "gradient"),
)
def transpose(self, dim0, dim1):
    """Swap two dims."""
    sizes, strides = list(self.shape), list(stride_of(self))
    a, b = wrap_dim(dim0, len(sizes)), wrap_dim(dim1, len(sizes))
    if sizes:
        sizes[a], sizes[b] = sizes[b], sizes[a]
        strides[a], strides[b] = strides[b], strides[a]
    return raw_view(self, sizes, strides, offset_of(self))


@op(
    "t(Tensor self) -> Tensor",
    forms="fm",
    view=True,
    grad={"self": lambda g: t.t(g)},
    native=("body", "gradient"),
)
def t_(self):
    """Transpose a matrix. Vectors and 0-dimensional tensors stay as they are."""
    sizes, strides = list(self.shape), list(stride_of(self))
    if len(sizes) > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(sizes)}D")
    return raw_view(self, sizes[::-1], strides[::-1], offset_of(self))


@composite(
    "movedim(Tensor self, any source, any destination) -> Tensor",
    forms="fm",
    aliases=("moveaxis",),
    along=("source", "destination"),
)
def movedim(self, source, destination):
    """Move dims to other positions. The others keep their order."""
    n, source, destination = self.ndim, as_list(source), as_list(destination)
    if len(source) != len(destination):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(source)} dims) should contain the "
            "same number of dims "
            f"as destination ({list(destination)} dims)"
        )
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
    """Return the conjugate transpose of the last two dims."""
    if self.ndim == 0:
        return _conjugated(self)
    if self.ndim < 2:
        raise RuntimeError(
            f"tensor.adjoint() is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
        )
    return _conjugated(t.transpose(self, -2, -1))


def _conjugated(x):
    return t.conj(x) if x.is_complex() else x


@composite(
    "contiguous(Tensor self, *, any memory_format=None) -> Tensor",
    forms="m",
    pointwise=True,
    native="call",
)
def contiguous(self, *, memory_format):
    """Return `self` if its elements are dense and in order, else a contiguous copy."""
    if memory_format is not None and memory_format._name != "contiguous_format":
        if memory_format._name == "preserve_format":
            if _C.is_contiguous(self):
                return self
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        return (
            self
            if self.is_contiguous(memory_format=memory_format)
            else t.clone(self, memory_format=memory_format)
        )
    return self if _C.is_contiguous(self) else _copy(self)
