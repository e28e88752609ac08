"""Reading and writing by index: gather, scatter, index_*, masked_* and Tensor's subscripts."""

from __future__ import annotations

import warnings

from .._values import determinism
from .._values.dtype import ALL
from . import _on_npu
from ._declare import _C, composite, op, raw, t
from ._geometry import numel, wrap_dim
from ._subscript import getitem, setitem  # noqa: F401  (Tensor's subscripts)
from .view import beside, zeros_of, zeros_seen

# ---- along one dim by an index vector
op(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    ms="IndexSelect",
    forms="fmo",
    grad={"self": lambda g, self, dim, index: t.index_add(zeros_seen(g, self.shape), dim, index, g)},
    native="gradient",
)


@op(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    limits={"alpha": "element"},
    forms="fmio",
    grad={
        "self": lambda g: g,
        "source": lambda g, dim, index, source, alpha: t.reshape(
            _scaled(t.index_select(g, dim, index), alpha), source.shape
        ),
    },
    separate_operands=True,
)
def index_add(self, dim, index, source, *, alpha):
    """Return `self` with alpha * source added at the positions `index` of a dim."""
    return raw.IndexAddExt(self, dim, index, source, alpha)


@op(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    forms="fmio",
    grad={
        "self": lambda g, dim, index: t.index_fill(g, dim, index, 0),
        "source": lambda g, dim, index, source: t.reshape(t.index_select(g, dim, index), source.shape),
    },
    autocast={"cpu": "widest"},
    separate_operands=True,
    npu=_on_npu.index_copy,
)
def index_copy(self, dim, index, source):
    """Return `self` with `source` written at the positions `index` of a dim."""
    if index.dtype is not ALL["int64"]:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}"
        )
    return raw.IndexCopy(self, dim, index, source)


def _scaled(g, alpha):
    return g if alpha == 1 else g * alpha


@op(
    "index_fill(Tensor self, int dim, Tensor index, TensorOrScalar value) -> Tensor",
    forms="fmi",
    grad={
        "self": lambda g, dim, index: t.index_fill(g, dim, index, 0),
        "value": lambda g, dim, index: t.sum(g - t.index_fill(g, dim, index, 0)),
    },
    writes_expanded="deprecated",
    separate_operands=True,
)
def index_fill(self, dim, index, value):
    """Return `self` with `value` written at the positions `index` of a dim."""
    if isinstance(value, (bool, int, float, complex)):
        if isinstance(value, complex) and not self.is_complex():
            raise RuntimeError(
                "index_fill_(): Converting complex Scalar to non-complex type is not supported"
            )
        return raw.IndexFillScalar(self, dim, index, value)
    return raw.IndexFillTensor(self, dim, index, value)


def _refuse_second_order(g, name, operand):
    raise RuntimeError(
        f"{name}(): Double backward is unsupported for {operand} when >1 zeros in {operand} are scattered to the same "
        "position in self"
    )


@op(
    "_once_differentiable(Tensor self, str name, str operand) -> Tensor",
    forms="f",
    grad={"self": _refuse_second_order},
)
def _once_differentiable(self, name, operand):
    """Return a copy whose derivative raises an error that names the operator and its operand."""
    return raw.Clone(self)


def _first_order_only(gradient, zeros, name: str, operand: str):
    """Return the gradient of a product. Its own derivative is refused where several factors of a product are zero."""
    return t._once_differentiable(gradient, name, operand) if bool((zeros > 1).any()) else gradient


