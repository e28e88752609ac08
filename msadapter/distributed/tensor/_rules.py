"""Sharding rules of operators that compute values: element-wise, matrix products, reductions, along a dimension.

``general_rule`` registers a rule for all operators whose declarations state a fact. A rule that names operators contains what
is special about their arguments and dimensions, and only DTensor uses it.
"""

from __future__ import annotations

from ._dispatch import ADJUST, Call, Strategy, general_rule, rule
from .placement_types import Partial, Replicate, Shard

R = Replicate()


# ---- element by element
def _aligned(x, rank: int, dim: int, length: int):
    """The operand's placement if dimension ``dim`` of the result is sharded; Replicate if the operand is broadcast there."""
    own = dim - (rank - x.ndim)
    if own < 0 or (x.shape[own] == 1 and length != 1):
        return R
    return Shard(own)


def _kinds(c: Call) -> list:
    """The Partial placements among the operands."""
    return list(dict.fromkeys(p for p in map(c.here, range(len(c.operands))) if p.is_partial()))


def linear(c: Call) -> list:
    """The strategies in which Partial operands give Partial results: the operator is linear in these operands."""
    if not (c.outs[0].dtype.is_floating_point or c.outs[0].dtype.is_complex):
        return []
    made, count, outs = [], len(c.operands), len(c.outs)
    for kind in _kinds(c):
        if c.facts.copies and kind.reduce_op in ("max", "min", "product"):
            made.append(Strategy((kind,), (kind,)))
        if kind.reduce_op not in ("sum", "avg"):
            continue
        if c.facts.linear == "jointly":
            if _only_tensors(c):
                made.append(Strategy((kind,) * outs, (kind,) * count))
            continue
        for i, (name, _) in enumerate(c.keys):
            if name in c.facts.linear:
                made.append(Strategy((kind,) * outs, tuple(kind if j == i else R for j in range(count))))
    return made


def _only_tensors(c: Call) -> bool:
    numbers = [v for k, v in c.bound.items() if k == "other"]
    return not any(isinstance(v, (int, float, complex)) for v in numbers)


@general_rule("pointwise")
def pointwise(c: Call) -> list:
    """Any dimension of the result may be sharded."""
    shape = c.outs[0].shape
    rank = len(shape)
    made = []
    for dim in _sharded_dims(c, rank):
        ins = tuple(_aligned(x, rank, dim, shape[dim]) for x in c.operands)
        if all(p.is_replicate() for p in ins):
            continue
        made.append(Strategy((Shard(dim),) * len(c.outs), ins))
    return made + linear(c)


def _sharded_dims(c: Call, rank: int) -> list:
    """The dimensions of the result along which an operand is sharded, those of the largest operand first."""
    order = sorted(range(len(c.operands)), key=lambda i: -c.operands[i].numel())
    found = []
    for i in order:
        here = c.here(i)
        if here.is_shard():
            found.append(here.dim + rank - c.operands[i].ndim)
    return list(dict.fromkeys(found))


@rule("zeros_like", "ones_like", "full_like", "empty_like")
def _like(c: Call) -> list:
    made = [Strategy((Shard(d),), (Shard(d),)) for d in range(c.operands[0].ndim)]
    partial = [
        Strategy((kind if c.name in ("zeros_like", "empty_like") else R,), (kind,)) for kind in _kinds(c)
    ]
    return made + partial


@rule(
    "Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_full", "Tensor.new_empty", "Tensor.new_empty_strided"
)
def _new(c: Call) -> list:
    here = c.here(0)
    if here.is_shard() and tuple(c.outs[0].shape) == tuple(c.operands[0].shape):
        return [Strategy((here,), (here,))]
    return [Strategy((R,), (here,))]


def _new_size(arguments, plan, bound):
    if any(p.is_shard() for p in plan.outs[0]):
        arguments["size"] = list(arguments["self"].shape)


for _name in ("Tensor.new_zeros", "Tensor.new_ones", "Tensor.new_full", "Tensor.new_empty"):
    ADJUST[_name] = _new_size


# ---- products: dimensions are named by letters, as in einsum
def _letters(c: Call):
    """Returns (letters of each operand, letters of the result, index of the added operand) of a product."""
    a, b = c.operands[0], c.operands[1]
    name = c.name
    if name in ("mm", "_mm_flags"):
        return ["mk", "kn"], "mn", None
    if name in ("bmm", "_bmm_flags"):
        return ["bmk", "bkn"], "bmn", None
    if name == "mv":
        return ["mk", "k"], "m", None
    if name in ("dot", "vdot"):
        return ["k", "k"], "", None
    if name == "addmm":
        return ["mn"[2 - a.ndim :], "mk", "kn"], "mn", 0
    if name == "addmv":
        return ["m"[1 - a.ndim :], "mk", "k"], "m", 0
    if name == "baddbmm":
        return ["bmn"[3 - a.ndim :], "bmk", "bkn"], "bmn", 0
    if name == "nn.functional.linear":
        rows = "ABCDEFGH"[: a.ndim - 1]
        wide = "n" if b.ndim == 2 else ""
        return (
            [rows + "k", wide + "k", wide][: len(c.operands)],
            rows + wide,
            2 if len(c.operands) == 3 else None,
        )
    return _matmul_letters(a.ndim, b.ndim)


