"""Sharding rules of operators that only rearrange values: views, concatenation, splitting."""

from __future__ import annotations

import math

from ... import ops
from ._dispatch import ADJUST, Call, Strategy, rule
from .placement_types import Replicate, Shard

R = Replicate()


def _sums(c: Call) -> list:
    """The strategies in which a Partial operand gives a Partial result."""
    kinds = dict.fromkeys(p for p in map(c.here, range(len(c.operands))) if p.is_partial())
    return [Strategy((kind,) * len(c.outs), (kind,) * len(c.operands)) for kind in kinds]


def _mapped(c: Call, pairs) -> list:
    """The strategies for pairs (dimension of the operand, dimension of the result)."""
    return [Strategy((Shard(new),) * len(c.outs), (Shard(old),)) for old, new in pairs] + _sums(c)


def groups(old, new) -> list:
    """Splits the dimensions of ``old`` and ``new`` into the shortest consecutive groups with equal products.

    Both have the same number of elements, which is not 0.
    """
    made, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        a, b = (
            ([i], [j])
            if i < len(old) and j < len(new)
            else ([i] if i < len(old) else [], [j] if j < len(new) else [])
        )
        left = old[i] if a else 1
        right = new[j] if b else 1
        i, j = i + len(a), j + len(b)
        while left != right:
            if left < right:
                left, a, i = left * old[i], [*a, i], i + 1
            else:
                right, b, j = right * new[j], [*b, j], j + 1
        made.append((a, b))
    return made


def _first(dims, shape):
    """The first dimension whose size is not 1."""
    return next((d for d in dims if shape[d] != 1), dims[0] if dims else None)


@rule("view", "_unsafe_view")
def _view(c: Call) -> list:
    old, new = tuple(c.operands[0].shape), tuple(c.outs[0].shape)
    if c.bound["size"] is None:  # the bytes as another dtype, in which parts do not add up
        return [Strategy((Shard(d),), (Shard(d),)) for d in range(len(old) - 1)]
    if not math.prod(old):
        return _mapped(c, [])
    pairs = []
    for a, b in groups(old, new):
        x, y = _first(a, old), _first(b, new)
        if x is None or y is None:
            continue
        alone = old[x] == new[y] == math.prod(old[d] for d in a)  # apart from dimensions of size 1
        if alone or c.even(0, x) and new[y] % (c.parts * c.cut.get((0, x), 1)) == 0:
            pairs.append((x, y))
    return _mapped(c, pairs)


def _local_view(arguments, plan, bound):
    """Replaces the sizes by local ones, and copies the local tensor if it cannot be viewed."""
    if bound["size"] is None:
        return
    x, new = arguments["self"], list(plan.described[0].shape)
    old = tuple(bound["self"].shape)
    if not math.prod(old):
        return
    for a, b in groups(old, new):
        y = _first(b, new)
        if y is None:
            continue
        rest = math.prod(new[d] for d in b if d != y)
        new[y] = math.prod(x.shape[d] for d in a) // rest
    arguments["size"] = new
    if not x.is_contiguous():
        arguments["self"] = ops.clone(x).contiguous()


ADJUST["view"] = ADJUST["_unsafe_view"] = _local_view


@rule("expand")
def _expand(c: Call) -> list:
    x, out = c.operands[0], c.outs[0].shape
    extra = len(out) - x.ndim
    return _mapped(c, [(d, d + extra) for d in range(x.ndim) if x.shape[d] == out[d + extra]])


def _local_expand(arguments, plan, bound):
    size, x, extra = (
        list(plan.described[0].shape),
        arguments["self"],
        len(plan.described[0].shape) - arguments["self"].ndim,
    )
    for placement in plan.outs[0]:
        if placement.is_shard():
            size[placement.dim] = x.shape[placement.dim - extra]
    arguments["size"] = size


ADJUST["expand"] = _local_expand


@rule("permute")
def _permute(c: Call) -> list:
    rank = c.operands[0].ndim
    return _mapped(c, [(d % rank, new) for new, d in enumerate(c.bound["dims"])])


@rule("transpose", "t")
def _transpose(c: Call) -> list:
    rank = c.operands[0].ndim
    if rank < 2:
        return _mapped(c, [(0, 0)] * rank)
    a, b = (0, 1) if c.name == "t" else (c.bound["dim0"] % rank, c.bound["dim1"] % rank)
    return _mapped(c, [(d, b if d == a else a if d == b else d) for d in range(rank)])


def _squeezed(x, dims) -> list:
    """The dimensions that are removed."""
    rank = max(x.ndim, 1)
    wanted = (
        range(x.ndim) if dims is None else [d % rank for d in ([dims] if isinstance(dims, int) else dims)]
    )
    return [d for d in wanted if x.ndim and x.shape[d] == 1]


@rule("squeeze")
def _squeeze(c: Call) -> list:
    x = c.operands[0]
    gone = _squeezed(x, c.bound["dim"])
    return _mapped(c, [(d, d - sum(g < d for g in gone)) for d in range(x.ndim) if d not in gone])


def _local_squeeze(arguments, plan, bound):
    arguments["dim"] = _squeezed(bound["self"], bound["dim"])


ADJUST["squeeze"] = _local_squeeze


@rule("unsqueeze")
def _unsqueeze(c: Call) -> list:
    rank = c.operands[0].ndim
    dim = c.bound["dim"] % (rank + 1)
    return _mapped(c, [(d, d + (d >= dim)) for d in range(rank)])


@rule("select", "_unbind")
def _select(c: Call) -> list:
    dim = c.bound["dim"] % c.operands[0].ndim
    return _mapped(c, [(d, d - (d > dim)) for d in range(c.operands[0].ndim) if d != dim])


@rule("_slice")
def _slice(c: Call) -> list:
    x = c.operands[0]
    dim = c.bound["dim"] % x.ndim
    whole = c.outs[0].shape == tuple(x.shape) and c.bound["step"] == 1
    return _mapped(c, [(d, d) for d in range(x.ndim) if d != dim or whole])


@rule("_split", "_split_with_sizes", "_unsafe_split")
def _split(c: Call) -> list:
    dim = c.bound["dim"] % c.operands[0].ndim
    return _mapped(c, [(d, d) for d in range(c.operands[0].ndim) if d != dim])


@rule("_cat")
def _cat(c: Call) -> list:
    rank = len(c.outs[0].shape)
    dim = c.bound["dim"] % rank
    full = all(x.ndim == rank for x in c.operands)
    made = [Strategy((Shard(d),), (Shard(d),) * len(c.operands)) for d in range(rank) if d != dim and full]
    return made + _sums(c)


@rule("stack")
def _stack(c: Call) -> list:
    rank = c.operands[0].ndim
    dim = c.bound["dim"] % (rank + 1)
    made = [Strategy((Shard(d + (d >= dim)),), (Shard(d),) * len(c.operands)) for d in range(rank)]
    return made + _sums(c)
