"""The sharding rules of DTensor, in one process: each strategy of each rule gives the values of the whole operator.

The programs of dtensor_operators.py run on DTensors that hold whole tensors. At each operator, every strategy of its rule is
tried for a mesh of three ranks: the whole operands are cut into parts, the operator runs on the parts of every rank, and the
results are joined.
"""

from __future__ import annotations

import functools
import operator

import pytest

import msadapter as torch
from msadapter.alias import install
from msadapter.distributed.tensor import Partial, Replicate, Shard, _dispatch, _dtensor, _special
from msadapter.distributed.tensor._dtensor import wrap

install()
from tests.distributed.dtensor_operators import MORE_OPERATORS, OPERATORS  # noqa: E402 - it imports torch

SIZE = 3


class Mesh:
    """A mesh of three ranks, as far as rules use it. ``rank`` is the rank that this process plays."""

    ndim, rank = 1, 0

    def size(self, mesh_dim=None):
        return SIZE

    def get_coordinate(self):
        return [self.rank]


MESH = Mesh()


def _filled(whole, rank: int, away):
    """Parts of which one has the value, and the others a value that the reduction ignores."""
    at = torch.arange(whole.numel()).reshape(whole.shape) % SIZE
    return torch.where(at == rank, whole, away)


def part(whole, placement, rank: int):
    """What a rank holds of a tensor."""
    if placement.is_shard():
        size = whole.shape[placement.dim]
        length, start = Shard.local_shard_size_and_offset(size, SIZE, rank)
        return whole.narrow(placement.dim, min(start, size), length).clone()
    if placement.is_replicate():
        return whole.clone()
    kind = placement.reduce_op
    if kind in ("sum", "avg"):
        share = (0.5, -0.25, 0.75)[rank] * (SIZE if kind == "avg" else 1)
        return whole * share if whole.is_floating_point() else _filled(whole, rank, 0)
    away = {"max": whole - 1, "min": whole + 1, "product": torch.ones_like(whole)}[kind]
    return _filled(whole, rank, away)


def joined(parts, placement):
    """The tensor of which the ranks hold these parts."""
    if placement.is_shard():
        return torch.cat(parts, placement.dim)
    if placement.is_replicate():
        for other in parts[1:]:
            assert torch.allclose(other, parts[0], equal_nan=True)
        return parts[0]
    joins = {"max": torch.maximum, "min": torch.minimum, "product": operator.mul}
    made = functools.reduce(joins.get(placement.reduce_op, operator.add), parts)
    return made / SIZE if placement.reduce_op == "avg" else made


def _outputs(declaration, bound) -> list:
    made = _dispatch.call_plain(declaration, False, bound)
    return [made] if isinstance(made, torch.Tensor) else list(made)


def check_strategy(call, strategy, declaration, bound, wholes, expected):
    """Raise AssertionError if the parts that a strategy names do not give the results that it names."""
    name = declaration.schema.name
    adjust = _dispatch.ADJUST.get(name, lambda *a: None)
    plan = _dispatch.Plan(
        [(p,) for p in strategy.ins], [(p,) for p in strategy.outs], call.outs, [[]] * len(strategy.ins)
    )
    of_ranks = []
    for rank in range(SIZE):
        MESH.rank = rank
        parts = [part(x, p, rank) for x, p in zip(wholes, strategy.ins, strict=True)]
        arguments = _dispatch.substituted(bound, call.keys, parts)
        adjust(arguments, plan, bound)
        of_ranks.append(_outputs(declaration, arguments))
    for k, (placement, value) in enumerate(zip(strategy.outs, expected, strict=True)):
        got = joined([outs[k] for outs in of_ranks], placement)
        same = got.shape == value.shape and got.dtype == value.dtype
        assert same and torch.allclose(got, value, equal_nan=True), f"{name}: {strategy}: {got}, not {value}"


