"""Sorting, topk, medians and quantiles; search and unique elements; reductions of segments."""

from __future__ import annotations

from .._host.warn import warn_once
from .._values.dtype import ALL, int32, int64
from . import _on_npu
from ._declare import composite, op, raw, t
from ._geometry import numel, wrap_dim
from .pointwise import not_implemented
from .reduction import _share, scattered
from .view import is_tensor, make_tensor


# ---- sorting
def _values_back(gs, self, indices, dim):
    return scattered(gs[0], self.shape, dim, indices, True)


@op(
    "sort(Tensor self, int dim=-1, bool descending=False, bool? stable=False) -> (Tensor values, Tensor indices)",
    forms="fmo",
    grad={"self": _values_back},
    along="dim",
    separate_operands=True,
)
def sort(self, dim, descending, stable):
    """Return the sorted values and their positions along a dim. The sort is always stable."""
    return raw.SortExt(self, dim, descending, True)


@op(
    "argsort(Tensor self, int dim=-1, bool descending=False, bool stable=False) -> Tensor",
    forms="fmo",
    along="dim",
)
def argsort(self, dim, descending, stable):
    """Return the positions that sort a dim."""
    return raw.ArgSort(self, dim, descending, True)


@composite("msort(Tensor self) -> Tensor", forms="fmo")
def msort(self):
    """Return the values, sorted along the first dim."""
    return t.sort(self, 0)[0]


op(
    "topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    ms="TopkExt",
    forms="fmo",
    grad={"self": _values_back},
    along="dim",
)


@op(
    "kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    forms="fmo",
    grad={
        "self": lambda gs, self, indices, dim, keepdim: scattered(gs[0], self.shape, dim, indices, keepdim)
    },
    along="dim",
)
def kthvalue(self, k, dim, keepdim):
    """Return the k-th smallest value (k starts at 1) along a dim, and its position."""
    return raw.Kthvalue(self, k, dim, keepdim)


@op(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    forms="fmo",
    grad={
        "self": lambda gs, self, indices, dim, keepdim: scattered(gs[0], self.shape, dim, indices, keepdim)
    },
    whole=True,
    separate_operands=True,
    npu=_on_npu.mode,
)
def mode(self, dim, keepdim):
    """Return the most frequent value along a dim (the smallest of several), and its position."""
    return raw.Mode(self, dim, keepdim)


def _median(name, ms_all, ms_dim, npu_all=None, npu_dim=None):
    op(
        f"_{name}_all(Tensor self) -> Tensor",
        ms=ms_all,
        npu=npu_all,
        node=f"{name.title()}Backward0",
        forms="f",
        grad={"self": lambda g, self, result: _share(g, self, result, None, False)},
        whole=True,
    )
    op(
        f"_{name}_dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        ms=ms_dim,
        npu=npu_dim,
        node=f"{name.title()}Backward1",
        forms="f",
        grad={
            "self": lambda gs, self, indices, dim, keepdim: scattered(
                gs[0], self.shape, dim, indices, keepdim
            )
        },
    )

    @composite(
        f"{name}(Tensor self, int? dim=None, bool keepdim=False) -> (Tensor values, Tensor indices)",
        forms="fmo",
        reduction="other",
    )
    def body(self, dim, keepdim):
        if dim is None:
            return getattr(t, f"_{name}_all")(self)
        return getattr(t, f"_{name}_dim")(self, dim, keepdim)

    body.__doc__ = "The lower middle of all elements, or along a dim with positions."


_median("median", "MedianExt", "MedianDim")
_median("nanmedian", "NanMedian", "NanMedianDim", _on_npu.nanmedian_all, _on_npu.nanmedian_dim)