def _matmul_letters(a: int, b: int):
    if a == 1 or b == 1:
        rows, columns = "ABCDEFGH"[: max(a - 1, 0)], "BCDEFGH"[: max(b - 2, 0)]
        if b == 1:
            return [rows + "k", "k"], rows, None
        return ["k", columns + "kn"], columns + "n", None
    batch = "ABCDEFGH"[: max(a, b) - 2]
    return [batch[len(batch) - a + 2 :] + "mk", batch[len(batch) - b + 2 :] + "kn"], batch + "mn", None


@rule(
    "mm",
    "_mm_flags",
    "bmm",
    "_bmm_flags",
    "mv",
    "dot",
    "vdot",
    "addmm",
    "addmv",
    "baddbmm",
    "matmul",
    "nn.functional.linear",
)
def _product(c: Call) -> list:
    ins, out, added = _letters(c)
    made = []
    for letter in dict.fromkeys("".join(ins)):
        placement = Shard(out.index(letter)) if letter in out else Partial()
        operands = []
        for i, letters in enumerate(ins):
            x = c.operands[i]
            if letter in letters and not (
                x.shape[letters.index(letter)] == 1
                and letter in out
                and c.outs[0].shape[out.index(letter)] != 1
            ):
                operands.append(Shard(letters.index(letter)))
            else:
                operands.append(Partial() if i == added and placement.is_partial() else R)
        if any(p.is_shard() for p in operands):
            made.append(Strategy((placement,), tuple(operands)))
    for kind in _kinds(c):
        if kind.reduce_op not in ("sum", "avg"):
            continue
        for i in range(len(ins)):
            if i != added:
                operands = [kind if j in (i, added) else R for j in range(len(ins))]
                made.append(Strategy((kind,), tuple(operands)))
    return made


# ---- reductions
def _dims(c: Call, key: str = "dim"):
    """The dimensions along which an operator reduces; all if none are given."""
    rank = c.operands[0].ndim
    value = c.bound.get(key)
    if value is None or (isinstance(value, (list, tuple)) and not value):
        return list(range(rank))
    value = [value] if isinstance(value, int) else value
    return [d % rank if rank else 0 for d in value]


def _after(dim: int, gone, keep: bool) -> int:
    """The index of a dimension after a reduction."""
    return dim if keep else dim - sum(d < dim for d in gone)


def _reduction_kind(c: Call, dim: int):
    joined = c.facts.reduction
    if joined == "sum":
        return Partial()
    if joined == "mean" and c.even(0, dim):
        return Partial("avg")
    return Partial(joined) if joined in ("max", "min") and not c.recorded else None


@general_rule("reduction")
def reduction(c: Call) -> list:
    """Dimensions that remain may be sharded. For sums, means and extrema, reduced dimensions may be sharded too."""
    gone, keep = _dims(c), bool(c.bound.get("keepdim"))
    made = []
    for dim in _sharded_dims(
        c, c.operands[0].ndim
    ):  # only these; other sharded operands are replicated, as in PyTorch
        if dim not in gone:
            made.append(Strategy((Shard(_after(dim, gone, keep)),) * len(c.outs), (Shard(dim),)))
            continue
        kind = _reduction_kind(c, dim) if c.operands[0].shape[dim] else None
        if kind is not None and (kind.reduce_op == "sum" or c.even(0, dim)):
            made.append(Strategy((kind,), (Shard(dim),)))
    if c.facts.reduction in ("sum", "mean"):
        made += [Strategy((kind,), (kind,)) for kind in _kinds(c) if kind.reduce_op in ("sum", "avg")]
    return made


# ---- along one dim, the shape stays
@rule("roll", "tril", "triu")
def _along_these(c: Call) -> list:
    rank = c.operands[0].ndim
    gone = _dims(c, "dims") if c.name == "roll" else [rank - 2, rank - 1]
    made = _others_cut(c, gone)
    return made + [Strategy((kind,), (kind,)) for kind in _kinds(c) if kind.reduce_op in ("sum", "avg")]