def _index_reduce_grad(g, self, dim, index, source, reduce, include_self, result, needs):
    gs = gx = None
    if reduce == "mean":
        n = t.ones_like(g) if include_self else t.zeros_like(g)
        n = t.index_add(n, dim, index, t.ones_like(source))
        n = t.masked_fill(n, n == 0, 1)
        gs, gx = g / n, t.index_select(g / n, dim, index)
    elif reduce in ("amax", "amin"):
        value = t.index_select(result, dim, index)
        mine, theirs = (self == result).to(g.dtype), (source == value).to(g.dtype)
        share = g / t.index_add(mine, dim, index, theirs)
        gs, gx = mine * share, theirs * t.index_select(share, dim, index)
    else:
        safe = t.masked_fill(self, self == 0, 1)
        gs = g * t.index_reduce(safe, dim, index, source, "prod", include_self=include_self) / safe
        zero = source == 0
        zeros = t.index_select(t.index_add(t.zeros_like(self), dim, index, zero.to(self.dtype)), dim, index)
        single = t.logical_and(zero, zeros == 1)
        others = t.index_reduce(
            self, dim, index, t.masked_fill(source, single, 1), "prod", include_self=include_self
        )
        plain = t.index_select(g * result, dim, index) / t.masked_fill(source, zero, 1)
        gx = t.where(single, t.index_select(g * others, dim, index), plain)
        gx = _first_order_only(gx, zeros, "index_reduce", "source")
    if not include_self:
        gs = t.index_fill(gs, dim, index, 0)
    return gs, gx


@op(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    forms="fmio",
    grad={("self", "source"): _index_reduce_grad},
    separate_operands=True,
    whole=True,
    npu=_on_npu.index_reduce,
)
def index_reduce(self, dim, index, source, reduce, *, include_self):
    """Return `self` with `source` reduced into the positions `index` of a dim."""
    return raw.IndexReduce(self, dim, index, source, reduce, include_self)


# ---- along one dim by an index of the same rank
@op(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    forms="fmo",
    grad={"self": lambda g, self, dim, index: t.scatter_add(zeros_seen(g, self.shape), dim, index, g)},
)
def gather(self, dim, index, *, sparse_grad):
    """Return `out[i][j] = self[index[i][j]][j]` for dim 0, and likewise for other dims.

    The gradient is dense, also with `sparse_grad`.
    """
    return raw.GatherD(self, dim, index)


@op(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    forms="fmio",
    grad={"self": lambda g: g, "src": lambda g, dim, index, src: _corner(t.gather(g, dim, index), src.shape)},
    autocast={"accelerator": "widest"},
    separate_operands=True,
)
def scatter_add(self, dim, index, src):
    """Return `self` with `src` added at `index` along a dim."""
    return raw.ScatterAddExt(self, dim, index, src)


def _corner(g, shape):
    """Return the gradient of a source of which only the first elements of each dim were read."""
    if g.shape == shape:
        return g
    spec = [n for size in g.shape for n in (1, 0, 1, size)]
    return t._region_backward(g, list(shape), spec)


_REDUCE = {None: 0, "add": 1, "multiply": 2}


@op(
    "_scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    forms="fi",
    grad={
        "self": lambda g, dim, index: t._scatter_value(g, dim, index, 0),
        "src": lambda g, dim, index, src: _corner(t.gather(g, dim, index), src.shape),
    },
    separate_operands=True,
)
def _scatter(self, dim, index, src):
    return raw.Scatter(self, dim, index, src, 0)


@op(
    "_scatter_value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    forms="fi",
    limits={"value": "element"},
    grad={"self": lambda g, dim, index: t._scatter_value(g, dim, index, 0)},
    node="ScatterBackward1",
)
def _scatter_value(self, dim, index, value):
    return raw.ScatterValue(self, dim, index, value, 0)


@op(
    "_scatter_with(Tensor self, int dim, Tensor index, any src, str reduce) -> Tensor",
    forms="fi",
    grad={"self": lambda g: _no_scatter_gradient()},
)
def _scatter_with(self, dim, index, src, reduce):
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    call = raw.ScatterValue if isinstance(src, (bool, int, float, complex)) else raw.Scatter
    return call(self, dim, index, src, _REDUCE[reduce])


def _no_scatter_gradient():
    raise RuntimeError("scatter with reduce is not differentiable; use scatter_reduce")


@composite(
    "scatter(Tensor self, int dim, Tensor index, any src=None, *, any value=None, str? reduce=None) -> Tensor",
    forms="fmio",
    separate_operands=True,
)
def scatter(self, dim, index, src, *, value, reduce):
    """Return `self` with `src` (a tensor or a number) written at `index` along a dim."""
    src = value if src is None else src
    if reduce is not None:
        return t._scatter_with(self, dim, index, src, reduce)
    if isinstance(src, (bool, int, float, complex)):
        return t._scatter_value(self, dim, index, src)
    return t._scatter(self, dim, index, src)


