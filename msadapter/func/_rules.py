"""Rules for operators on batched tensors. A rule runs the operator once for the whole batch.

Operators without a rule run once for each element. Their values are always correct, so these rules exist for speed, but for those
of views: what is written to a view must reach the batch. Most rules follow from the facts of a declaration (see ``rule_for``).
A rule with operators' names is code for these operators alone, about their arguments and dims. A rule gets the operator's
arguments by name.
"""

from __future__ import annotations

from .. import ops
from .._errors import unsupported
from .._values.dtype import ALL
from ..autograd._tangents import is_active as is_forward_mode
from ..tensor import Tensor
from ._batched import BatchedTensor, batch_of, innermost, is_batched, levels, rewrapped, wrap
from ._binding import bind, declaration_of, decorator_of
from ._looped import IN_PLACE, Fallback, looped, tensors_in

RULES: dict = {}


class NoRule(Exception):
    """A rule does not support these arguments."""


rule = decorator_of(RULES)


def rule_for(declaration):
    """The operator's own rule, or the one that its declared facts allow; None: element by element."""
    if declaration is None:
        return None
    facts, parameters = declaration.facts, declaration.schema.parameters
    if declaration.schema.name in RULES:
        return RULES[declaration.schema.name]
    if facts.sample_rank is not None:
        return _layer
    if facts.pointwise:
        return _pointwise
    if facts.reduction is not None:
        dim = next((p for p in parameters if p.name == "dim"), None)
        return None if dim is None else _over_dims if dim.type == "int[]" else _over_one_dim
    return _along if facts.along else None


def call(function, args, kwargs):
    """Call a table operator with arguments of which some are batched."""
    present = [x for x in tensors_in((args, kwargs)) if isinstance(x, BatchedTensor)]
    if not present:
        return function(*args, **kwargs)
    level = max((x._level for x in present), key=levels.index)
    if kwargs.get("out") is not None:
        raise unsupported("torch.func.vmap", "out= arguments are not supported")
    declaration, inplace = declaration_of(function)
    found = rule_for(declaration)
    if inplace and not is_batched(args[0], level) and found is not _pointwise:
        raise RuntimeError(IN_PLACE)
    for known in (found, _view_of_each if declaration is not None and declaration.view else None):
        if known is not None:
            try:
                return known(function, bind(declaration, args, kwargs), level, inplace)
            except NoRule:
                pass
    Fallback.noted(getattr(function, "__name__", repr(function)))
    return looped(function, args, kwargs, level, inplace)


def _wrapped(result, level):
    if isinstance(result, Tensor):
        return wrap(result, level)
    made = [_wrapped(r, level) for r in result]
    return type(result)(tuple(made)) if isinstance(result, tuple) else made


def _finished(result, bound, level, inplace):
    return next(iter(bound.values())) if inplace else _wrapped(result, level)


def _only_first(bound, level, name=None):
    """Return the batch of the first argument. NoRule if other arguments are batched too."""
    first = name or next(iter(bound))
    for key, value in bound.items():
        if key != first and any(is_batched(x, level) for x in tensors_in(value)):
            raise NoRule
    if not is_batched(bound[first], level):
        raise NoRule
    return bound[first]._value


def _call(function, bound, changed) -> object:
    """Call the operator with some arguments changed."""
    declaration, _ = declaration_of(function)
    args, kwargs = [], {}
    for p in declaration.schema.parameters:
        value = changed.get(p.name, bound[p.name])
        if p.keyword_only:
            if value is not p.default:
                kwargs[p.name] = value
        else:
            args.append(value)
    # Trailing default values are left out, because some forms of an operator take fewer arguments.
    positional = [p for p in declaration.schema.parameters if not p.keyword_only]
    while args and not positional[len(args) - 1].required and args[-1] is positional[len(args) - 1].default:
        args.pop()
    return function(*args, **kwargs)


def _view_of_each(function, bound, level, inplace):
    """A view of every element as one view of the batch, so that what is written to it reaches the batch.

    The elements lie at equal distances in memory, so their views have the same strides.
    """
    value = _only_first(bound, level)
    if inplace or not level.size or is_forward_mode():
        raise NoRule  # tangents need not have the strides of their tensor
    first = _call(function, bound, {next(iter(bound)): ops.select(value, 0, 0)})
    outer = _depth(value)  # batch dims of vmaps around this one, which come first

    def whole(found):
        if not isinstance(found, Tensor):
            return type(found)(whole(one) for one in found)
        base, part, step = innermost(value), innermost(found), value.stride(0)
        if value.is_complex() and not found.is_complex():
            base, step = ops.view_as_real(base), step * 2
        elif found.is_complex() and not value.is_complex():
            base, step = ops.view_as_complex(base), step // 2
        sizes = [*part.shape[:outer], level.size, *part.shape[outer:]]
        strides = [*part.stride()[:outer], step, *part.stride()[outer:]]
        made = ops.as_strided(base, sizes, strides, part.storage_offset())
        return wrap(rewrapped(made, value), level)

    return whole(first)