def simulated(tried: set | None):
    """The run of an operator by its rule, on DTensors that hold whole tensors. Notes the strategies it has checked.

    Without a set it checks none.
    """

    def run(declaration, inplace, bound):
        keys, operands = _dispatch._operands(bound)
        wholes = [getattr(x, "_local_tensor", x) for x in operands]
        whole_bound = _dispatch.substituted(bound, keys, wholes)
        whole = _dispatch.call_plain(declaration, False, whole_bound)
        expected = [whole] if isinstance(whole, torch.Tensor) else list(whole)
        call = _dispatch.Call(
            declaration.schema.name,
            declaration.facts,
            bound,
            keys,
            operands,
            MESH,
            [_dispatch._described(x) for x in expected],
        )
        rule = _dispatch.rule_for(declaration)
        others = {k: v for k, v in bound.items() if k not in {key for key, _ in keys}}
        values = [str(others), *((x.shape, x.numpy().tobytes()) for x in wholes)]
        for strategy in rule(call) if tried is not None else ():
            case = declaration.schema.name, strategy, *values
            if case not in tried:
                check_strategy(call, strategy, declaration, bound, wholes, expected)
                tried.add(case)
        chosen = _dispatch._cheapest(call, rule, False)
        plan = _dispatch.Plan([], [(p,) for p in chosen.outs], call.outs, [])
        return _dispatch._wrapped(whole, MESH, plan)

    return run


def _choices(shapes):
    """Placements of the operands: all kinds for one of them, or the same kind for all."""
    kinds = [Partial(kind) for kind in ("sum", "avg", "max", "min", "product")]
    for k, shape in enumerate(shapes):
        for placement in (*(Shard(d) for d in range(len(shape))), *kinds):
            yield [placement if i == k else Replicate() for i in range(len(shapes))]
    if len(shapes) > 1:
        yield from ([kind] * len(shapes) for kind in kinds)
        for d in range(min(map(len, shapes))):
            yield [Shard(len(shape) - 1 - d) for shape in shapes]


def _run(function, shapes, placements):
    torch.manual_seed(0)
    wholes = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    return function(
        *(wrap(x, MESH, (p,), x.shape, x.stride()) for x, p in zip(wholes, placements, strict=True))
    )


EVERY = OPERATORS | MORE_OPERATORS
WITHOUT_A_RULE = {"repeat", "index", "diagonal", "slice_all", "gather_part"}  # they run on whole tensors


@pytest.mark.parametrize("name", EVERY)
def test_strategies(monkeypatch, name):
    tried: set = set()
    for module in (_dispatch, _special):
        monkeypatch.setattr(module, "_by_rule", simulated(tried))
    monkeypatch.setattr(_dtensor, "moved", lambda local, *where: local)  # whole tensors need no messages
    function, *shapes = EVERY[name]
    with torch.no_grad():
        for placements in _choices(shapes):
            _run(function, shapes, placements)
    assert bool(tried) == (name not in WITHOUT_A_RULE)