def _scatter_reduce_grad(g, self, dim, index, src, reduce, include_self, result, needs):
    if reduce == "sum":
        gs, gx = g, t.gather(g, dim, index)
    elif reduce == "mean":
        n = t.ones_like(g) if include_self else t.zeros_like(g)
        n = t.scatter_add(n, dim, index, t.ones_like(src))
        n = t.masked_fill(n, n == 0, 1)
        gs, gx = g / n, t.gather(g / n, dim, index)
    elif reduce in ("amax", "amin"):
        value = t.gather(result, dim, index)
        mine, theirs = (self == result).to(g.dtype), (_head(src, index) == value).to(g.dtype)
        share = g / t.scatter_add(mine, dim, index, theirs)
        gs, gx = share * mine, t.gather(share, dim, index) * theirs
    else:
        part = _head(src, index)
        safe = t.masked_fill(self, self == 0, 1)
        gs = g * t.scatter_reduce(safe, dim, index, part, "prod", include_self=include_self) / safe
        zero = part == 0
        zeros = t.gather(t.scatter_add(t.zeros_like(self), dim, index, zero.to(self.dtype)), dim, index)
        single = t.logical_and(zero, zeros == 1)
        others = t.scatter_reduce(
            self, dim, index, t.masked_fill(part, single, 1), "prod", include_self=include_self
        )
        plain = t.gather(g * result, dim, index) / t.masked_fill(part, zero, 1)
        gx = t.where(single, t.gather(g * others, dim, index), plain)
        gx = _first_order_only(gx, zeros, "scatter_reduce", "src")
    if not include_self:
        gs = t._scatter_value(gs, dim, index, 0)
    return gs, _corner(gx, src.shape)


def _head(src, index):
    """Return the part of `src` that the index covers: the first elements of each dim."""
    if src.shape == index.shape:
        return src
    return t._region(src, [n for size in index.shape for n in (1, 0, 1, size)])


@op(
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor",
    forms="fmio",
    grad={("self", "src"): _scatter_reduce_grad},
    separate_operands=True,
    whole=True,
    npu=_on_npu.scatter_reduce,
)
def scatter_reduce(self, dim, index, src, reduce, *, include_self):
    """Return `self` with `src` reduced into the positions `index` along a dim."""
    return raw.ScatterReduce(self, dim, index, src, reduce, include_self)