def _depth(x: Tensor) -> int:
    """Return the number of vmaps by which a tensor is batched."""
    return 1 + _depth(x._value) if isinstance(x, BatchedTensor) else 0


def _in_place(name: str):
    """Return the method that gives a tensor another geometry in place, such as ``transpose_``: it becomes its own view."""

    def method(self, *args, **kwargs):
        self.__dict__["_value"] = getattr(self, name)(*args, **kwargs)._value
        return self

    method.__name__ = f"{name}_"
    return method


# ---- element by element: shapes only have to line up
def _aligned(x: Tensor, level, rank: int) -> Tensor:
    value = batch_of(x, level)
    extra = rank + 1 - value.ndim
    return ops.reshape(value, [value.shape[0], *[1] * extra, *value.shape[1:]]) if extra else value


def _common(present, rank):
    """Cast batches of 0-dimensional tensors to the common dtype.

    A 0-dimensional tensor does not affect type promotion, but its batch has a dim and would.
    """
    wide = [x for x in present if x.ndim]
    if not rank or not wide:
        return None
    made = wide[0].dtype
    for x in wide[1:]:
        made = ops.add(ops.empty([0], dtype=made), ops.empty([0], dtype=x.dtype)).dtype
    return made


def _kind(dtype) -> int:
    return 3 if dtype.is_complex else 2 if dtype.is_floating_point else 0 if dtype.is_bool else 1


def _pointwise(function, bound, level, inplace):
    if inplace and not is_batched(next(iter(bound.values())), level):
        shape = list(next(iter(bound.values())).shape)
        raise RuntimeError(
            f"output with shape {shape} doesn't match the broadcast shape {[level.size, *shape]}"
        )
    present = [x for x in bound.values() if isinstance(x, Tensor)]
    rank = max(x.ndim for x in present)
    first = next(iter(bound.values()))
    if inplace and first.ndim < rank:
        raise NoRule
    common, changed = _common(present, rank), {}
    for name, x in bound.items():
        if not is_batched(x, level):
            continue
        value = _aligned(x, level, rank)
        if common is not None and not x.ndim and x.dtype is not common and _kind(x.dtype) <= _kind(common):
            value = value.to(common)
        changed[name] = value
    return _finished(_call(function, bound, changed), bound, level, inplace)


# ---- dims counted within an element
def _shifted(d, rank: int, level=None):
    """Convert a dim of an element, or several, to dims of the batch."""
    if isinstance(d, (tuple, list)):
        return [_shifted(x, rank) for x in d]
    bound = max(rank, 1)
    if not -bound <= d < bound:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {d})"
        )
    return d % bound + 1


def _along(function, bound, level, inplace):
    value, rank = _only_first(bound, level), next(iter(bound.values())).ndim
    names = declaration_of(function)[0].facts.along
    others = tensors_in(list(bound.values())[1:])
    if not rank or inplace or others or any(bound[n] is None for n in names):
        raise NoRule
    changed = {n: _shifted(bound[n], rank) for n in names} | {next(iter(bound)): value}
    return _wrapped(_call(function, bound, changed), level)


def _last_place(sizes, strides, offset: int) -> int | None:
    """Return the last place in memory of a tensor, or None if it has no elements."""
    return None if 0 in sizes else offset + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))


@rule("as_strided", "as_strided_copy")
def _as_strided(function, bound, level, inplace):
    """Convert offsets, which count from the beginning of an element, to the batch."""
    value, offset = _only_first(bound, level), bound["storage_offset"] or 0
    sizes, strides = list(bound["size"]), list(bound["stride"])
    reached = _last_place(sizes, strides, offset)
    if reached is not None and reached > (_last_place(value.shape[1:], value.stride()[1:], 0) or 0):
        raise RuntimeError(
            f"result = tensor.as_strided({sizes}, {strides}, {offset}) can access memory outside of `tensor`: it reaches place "
            f"{reached} after the first element. This is not supported inside of vmap, where other elements of the batch follow."
        )
    batched = function(
        value, [level.size, *sizes], [value.stride(0), *strides], value.storage_offset() + offset
    )
    return wrap(batched, level)