# The placement of the result where the first operand is sharded along a dim, or partial ("P"), and the others are whole:
# nothing is sent that need not be.
PLACEMENTS = {
    "add": {0: "S(0)", 1: "S(1)", "P": "P(sum)"},
    "where": {0: "S(0)", 1: "S(1)", "P": "R"},
    "mul_column": {0: "S(0)", 1: "S(1)", 2: "S(2)", "P": "P(sum)"},
    "gelu": {0: "S(0)", 1: "S(1)", "P": "R"},
    "zeros_like": {0: "S(0)", 1: "S(1)", "P": "P(sum)"},
    "full_like": {0: "S(0)", 1: "S(1)", "P": "R"},
    "new_same": {0: "S(0)", 1: "S(1)"},
    "new_other": {0: "R", 1: "R"},
    "mm": {0: "S(0)", 1: "P(sum)", "P": "P(sum)"},
    "matmul_4_4": {0: "S(0)", 1: "S(1)", 2: "S(2)", 3: "P(sum)", "P": "P(sum)"},
    "matmul_broadcast": {0: "S(0)", 2: "S(2)", 3: "P(sum)"},
    "matmul_vector": {0: "S(0)", 1: "P(sum)"},
    "vector_matmul": {0: "P(sum)"},
    "dot": {0: "P(sum)"},
    "bmm": {0: "S(0)", 1: "S(1)", 2: "P(sum)", "P": "P(sum)"},
    "linear": {0: "S(0)", 1: "S(1)", 2: "P(sum)", "P": "P(sum)"},
    "conv2d": {0: "S(0)"},
    "attention": {0: "S(0)", 1: "S(1)"},
    "attention_masked": {0: "S(0)", 1: "S(1)", 2: "S(0)", "P": "S(0)"},
    "attention_mask_of_heads": {0: "S(0)", 1: "S(1)"},
    "attention_groups": {0: "S(0)", 1: "S(1)"},
    "attention_groups_masked": {0: "S(0)", 1: "S(1)"},  # the mask of one head fits all parts
    "attention_few_groups": {0: "S(0)", 1: "S(0)"},  # three ranks cannot share two groups
    "sum": {0: "P(sum)", 1: "P(sum)", "P": "P(sum)"},
    "sum_0": {0: "P(sum)", 1: "S(0)", "P": "P(sum)"},
    "sum_kept": {0: "S(0)", 1: "P(sum)"},
    "sum_first": {0: "P(sum)", 1: "S(0)", 2: "S(1)"},
    "sum_two": {0: "P(sum)", 1: "S(0)", 2: "P(sum)"},
    "sum_no_dims": {0: "P(sum)", 1: "P(sum)"},
    "mean_even": {0: "P(avg)", 1: "S(0)", "P": "P(sum)"},
    "mean_0": {1: "S(0)"},
    "amax": {0: "S(0)", 1: "P(max)", "P": "R"},
    "amin": {0: "P(min)", 1: "P(min)", 2: "S(0)"},
    "amax_kept": {0: "P(max)", 1: "S(1)"},
    "softmax": {0: "S(0)", 1: "R", "P": "R"},
    "tril": {0: "S(0)", "P": "P(sum)"},
    "roll": {1: "S(1)", "P": "P(sum)"},
    "roll_two": {1: "S(1)", "P": "P(sum)"},
    "flip": {1: "S(1)"},
    "layer_norm": {0: "S(0)", 1: "S(1)"},
    "topk_last": {0: "S(0)"},
    "view_with_one": {0: "S(0)", 1: "S(2)", "P": "P(sum)"},
    "view_ones": {0: "S(1)", 1: "S(3)", "P": "P(sum)"},
    "view_more": {1: "S(2)", "P": "P(sum)"},
    "view_less": {0: "S(0)", 2: "S(1)", "P": "P(sum)"},
    "view_dtype": {0: "S(0)", "P": "S(0)"},
    "expand": {0: "S(1)", 1: "S(2)", "P": "P(sum)"},
    "expand_more": {0: "S(1)", "P": "P(sum)"},
    "permute": {0: "S(1)", 1: "S(2)", 2: "S(0)", "P": "P(sum)"},
    "permute_negative": {0: "S(1)", 1: "S(2)", 2: "S(0)"},
    "transpose": {0: "S(2)", 1: "S(1)", 2: "S(0)"},
    "t": {0: "S(1)", 1: "S(0)"},
    "t_vector": {0: "S(0)"},
    "squeeze": {0: "S(0)", 2: "S(1)", "P": "P(sum)"},
    "squeeze_dim": {0: "S(0)", 2: "S(1)"},
    "squeeze_nothing": {0: "S(0)", 2: "S(2)"},
    "squeeze_two": {1: "S(0)", 3: "S(1)"},
    "unsqueeze": {0: "S(0)", 1: "S(2)", "P": "P(sum)"},
    "unsqueeze_last": {0: "S(0)", 1: "S(1)"},
    "unsqueeze_middle": {0: "S(0)", 1: "S(2)"},
    "select": {1: "S(0)", "P": "P(sum)"},
    "select_middle": {0: "S(0)", 2: "S(1)"},
    "slice": {1: "S(1)", "P": "P(sum)"},
    "unbind_last": {0: "S(0)", "P": "P(sum)"},
    "split_sizes": {0: "S(0)", "P": "P(sum)"},
    "gather": {0: "S(0)"},
    "index_select": {0: "S(0)"},
    "index_select_first": {1: "S(1)"},
    "scatter_number": {1: "S(1)"},
    "index_fill": {1: "S(1)"},
    "mse_none": {0: "S(0)", 1: "S(1)"},
    "mse_sum": {0: "P(sum)", 1: "P(sum)"},
    "soft_margin": {0: "P(avg)"},
}


@pytest.mark.parametrize("name", PLACEMENTS)
def test_placements(monkeypatch, name):
    for module in (_dispatch, _special):
        monkeypatch.setattr(module, "_by_rule", simulated(None))
    monkeypatch.setattr(_dtensor, "moved", lambda local, *where: local)
    function, *shapes = EVERY[name]
    got = {}
    with torch.no_grad():
        for where in PLACEMENTS[name]:
            first = Partial() if where == "P" else Shard(where)
            made = _run(function, shapes, [first, *[Replicate()] * (len(shapes) - 1)])
            outs = [made] if isinstance(made, torch.Tensor) else made
            got[where] = " ".join(dict.fromkeys(str(x.placements[0]) for x in outs))
    assert got == PLACEMENTS[name]