def _from_front(indices, size):
    """Replace negative positions, which count from the end."""
    return t.where(indices < 0, size, 0).add_(indices)


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", forms="fmo")
def take_along_dim(self, indices, dim):
    """Like `gather`, with broadcasting. Without a dim, gather from the flattened tensor."""
    if indices.dtype.storage_name != "LongStorage":
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return t.gather(t.reshape(self, [-1]), 0, _from_front(t.reshape(indices, [-1]), self.numel()))
    if self.ndim != indices.ndim:
        raise RuntimeError(
            f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {self.ndim} "
            f"dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = wrap_dim(dim, self.ndim)
    a, b = list(self.shape), list(indices.shape)
    both = [y if x == 1 else x for x, y in zip(a, b, strict=True)]
    sizes_a, sizes_b = list(both), list(both)
    sizes_a[dim], sizes_b[dim] = a[dim], b[dim]
    return t.gather(t.expand(self, sizes_a), dim, _from_front(t.expand(indices, sizes_b), a[dim]))


# ---- by tensors of positions over any dims
op(
    "_index(Tensor self, Tensor[] indices) -> Tensor",
    ms="Index",
    forms="f",
    grad={"self": lambda g, self, indices: t.index_put(zeros_seen(g, self.shape), indices, g, True)},
    whole=True,
)


@op(
    "index_put(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
    forms="fmin",
    grad={
        "self": lambda g, indices, accumulate: g if accumulate else t.index_put(g, indices, zeros_of(g, [])),
        "values": lambda g, indices: t._index(g, indices),
    },
    autocast={"accelerator": "widest"},
    writes_expanded="deprecated",
    separate_operands=True,
    whole=True,
)
def index_put(self, indices, values, accumulate):
    """Return `self` with `values` written (or added) at the positions that the index tensors name."""
    if _C.in_device_memory(self):  # MindSpore has the in-place operator only
        indices = [beside(x, self) for x in indices]
        if not values.ndim:
            values = beside(values, self)
        return raw.InplaceIndexPut(raw.Clone(self), indices, values, accumulate)
    return raw.IndexPut(self, indices, values, accumulate)


@composite("_unsafe_index(Tensor self, Tensor[] indices) -> Tensor", forms="f")
def _unsafe_index(self, indices):
    return t._index(self, indices)


@composite(
    "_unsafe_masked_index(Tensor self, Tensor mask, Tensor[] indices, Scalar fill) -> Tensor", forms="f"
)
def _unsafe_masked_index(self, mask, indices, fill):
    """Return `self[indices]` where the mask is true, and `fill` elsewhere.

    Positions may be out of range where the mask is false.
    """
    inside = [
        None if i is None else t.clamp(i, min=-self.shape[d], max=self.shape[d] - 1)
        for d, i in enumerate(indices)
    ]
    return t.masked_fill(t._index(self, inside), t.logical_not(mask), fill)


@composite(
    "_unsafe_masked_index_put_accumulate(Tensor self, Tensor mask, Tensor[] indices, Tensor values) -> Tensor",
    forms="f",
)
def _unsafe_masked_index_put_accumulate(self, mask, indices, values):
    inside = [
        None if i is None else t.clamp(i, min=-self.shape[d], max=self.shape[d] - 1)
        for d, i in enumerate(indices)
    ]
    return t.index_put(self, inside, t.masked_fill(values, t.logical_not(mask), 0), True)


op(
    "take(Tensor self, Tensor index) -> Tensor",
    ms="Take",
    forms="fmo",
    grad={"self": lambda g, self, index: t.put(zeros_seen(g, self.shape), index, g, True)},
    whole=True,
)


@op(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    forms="fmi",
    separate_operands=True,
    grad={
        "self": lambda g, index, accumulate: (
            g if accumulate else t.put(g, index, zeros_of(g, index.shape), False)
        ),
        "source": lambda g, index, source: t.reshape(t.take(g, index), source.shape),
    },
    whole=True,
    npu=_on_npu.put,
)
def put(self, index, source, accumulate):
    """Return `self` with `source` written at positions of the flattened tensor."""
    if not accumulate:
        determinism.alert("put_")
    return raw.Put(self, index, source, accumulate)


# ---- by masks
op(
    "masked_select(Tensor self, Tensor mask) -> Tensor",
    ms="MaskedSelect",
    forms="fmo",
    grad={"self": lambda g, self, mask: t._masked_select_backward(g, mask, list(self.shape))},
    whole=True,
)


@op(
    "_masked_select_backward(Tensor grad, Tensor mask, int[] sizes) -> Tensor",
    forms="f",
    grad={"grad": lambda g, mask: t.masked_select(g, mask)},
)
def _masked_select_backward(grad, mask, sizes):
    """Return zeros of `sizes`, with the elements of `grad` in order where the mask is true."""
    return raw.MaskedSelectGrad(zeros_seen(grad, sizes), mask, grad)


def _masked_source_grad(g, mask, source):
    kept = t.masked_select(g, mask)
    return t.reshape(t._region_backward(kept, [numel(source.shape)], [1, 0, 1, kept.shape[0]]), source.shape)


@op(
    "_masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    forms="fi",
    grad={"self": lambda g, mask: t.masked_fill(g, mask, 0), "source": _masked_source_grad},
    separate_operands=True,
)
def _masked_scatter(self, mask, source):
    """Return `self` with `source` where the mask is true."""
    return raw.MaskedScatter(self, mask, source)


@composite("masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor", forms="fmi")
def masked_scatter(self, mask, source):
    """Return `self` with the elements of `source`, in order, where the mask is true."""
    if mask.dtype.name == "uint8":
        warnings.warn(
            "masked_scatter_ received a mask with dtype torch.uint8, this behavior is now deprecated,please use a mask with "
            "dtype torch.bool instead.",
            stacklevel=2,
        )
    sizes = list(t.broadcast_shapes(self.shape, mask.shape))
    return t._masked_scatter(self if list(self.shape) == sizes else t.expand(self, sizes), mask, source)


op("_nonzero(Tensor self) -> Tensor", ms="NonZero", forms="f", whole=True)


@op("_nonzero_tuple(Tensor self) -> Tensor[]", forms="f", whole=True)
def _nonzero_tuple(self):
    out = raw.NonZeroExt(self)
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


@composite(
    "nonzero(Tensor self, *, bool as_tuple=False) -> any",
    forms="fmo",
    copied_to_out=True,
)
def nonzero(self, *, as_tuple):
    """Return the positions of nonzero elements: a row for each, or a tuple with a vector for each dim."""
    return tuple(t._nonzero_tuple(self)) if as_tuple else t._nonzero(self)


@composite("argwhere(Tensor self) -> Tensor", forms="fm")
def argwhere(self):
    """Return the positions of nonzero elements, a row for each."""
    return t._nonzero(self)


@composite(
    "nonzero_static(Tensor self, *, int size, int fill_value=-1) -> Tensor", forms="fmo", copied_to_out=True
)
def nonzero_static(self, *, size, fill_value):
    """Return the first `size` rows of nonzero. Missing rows are filled with fill_value."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    at = t._nonzero(self)
    have = at.shape[0]
    if have >= size:
        return t._slice(at, 0, 0, size, 1)
    return t.cat([at, t.full([size - have, self.ndim], fill_value, dtype=at.dtype)], 0)


# ---- writing into a part of a copy
def _changed(x, part, src, what):
    out = _C.raw_empty(x.shape, None, x.dtype)
    _C.copy_into(out, x)
    view = part(out)
    if list(view.shape) != list(src.shape):
        raise RuntimeError(
            f"expected src to have a size equal to the {what} of self. src size = {list(src.shape)}, {what} size = "
            f"{list(view.shape)}"
        )
    _C.copy_into(view, src)
    return out


@op(
    "select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
    forms="fm",
    grad={
        "self": lambda g, src, dim, index: t.select_scatter(g, zeros_of(g, src.shape), dim, index),
        "src": lambda g, dim, index: t.select(g, dim, index),
    },
    whole=True,
)
def select_scatter(self, src, dim, index):
    """Return a copy of `self` with `src` at one position of a dim."""
    return _changed(self, lambda x: t.select(x, dim, index), src, "slice")


@op(
    "slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    forms="fmo",
    grad={
        "self": lambda g, src, dim, start, end, step: t.slice_scatter(
            g, zeros_of(g, src.shape), dim, start, end, step
        ),
        "src": lambda g, dim, start, end, step: t._slice(g, dim, start, end, step),
    },
    whole=True,
)
def slice_scatter(self, src, dim, start, end, step):
    """Return a copy of `self` with `src` in a slice of a dim."""
    return _changed(self, lambda x: t._slice(x, dim, start, end, step), src, "slice")


@op(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    forms="fm",
    grad={
        "self": lambda g, src, offset, dim1, dim2: t.diagonal_scatter(
            g, zeros_of(g, src.shape), offset, dim1, dim2
        ),
        "src": lambda g, offset, dim1, dim2: t.diagonal(g, offset, dim1, dim2),
    },
    whole=True,
)
def diagonal_scatter(self, src, offset, dim1, dim2):
    """Return a copy of `self` with `src` on a diagonal."""
    return _changed(self, lambda x: t.diagonal(x, offset, dim1, dim2), src, "slice")


@op(
    "as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    forms="fm",
    # as in PyTorch, the gradient of self is the part of g inside the written region
    grad={
        "self": lambda g, size, stride, storage_offset: t.as_strided_scatter(
            zeros_of(g, g.shape),
            t.as_strided(t._contiguous_copy(g), size, stride, storage_offset),
            size,
            stride,
            storage_offset,
        ),
        "src": lambda g, size, stride, storage_offset: t.as_strided(
            t._contiguous_copy(g), size, stride, storage_offset
        ),
    },
)
def as_strided_scatter(self, src, size, stride, storage_offset):
    """Return a copy of `self` with `src` in the part that the sizes, strides and offset describe."""
    return _changed(self, lambda x: t.as_strided(x, size, stride, storage_offset or 0), src, "slice")