@rule("flatten")
def _flatten(function, bound, level, inplace):
    value, rank = _only_first(bound, level), bound["self"].ndim
    if not rank:
        return wrap(ops.reshape(value, [value.shape[0], 1]), level)
    changed = {n: _shifted(bound[n], rank) for n in ("start_dim", "end_dim")}
    return wrap(_call(function, bound, changed | {"self": value}), level)


@rule("unsqueeze")
def _unsqueeze(function, bound, level, inplace):
    value, rank = _only_first(bound, level), bound["self"].ndim
    return wrap(ops.unsqueeze(value, _shifted(bound["dim"], rank + 1)), level)


@rule("permute")
def _permute(function, bound, level, inplace):
    value, rank = _only_first(bound, level), bound["self"].ndim
    return wrap(ops.permute(value, [0, *_shifted(list(bound["dims"]), rank)]), level)


@rule("masked_select")
def _masked_select(function, bound, level, inplace):
    if is_batched(bound["mask"], level):
        raise RuntimeError(
            "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask) We cannot support this because for each "
            "batch this would return a differently shaped Tensor. Please file an issue at "
            "https://github.com/pytorch/pytorch/issues if you need this feature."
        )
    raise NoRule


@rule("t")
def _t(function, bound, level, inplace):
    value = _only_first(bound, level)
    return wrap(ops.transpose(value, 1, 2) if value.ndim == 3 else value, level)


@rule("detach")
def _detach(function, bound, level, inplace):
    return wrap(ops.detach(_only_first(bound, level)), level)


@rule("view", "reshape")
def _view(function, bound, level, inplace):
    value = _only_first(bound, level)
    names = list(bound)
    shape = bound[names[1]]
    shape = [shape] if isinstance(shape, int) else shape
    if bound.get("dtype") is not None:
        if value.ndim == 1:
            raise NoRule  # elements without dims can only be seen as a dtype of the same size
        return wrap(function(value, dtype=bound["dtype"]), level)
    if not isinstance(shape, (tuple, list)) or not all(isinstance(s, int) for s in shape) or 0 in value.shape:
        raise NoRule
    return wrap(function(value, [value.shape[0], *shape]), level)


@rule("expand", "broadcast_to")
def _expand(function, bound, level, inplace):
    value, rank = _only_first(bound, level), bound["self"].ndim
    sizes = bound[list(bound)[1]]
    sizes = [sizes] if isinstance(sizes, int) else list(sizes)
    if len(sizes) < rank:
        raise NoRule
    value = _aligned(bound["self"], level, len(sizes))
    return wrap(ops.expand(value, [value.shape[0], *sizes]), level)


@rule(
    "adjoint",
    "dsplit",
    "hsplit",
    "linalg.diagonal",
    "narrow",
    "ravel",
    "split_with_sizes",
    "sum_to_size",
    "vsplit",
)
def _of_views(function, bound, level, inplace):
    """Composites whose results are views of their argument: the operators in them keep what is written to those."""
    declaration, _ = declaration_of(function)
    args = [
        [bound[p.name]] if p.type == "int[]" and isinstance(bound[p.name], int) else bound[p.name]
        for p in declaration.schema.parameters
        if not p.keyword_only
    ]
    while args[-1] is None:  # another form of the call has this argument
        args.pop()
    named = {p.name: bound[p.name] for p in declaration.schema.parameters if p.keyword_only}
    return declaration.body(*args, **named)


@rule("nn.functional.dropout")
def _dropout(function, bound, level, inplace):
    if bound["training"] and bound["p"]:
        raise NoRule
    return bound["input"]


@rule("view_as", "reshape_as", "expand_as")
def _as_other(function, bound, level, inplace):
    name = declaration_of(function)[0].schema.name.removesuffix("_as")
    return getattr(bound["self"], name)(list(bound["other"].shape))


# ---- reductions
def _reduced_dims(bound, rank):
    dim = bound["dim"]
    if isinstance(dim, (Tensor, bool)):
        raise NoRule
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return list(range(1, rank + 1))
    return _shifted(dim, rank)