def _others_cut(c: Call, gone) -> list:
    cut = [d for d in _sharded_dims(c, c.operands[0].ndim) if d not in gone]
    return [Strategy((Shard(d),) * len(c.outs), (Shard(d),) * len(c.operands)) for d in cut]


@general_rule("along")
def along(c: Call) -> list:
    """Dims that the declaration does not name may be sharded, if every result has the shape of the operands."""
    shape = tuple(c.operands[0].shape)
    if any(tuple(x.shape) != shape for x in c.operands) or any(tuple(x.shape) != shape for x in c.outs):
        return []
    gone = [d for name in c.facts.along for d in _dims(c, name)]
    return _others_cut(c, gone) + linear(c)


@rule("topk", "kthvalue", "nn.functional.glu")  # the dim gets another size
def _along_a_dim_of_another_size(c: Call) -> list:
    rank = c.operands[0].ndim
    dim = c.bound["dim"] % rank if rank else 0
    return [Strategy((Shard(d),) * len(c.outs), (Shard(d),)) for d in range(rank) if d != dim]


# ---- normalization: the leading dims may be cut
@rule("_layer_norm", "_rms_norm")
def _norm(c: Call) -> list:
    x = c.operands[0]
    inner = len(c.bound["normalized_shape"]) if c.name == "_layer_norm" else c.operands[1].ndim
    rest = (R,) * (len(c.operands) - 1)
    return [Strategy((Shard(d),) * len(c.outs), (Shard(d), *rest)) for d in range(x.ndim - inner)]


@rule("_convolution_nd")
def _convolution(c: Call) -> list:
    return [Strategy((Shard(0),), (Shard(0), *(R,) * (len(c.operands) - 1)))]


# ---- attention: batch and heads may be cut
@rule("nn.functional.scaled_dot_product_attention")
def _attention(c: Call) -> list:
    made, rank = [], c.operands[0].ndim
    if c.bound["dropout_p"]:
        return []  # the dropout is drawn for the global tensor
    for dim in range(rank - 2):
        if any(x.shape[dim] % c.parts for x in c.operands[:3]) and dim == rank - 3 and c.bound["enable_gqa"]:
            continue
        mask = tuple(_aligned(x, rank, dim, c.outs[0].shape[dim]) for x in c.operands[3:])
        made.append(Strategy((Shard(dim),), (Shard(dim),) * 3 + mask))
    return made


# ---- embedding, picking
@rule("_embedding")
def _embedding(c: Call) -> list:
    indices = c.operands[1]
    made = [Strategy((Shard(d),), (R, Shard(d))) for d in range(indices.ndim)]
    return [Strategy((Shard(indices.ndim),), (Shard(1), R)), *made]


@rule("gather", "scatter_add", "_scatter", "_scatter_value", "index_add", "index_copy", "index_fill")
def _picking(c: Call) -> list:
    x = c.operands[0]
    dim = c.bound["dim"] % max(x.ndim, 1)
    same = c.name == "gather"
    made = []
    for d in range(x.ndim):
        if d == dim or (same and any(t.ndim != x.ndim or t.shape[d] != x.shape[d] for t in c.operands)):
            continue
        if not same and any(t.ndim == x.ndim and t.shape[d] != x.shape[d] for t in c.operands):
            continue
        ins = tuple(Shard(d) if t.ndim == x.ndim else R for t in c.operands)
        made.append(Strategy((Shard(d),), ins))
    if same:
        index = c.operands[1]
        made += [Strategy((Shard(dim),), (R, Shard(dim)))] if index.ndim == x.ndim == 1 else []
    return made


@rule("index_select")
def _index_select(c: Call) -> list:
    x, dim = c.operands[0], c.bound["dim"] % max(c.operands[0].ndim, 1)
    return [
        Strategy((Shard(dim),), (R, Shard(0))),
        *(Strategy((Shard(d),), (Shard(d), R)) for d in range(x.ndim) if d != dim),
    ]


# ---- losses: rows may be cut
def _loss(c: Call, classes: int | None) -> list:
    reduced = c.bound["reduction"]
    kind = {0: None, 1: Partial("avg"), 2: Partial(), "none": None, "mean": Partial("avg"), "sum": Partial()}[
        reduced
    ]
    made = []
    for dim in range(c.operands[0].ndim):
        if dim == classes or (kind == Partial("avg") and not c.even(0, dim)):
            continue
        own = tuple(_aligned(x, c.operands[0].ndim, dim, c.operands[0].shape[dim]) for x in c.operands)
        made.append(Strategy((kind or Shard(dim),), own))
    return made


@rule("_mse", "_bce", "_bce_logits", "_soft_margin")
def _element_loss(c: Call) -> list:
    return _loss(c, None)