# ---- quantiles
def _quantile(name, self, q, dim, keepdim, interpolation, skip_nan):
    if not (self.dtype.is_floating_point and self.dtype.itemsize >= 4):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in ("linear", "lower", "higher", "midpoint", "nearest"):
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if self.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    scalar = not is_tensor(q)
    if scalar:
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
        q = make_tensor(q, dtype=self.dtype)
    elif q.ndim > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    elif q.dtype != self.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    elif bool(t.logical_or(q < 0, q > 1).any()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    rank, many = self.ndim, q.ndim == 1
    if dim is None:
        rows, kept = t.reshape(self, [-1]), [1] * rank
    else:
        dim = wrap_dim(dim, rank)
        kept = list(self.shape)
        if rank:
            kept[dim] = 1
        rows = t.movedim(self, [dim], [-1]) if rank else t.reshape(self, [1])
    ordered = t.sort(rows, -1)[0]
    n = ordered.shape[-1]
    place = _ranks(t.reshape(q, [-1]), ordered.detach(), n, skip_nan, interpolation)
    below = t.floor(place).to(t.arange(1).dtype)
    out = t.gather(ordered, -1, below)
    if interpolation in ("linear", "midpoint"):
        above = t.gather(ordered, -1, t.ceil(place).to(below.dtype))
        weight = t.full_like(place, 0.5) if interpolation == "midpoint" else place - below.to(place.dtype)
        out = t.lerp(out, above, weight)
    out = t.movedim(out, [-1], [0])
    if keepdim:
        out = t.reshape(out, [out.shape[0], *kept])
    return out if many else t.squeeze(out, [0])


def _ranks(q, ordered, n, skip_nan, interpolation):
    """Return the fractional position of each quantile in the sorted rows, one column for each q.

    In rows with nan the position is that of the nan, unless skip_nan is set.
    """
    lead = list(ordered.shape[:-1])
    nan = t.isnan(ordered)
    if skip_nan:
        valid = t.sum(t.logical_not(nan), [-1], True).to(q.dtype)
        place = q * t.clamp(valid - 1, min=0)
    else:
        place = t.expand(q * (n - 1), [*lead, q.shape[0]])
        place = t.masked_fill(place, t.any(nan, [-1], True), n - 1)
    step = {"lower": t.floor, "higher": t.ceil, "nearest": t.round}.get(interpolation)
    return step(place) if step else place


@composite(
    "quantile(Tensor self, any q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
    forms="fmo",
    autocast={"cpu": "float32"},
    copied_to_out=True,
)
def quantile(self, q, dim, keepdim, *, interpolation):
    """Return quantiles along a dim, or of all elements. Several q form a new first dim."""
    return _quantile("quantile", self, q, dim, keepdim, interpolation, False)


@composite(
    "nanquantile(Tensor self, any q, int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor",
    forms="fmo",
    autocast={"cpu": "float32"},
    copied_to_out=True,
)
def nanquantile(self, q, dim, keepdim, *, interpolation):
    """Like `quantile`, but nan values are left out."""
    return _quantile("nanquantile", self, q, dim, keepdim, interpolation, True)


# ---- search
@op(
    "_searchsorted(Tensor sorted_sequence, Tensor input, Tensor? sorter, bool out_int32, bool right) -> Tensor",
    forms="f",
    promote="default",
    promote_args=("sorted_sequence", "input"),
    whole=True,
)
def _searchsorted(sorted_sequence, input, sorter, out_int32, right):
    return raw.SearchSorted(sorted_sequence, input, sorter, int32 if out_int32 else int64, right)


def _check_sorter(sequence, sorter):
    """Raise RuntimeError unless ``sorter`` holds a position for each element in the last dim of ``sequence``."""
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype.name != "int64":
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_name}"
        )
    if sorter.numel() and (sorter.min().item() < 0 or sorter.max().item() >= sequence.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


@composite(
    "searchsorted(Tensor sorted_sequence, any input, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) "
    "-> Tensor",
    forms="fo",
    copied_to_out=True,
)
def searchsorted(sorted_sequence, input, *, out_int32, right, side, sorter):
    """Return the positions at which the values can be inserted so that the last dim stays sorted."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if not is_tensor(input):
        if sorted_sequence.ndim != 1:
            raise RuntimeError(
                "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
                f"boundaries tensor dim({sorted_sequence.ndim}) and input value's dim(0) numel(1)"
            )
        input = make_tensor(_wrapped(input, sorted_sequence))
    if sorter is not None:
        _check_sorter(sorted_sequence, sorter)
    for name, given in (("boundary", sorted_sequence), ("input value", input), ("sorter", sorter)):
        if given is not None and not given.is_contiguous():
            warn_once(
                f"torch.searchsorted(): {name} tensor is non-contiguous, this will lower the performance due to extra data copy "
                "when converting non-contiguous tensor to contiguous."
            )
    return t._searchsorted(sorted_sequence, input, sorter, out_int32, right or side == "right")


@composite(
    "bucketize(any input, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    forms="fo",
    copied_to_out=True,
)
def bucketize(input, boundaries, *, out_int32, right):
    """Return the number of the bucket of each value. The boundaries of the buckets are sorted."""
    if boundaries.ndim != 1:
        raise RuntimeError(
            f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
        )
    return t.searchsorted(boundaries, input, out_int32=out_int32, right=right)


op(
    "_isin(Tensor elements, Tensor test_elements, bool invert) -> Tensor",
    ms="IsinTensor",
    npu=_on_npu.isin,
    promote="default",
    promote_args=("elements", "test_elements"),
    forms="f",
    pointwise=False,
    whole=True,
)


def _wrapped(number, tensor):
    """Return an int beyond 64 bits as PyTorch compares it with ``tensor``.

    An unsigned one becomes a float beside floats, and wraps around beside integers. OverflowError for any other.
    """
    if not isinstance(number, int) or -(2**63) <= number < 2**63:
        return number
    if number < 0:
        raise OverflowError("can't convert negative int to unsigned")
    if number >= 2**64:
        raise OverflowError("int too big to convert")
    return float(number) if tensor.dtype.is_floating_point else number - 2**64


def _number_like(number, tensor):
    """A number as a tensor that can be compared with `tensor`: of its dtype if that holds the number, else wider."""
    if isinstance(number, float) and not tensor.is_floating_point():
        return make_tensor(number)
    number = _wrapped(number, tensor)
    try:
        return make_tensor(number, dtype=tensor.dtype)
    except RuntimeError:  # such as 300 beside uint8
        return make_tensor(number)


def _check_sortable(x) -> None:
    """Raise RuntimeError for elements that isin does not take."""
    kind = type(x) if isinstance(x, (bool, complex)) else getattr(x, "dtype", None)
    name = {bool: "Bool", complex: "ComplexDouble"}.get(kind)
    if kind is ALL["bool"] or kind in (ALL["complex64"], ALL["complex128"]):
        name = kind.scalar_name
    if name:
        raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")


@composite(
    "isin(any elements, any test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor",
    forms="fo",
)
def isin(elements, test_elements, *, assume_unique, invert):
    """Return whether each element is among the test elements."""
    for x in (elements, test_elements):
        _check_sortable(x)
    if not is_tensor(elements):
        elements = _number_like(elements, test_elements)
    if not is_tensor(test_elements):
        test_elements = _number_like(test_elements, elements)
    return t._isin(elements, test_elements, invert)


# ---- unique
def _without(results, inverse, counts):
    values, i, n = results
    out = (values, *([i] if inverse else []), *([n] if counts else []))
    return out if len(out) > 1 else values


op(
    "_unique2(Tensor self, bool sorted, bool return_inverse, bool return_counts) -> (Tensor, Tensor, Tensor)",
    ms="Unique2",
    forms="f",
    whole=True,
    grad={"self": not_implemented("_unique2")},
)


def _distinct_slices(find, self, dim: int, *wanted) -> tuple:
    """Call an operator of MindSpore that compares slices, and return (values, inverse, counts).

    As in PyTorch, the values are a contiguous tensor whose first dim has moved to `dim`.
    """
    if not (dim := wrap_dim(dim, self.ndim)):
        return find(self, *wanted, 0)
    values, inverse, counts = find(t.movedim(self, dim, 0), *wanted, 0)
    return t.movedim(values, 0, dim), inverse, counts


@op(
    "_unique_dim(Tensor self, bool sorted, bool return_inverse, int dim) -> (Tensor, Tensor, Tensor)",
    forms="f",
    whole=True,
    grad={"self": not_implemented("unique_dim")},
)
def _unique_dim(self, sorted, return_inverse, dim):
    return _distinct_slices(raw.UniqueDim, self, dim, sorted, return_inverse)


def _sliceable(self, dim: int, name: str):
    """Return the tensor. RuntimeError if its slices along ``dim`` have no elements to compare."""
    if not self.numel() and (
        self.size(dim) or any(not n for d, n in enumerate(self.shape) if d != wrap_dim(dim, self.ndim))
    ):
        raise RuntimeError(
            f"There are 0 sized dimensions, and they aren't selected, so {name} cannot be applied"
        )
    return self


@composite(
    "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    forms="f",
)
def _unique(self, sorted, return_inverse):
    """Return the distinct elements and the inverse positions, which are empty unless they are asked for."""
    values, inverse, _ = t._unique2(self, sorted, return_inverse, False)
    return values, inverse


@composite(
    "aten.unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)",
    forms="f",
)
def unique_dim(self, dim, sorted, return_inverse, return_counts):
    """Return the distinct slices of a dim, the inverse positions and the counts, whatever is asked for."""
    return t._unique_dim(_sliceable(self, dim, "unique"), sorted, True, dim)


@composite(
    "unique(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False, int? dim=None) -> any",
    forms="fm",
)
def unique(self, sorted, return_inverse, return_counts, dim):
    """Return the distinct elements (or slices of a dim), sorted; with inverse positions and counts on
    request.
    """
    found = (
        t._unique2(self, True, return_inverse, return_counts)
        if dim is None
        else t._unique_dim(_sliceable(self, dim, "unique"), True, return_inverse, dim)
    )
    return _without(found, return_inverse, return_counts)


@op(
    "_unique_consecutive(Tensor self, bool return_inverse, bool return_counts, int? dim) -> (Tensor, Tensor, Tensor)",
    forms="f",
    whole=True,
    grad={"self": not_implemented("unique_consecutive")},
)
def _unique_consecutive(self, return_inverse, return_counts, dim):
    if dim is None:
        return raw.UniqueConsecutive(self, return_inverse, return_counts, None)
    return _distinct_slices(raw.UniqueConsecutive, self, dim, return_inverse, return_counts)


@composite(
    "unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> any",
    forms="fm",
)
def unique_consecutive(self, return_inverse, return_counts, dim):
    """Return the elements (or slices of a dim) that differ from the one before them."""
    values = self if dim is None else _sliceable(self, dim, "unique_consecutive")
    found = t._unique_consecutive(values, return_inverse, return_counts, dim)
    return _without(found, return_inverse, return_counts)


# ---- segments
def _check_segments(data, lengths, indices, offsets, axis: int, unsafe: bool) -> None:
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    name, given = ("offsets", offsets) if lengths is None else ("lengths", lengths)
    if axis != given.ndim - 1:
        raise RuntimeError(
            f"segment_reduce(): Expected axis to be the last dimension of {name} but got {axis}."
        )
    if given.dtype.storage_name not in ("LongStorage", "IntStorage"):
        raise NotImplementedError(
            f"\"_segment_reduce_{name}_cpu_kernel1\" not implemented for '{given.dtype.scalar_name}'"
        )
    if not data.is_floating_point():
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{data.dtype.scalar_name}'")
    if lengths is not None and not unsafe and t.min(lengths).item() < 0:
        raise RuntimeError("lengths contains negative value!")


def _places(data, lengths, offsets, axis: int, unsafe: bool):
    """Return (rows, segments, lengths of all segments): which rows of the flattened data belong to which segments.

    Rows are None if all do. Lengths that are not checked (``unsafe``), and offsets, may leave out elements.
    """
    size = data.shape[axis]
    if lengths is None:
        n = offsets.shape[-1]
        last = t._slice(offsets, offsets.ndim - 1, 1, n, 1)
        lengths = last - t._slice(offsets, offsets.ndim - 1, 0, n - 1, 1)
    count = lengths.shape[-1]
    totals = t.sum(t.reshape(lengths, [numel(lengths.shape[:-1]), count]), [1]).tolist()
    starts = [0] * len(totals)
    if offsets is not None:
        starts = t.reshape(t.select(offsets, offsets.ndim - 1, 0), [len(totals)]).tolist()
    rows = None
    if any(starts) or any(total != size for total in totals):
        if offsets is None and not unsafe:
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe."
            )
        parts = [
            t.arange(i * size + start, i * size + start + total)
            for i, (start, total) in enumerate(zip(starts, totals, strict=True))
        ]
        rows = t.cat(parts)
    each = t.reshape(lengths, [numel(lengths.shape)])
    return rows, t.repeat_interleave(t.arange(each.shape[0]), each), each


def _flat_rows(x, axis: int, rows=None):
    """Return a tensor with the dims up to the axis flattened to one, or some rows of this."""
    flat = t.reshape(x, [numel(x.shape[: axis + 1]), *x.shape[axis + 1 :]])
    return flat if rows is None else t.index_select(flat, 0, rows)


_START = {"sum": 0, "mean": 0, "prod": 1, "max": float("-inf"), "min": float("inf")}
_SCATTERED = {"sum": "sum", "mean": "sum", "prod": "prod", "max": "amax", "min": "amin"}


def _reduced_segments(flat, segments, count: int, reduce: str, start):
    """Return the reduction of the rows of each segment, which begins with the number ``start``."""
    out = t.full([count, *flat.shape[1:]], start, dtype=flat.dtype, device=flat.device)
    at = t.expand(t.reshape(segments, [-1] + [1] * (flat.ndim - 1)), list(flat.shape))
    return t.scatter_reduce(out, 0, at, flat, _SCATTERED[reduce])


def _segment_grad(g, data, result, reduce, lengths, offsets, axis, initial):
    """The gradient of PyTorch, also where it is unusual: a NaN has a part in the extremum of its segment, and a negative
    gradient is not divided among equal extrema."""
    axis = wrap_dim(axis, data.ndim)
    rows, segments, each = _places(data, lengths, offsets, axis, True)
    flat = _flat_rows(data, axis, rows)
    g, result = _flat_rows(g, axis), _flat_rows(result, axis)
    of_each = lambda x: t.index_select(x, 0, segments)  # noqa: E731
    if reduce == "mean":
        g = g / t.reshape(each.to(g.dtype), [-1] + [1] * (g.ndim - 1)).clamp(min=1)
    if reduce in ("max", "min"):
        held = t.logical_or(t.isnan(flat), flat == of_each(result)).to(g.dtype)
        shared = g / t.index_add(t.zeros_like(g), 0, segments, held).clamp(min=1)
        gx = of_each(t.where(g > 0, shared, g))
        gx = t.masked_fill(gx, held == 0, 0)
    elif reduce == "prod":
        gx = _prod_grad(g, flat, result, segments, _START[reduce] if initial is None else initial)
    else:
        gx = of_each(g)
    if rows is not None:
        whole = t.zeros([numel(data.shape[: axis + 1]), *flat.shape[1:]], dtype=gx.dtype, device=gx.device)
        gx = t.index_add(whole, 0, rows, gx)
    return t.reshape(gx, list(data.shape))


def _prod_grad(g, flat, result, segments, start):
    """Each element gets the product of the others: by a division, or by a count of the others where it is zero or NaN."""
    of_each = lambda x: t.index_select(x, 0, segments)  # noqa: E731
    zero, nan = flat == 0, t.isnan(flat)
    special = t.logical_or(zero, nan)
    usual = t.masked_fill(flat, special, 1)
    gx = of_each(g * result) / usual
    if not bool(t.any(special)):
        return gx
    product = of_each(_reduced_segments(usual, segments, g.shape[0], "prod", start))
    for mask, value in ((zero, 0), (nan, float("nan"))):
        own = mask.to(g.dtype)
        others = of_each(t.index_add(t.zeros_like(g), 0, segments, own)) - own
        product = t.where(others > 0, product * value, product)
    return t._once_differentiable(t.where(special, of_each(g) * product, gx), "segment_reduce", "data")


@op(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? "
    "offsets=None, int axis=0, "
    "bool unsafe=False, Scalar? initial=None) -> Tensor",
    forms="f",
    aliases=("_segment_reduce",),
    grad={"data": _segment_grad},
    whole=True,
)
def segment_reduce(data, reduce, *, lengths, indices, offsets, axis, unsafe, initial):
    """Reduce consecutive segments of a dim, which are given by their lengths or offsets."""
    axis = wrap_dim(axis, data.ndim)
    _check_segments(data, lengths, indices, offsets, axis, unsafe)
    if reduce not in _START:
        raise RuntimeError(f"segment_reduce(): unsupported reduction {reduce}")
    rows, segments, each = _places(data, lengths, offsets, axis, unsafe)
    flat, count = _flat_rows(data, axis, rows), each.shape[0]
    start = _START[reduce] if initial is None else initial
    out = _reduced_segments(flat, segments, count, reduce, start)
    if reduce == "mean":
        lengths_ = t.reshape(each.to(data.dtype), [-1] + [1] * (flat.ndim - 1))
        empty = lengths_ == 0
        nothing = out if initial is not None else t.full_like(out, float("nan"))
        out = t.where(empty, nothing, out / t.masked_fill(lengths_, empty, 1))
    lead = list(data.shape[:axis])
    return t.reshape(out, [*lead, count // max(numel(lead), 1), *data.shape[axis + 1 :]])