@rule(
    "norm", "var", "std", "var_mean", "std_mean"
)  # they take several dims, though their schemas do not say so
def _over_dims(function, bound, level, inplace):
    first = next(iter(bound))
    value, rank = _only_first(bound, level), bound[first].ndim
    if not rank or inplace:
        raise NoRule
    changed = {first: value, "dim": _reduced_dims(bound, rank)}
    return _wrapped(_call(function, bound, changed), level)


def _over_one_dim(function, bound, level, inplace):
    """A reduction along one dim; of all elements, it is that of the flattened ones."""
    first = next(iter(bound))
    value, rank = _only_first(bound, level), bound[first].ndim
    if not rank or bound.get("other") is not None:
        raise NoRule
    if bound["dim"] is not None:
        return _wrapped(_call(function, bound, {first: value, "dim": _reduced_dims(bound, rank)}), level)
    if bound["keepdim"] or 0 in value.shape:
        raise NoRule
    flat = ops.reshape(value, [value.shape[0], -1])
    result = _call(function, bound, {first: flat, "dim": 1})
    return wrap(result[0] if isinstance(result, tuple) else result, level)


# ---- products
def _matmul(a, b, level):
    """torch.matmul of elements.

    Vectors become matrices with one row or column, and batch dims are aligned.
    """
    left, right = a.ndim == 1, b.ndim == 1
    if not a.ndim or not b.ndim:
        raise RuntimeError("both arguments to matmul need to be at least 1D, but they are "
                           f"{a.ndim}D and {b.ndim}D")  # fmt: skip
    rank = max(a.ndim, b.ndim, 2)
    x = a._value if is_batched(a, level) else a
    y = b._value if is_batched(b, level) else b
    x = ops.unsqueeze(x, -2) if left else x
    y = ops.unsqueeze(y, -1) if right else y

    def lined_up(value, element):
        return (
            ops.reshape(value, [value.shape[0], *[1] * (rank + 1 - value.ndim), *value.shape[1:]])
            if is_batched(element, level)
            else value
        )

    out = ops.matmul(lined_up(x, a), lined_up(y, b))
    out = ops.squeeze(out, -1) if right else out
    return ops.squeeze(out, -1 if right else -2) if left else out


@rule("matmul", "mm", "bmm", "mv", "dot", "inner")
def _products(function, bound, level, inplace):
    a, b = list(bound.values())[:2]
    name = declaration_of(function)[0].schema.name
    ranks = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 1), "dot": (1, 1)}.get(name)
    if (ranks and (a.ndim, b.ndim) != ranks) or (name == "inner" and not (a.ndim == b.ndim == 1)):
        raise NoRule
    if ranks and a.dtype is not b.dtype:
        raise NoRule
    return wrap(_matmul(a, b, level), level)


@rule("nn.functional.linear")
def _linear(function, bound, level, inplace):
    x, weight, bias = bound.values()
    if not is_batched(weight, level) and not is_batched(bias, level):
        return wrap(function(x._value, weight, bias), level)
    if weight.ndim != 2 or not x.ndim:
        raise NoRule
    out = ops.matmul(x, ops.transpose(weight, 0, 1))
    return out if bias is None else ops.add(out, bias)


@rule("addmm", "addmv", "baddbmm")
def _added_product(function, bound, level, inplace):
    x, a, b, beta, alpha = bound.values()
    if inplace or (beta == 0 and isinstance(x, Tensor)):
        raise NoRule
    product = ops.matmul(a, b)
    product = product if alpha == 1 else product * alpha
    return ops.add(product, x if beta == 1 else x * beta)


# ---- joins
@rule("cat", "stack", "_cat", "hstack", "vstack")
def _joined(function, bound, level, inplace):
    tensors, rest = next(iter(bound.values())), list(bound.values())[1:]
    name = declaration_of(function)[0].schema.name
    if name in ("hstack", "vstack") or not rest:
        raise NoRule
    parts = [batch_of(x, level) for x in tensors]
    rank = tensors[0].ndim
    if name != "stack" and (not rank or any(x.ndim != rank for x in tensors)):
        raise NoRule
    dim = _shifted(rest[0], rank + (name == "stack"))
    return wrap(function(parts, dim), level)


# ---- lookups
@rule("nn.functional.embedding", "embedding")
def _embedding(function, bound, level, inplace):
    weight, index = bound["weight"], bound.get("input", bound.get("indices"))
    if is_batched(weight, level) or not is_batched(index, level):
        raise NoRule
    name = "input" if "input" in bound else "indices"
    return wrap(_call(function, bound, {name: index._value}), level)


@rule("gather", "scatter_add")
def _gather(function, bound, level, inplace):
    tensors = [x for x in bound.values() if isinstance(x, Tensor)]
    rank = tensors[0].ndim
    if not rank or inplace or any(x.ndim != rank for x in tensors):
        raise NoRule
    changed = {n: batch_of(x, level) for n, x in bound.items() if isinstance(x, Tensor)}
    return wrap(_call(function, bound, changed | {"dim": _shifted(bound["dim"], rank)}), level)


@rule("index_copy")
def _index_copy(function, bound, level, inplace):
    """Take int32 indices too: PyTorch computes this with scatter."""
    index = bound["index"]
    if index.dtype is ALL["int64"]:
        raise NoRule
    if index.dtype is not ALL["int32"]:
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    return _call(function, bound, {"index": index.to(ALL["int64"])})


@rule("index_select")
def _index_select(function, bound, level, inplace):
    value, rank = _only_first(bound, level), bound["self"].ndim
    if not rank:
        raise NoRule
    return wrap(_call(function, bound, {"self": value, "dim": _shifted(bound["dim"], rank)}), level)


@rule("Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_empty", "Tensor.new_full")
def _new(function, bound, level, inplace):
    size = bound["size"]
    size = [size] if isinstance(size, int) else list(size)
    value = bound["self"]._value
    return wrap(_call(function, bound, {"self": value, "size": [value.shape[0], *size]}), level)


# ---- layers that take a batch of their own
def _layer(function, bound, level, inplace):
    """Merge the batch into the layer's own batch dimension."""
    first = next(iter(bound))
    value, rank = _only_first(bound, level), bound[first].ndim
    lone = declaration_of(function)[0].facts.sample_rank
    if rank == lone:
        return _wrapped(_call(function, bound, {first: value}), level)
    if rank != lone + 1 or 0 in value.shape:
        raise NoRule
    size, inner = value.shape[:2]
    result = _call(function, bound, {first: ops.flatten(value, 0, 1)})
    if not isinstance(result, Tensor):
        raise NoRule
    return wrap(ops.unflatten(result, 0, [size, inner]), level)


@rule("nn.functional.layer_norm")
def _layer_norm(function, bound, level, inplace):
    x, shape, weight, bias, eps = bound.values()
    if not is_batched(x, level):
        raise NoRule
    out = wrap(function(x._value, shape, None, None, eps), level)
    out = out if weight is None else ops.mul(out, weight)
    return out if bias is None else ops.add(out, bias)


# ---- subscripts
def _plain(index) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(
        p is None or p is Ellipsis or isinstance(p, slice) or (isinstance(p, int) and not isinstance(p, bool))
        for p in parts
    )


def _check_no_mask(index) -> None:
    """RuntimeError if a mask differs between the elements of a batch: so would the sizes of what it selects."""
    if any(isinstance(part, BatchedTensor) and part.dtype.is_bool for part in tensors_in(index)):
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing with a "
            "boolean mask."
        )


def get_item(x, index):
    """Return ``x[index]``, where ``x`` or the indices are batched."""
    _check_no_mask(index)
    if isinstance(x, BatchedTensor) and _plain(index):
        return wrap(x._value[(slice(None), *(index if isinstance(index, tuple) else (index,)))], x._level)
    present = [t for t in tensors_in((x, index)) if isinstance(t, BatchedTensor)]
    level = max((t._level for t in present), key=levels.index)
    Fallback.noted("__getitem__")
    return looped(lambda a, i: a[i], (x, index), {}, level, False)


def set_item(x, index, value) -> None:
    """Do ``x[index] = value``, one element after the other."""
    _check_no_mask(index)
    present = [t for t in tensors_in((x, index, value)) if isinstance(t, BatchedTensor)]
    level = max((t._level for t in present), key=levels.index)
    if not is_batched(x, level):
        raise RuntimeError(IN_PLACE)
    Fallback.noted("__setitem__")

    def assign(a, i, v):
        a[i] = v
        return a

    looped(assign, (x, index, value), {}, level, True)


def _torch_function(cls, function, types, args=(), kwargs=None):
    return call(function, args, kwargs or {})


BatchedTensor.__torch_function__ = classmethod(_torch_function)
BatchedTensor.__getitem__ = get_item
BatchedTensor.__setitem__ = set_item
for _name in ("transpose", "swapaxes", "swapdims", "t", "squeeze", "unsqueeze", "as_strided"):
    setattr(BatchedTensor, f"{_name}_", _in_place(_name))
