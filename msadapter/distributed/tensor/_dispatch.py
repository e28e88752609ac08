"""Runs operators on DTensors.

A rule (_rules.py, _view_rules.py) lists, for one mesh dimension, the placements of operands and results under which each
process can run the operator on its local tensors. For each mesh dimension, the entry that transfers the least data is chosen,
the operands are redistributed, and the operator runs on the local tensors. If an operand is replicated while others are
sharded, each process computes only a part of its gradient; backward sums these parts. A composite without a rule runs as the
operators that it consists of. Any other operator without a rule raises an error with its name.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field

from ... import ops
from ..._errors import unsupported
from ..._host.native import load
from ...autograd import is_grad_enabled, no_grad
from ...func._binding import bind, declaration_of, decorator_of
from ...ops._facts import Facts
from ...tensor import Tensor
from ._dtensor import DTensor, placed, wrap
from ._redistribute import with_gradient_from
from ._spec import TensorMeta, gradient_placements
from .placement_types import Partial, Replicate, _StridedShard

_C = load()
RULES: dict[str, Callable] = {}  # schema name -> rule(Call) -> list of Strategy
GENERAL: dict[str, Callable] = {}  # declared fact -> rule(Call) -> list of Strategy
SPECIAL: dict[
    str, Callable
] = {}  # schema name -> function(declaration, inplace, bound) that runs the operator
GENERAL_SPECIAL: dict[str, Callable] = {}  # the same: declared fact -> function
ADJUST: dict[str, Callable] = {}  # schema name -> function(call, arguments of the local call)
WHOLE = Replicate()


@dataclass(frozen=True)
class Strategy:
    """The placements of results and operands on one mesh dimension."""

    outs: tuple
    ins: tuple


@dataclass
class Call:
    """A call of an operator. Its operands are the tensors among the arguments, in the schema's order."""

    name: str
    facts: Facts
    bound: dict
    keys: list  # (argument's name, index in its list or None) of each operand
    operands: list
    mesh: object
    outs: list = field(default_factory=list)  # descriptions of the results
    cut: dict = field(
        default_factory=dict
    )  # (operand, dim) -> number of shards that earlier mesh dimensions have made
    mesh_dim: int = 0

    @property
    def parts(self) -> int:
        """The number of processes along the current mesh dimension."""
        return self.mesh.size(self.mesh_dim)

    def even(self, operand: int, dim: int) -> bool:
        """True if the current mesh dimension can shard this tensor dimension evenly."""
        return self.operands[operand].shape[dim] % (self.parts * self.cut.get((operand, dim), 1)) == 0

    def here(self, operand: int):
        """The placement of an operand on the current mesh dimension."""
        return placements_of(self.operands[operand], self.mesh)[self.mesh_dim]

    @property
    def recorded(self) -> bool:
        """True if an operand requires a gradient."""
        return is_grad_enabled() and any(x.requires_grad for x in self.operands)


rule = decorator_of(RULES)
# registers the rule of operators without one of their own whose declarations state the fact of this name
general_rule = decorator_of(GENERAL)


def rule_for(declaration):
    """The rule of the operator itself, or the one that follows from the facts of its declaration.

    For a composite only the former exists: otherwise it runs as the operators that it consists of.
    """
    if declaration.schema.name in RULES or declaration.kind == "composite":
        return RULES.get(declaration.schema.name)
    facts = declaration.facts
    return next((GENERAL[fact] for fact in ("pointwise", "reduction", "along") if getattr(facts, fact)), None)


# registers a function that runs operators without a rule
special = decorator_of(SPECIAL)
# the same for operators whose declarations state this fact, or this value of the fact `random`
general_special = decorator_of(GENERAL_SPECIAL)


def special_for(declaration) -> Callable | None:
    """The function that runs an operator without a rule: its own, or the one for a fact of its declaration.

    For a composite only the former exists: otherwise it runs as the operators that it consists of.
    """
    name, facts = declaration.schema.name, declaration.facts
    if name in SPECIAL or name in RULES or declaration.kind == "composite":
        return SPECIAL.get(name)
    return GENERAL_SPECIAL["whole"] if facts.whole else GENERAL_SPECIAL.get(f"random {facts.random}")


class _State:
    replication = False  # whether plain tensors among DTensors are treated as replicated


@contextlib.contextmanager
def implicit_replication():
    """A block in which plain tensors among DTensors are treated as replicated."""
    before, _State.replication = _State.replication, True
    try:
        yield
    finally:
        _State.replication = before


def placements_of(x, mesh) -> tuple:
    """The placements of an operand. A plain tensor is replicated."""
    return x.placements if isinstance(x, DTensor) else (WHOLE,) * mesh.ndim


def call(function, args, kwargs):
    """Calls an operator with arguments of which some are DTensors."""
    declaration, inplace = declaration_of(function)
    if declaration is None:
        raise unsupported(
            "torch.distributed.tensor", f"{getattr(function, '__name__', function)} is not supported"
        )
    kwargs = dict(kwargs)
    out = kwargs.pop("out", None)
    result = run(declaration, inplace, bind(declaration, args, kwargs))
    return result if out is None else out.copy_(result)


def run(declaration, inplace: bool, bound: dict):
    """Runs an operator with its arguments by name."""
    name = declaration.schema.name
    own = special_for(declaration)
    if own is not None:
        return own(declaration, inplace, bound)
    if rule_for(declaration) is not None:
        return _by_rule(declaration, inplace, bound)
    if declaration.kind == "composite":
        args, kwargs = _split(declaration, bound)
        made = declaration.body(*args, **kwargs)
        return next(iter(bound.values())).copy_(made) if inplace else made
    raise unsupported(
        f"Operator {name} does not have a sharding strategy registered. torch.distributed.tensor",
        f"{name} is not supported",
    )


def _split(declaration, bound):
    args = [bound[p.name] for p in declaration.schema.parameters if not p.keyword_only]
    return args, {p.name: bound[p.name] for p in declaration.schema.parameters if p.keyword_only}


def call_plain(declaration, inplace: bool, bound: dict):
    """Runs the operator with ordinary arguments."""
    function = declaration.inplace if inplace else declaration.function
    args, kwargs = [], {}
    parameters = declaration.schema.parameters
    for p in parameters:
        if p.keyword_only:
            if bound[p.name] is not p.default:
                kwargs[p.name] = bound[p.name]
        else:
            args.append(bound[p.name])
    positional = [p for p in parameters if not p.keyword_only]
    while args and not positional[len(args) - 1].required and args[-1] is positional[len(args) - 1].default:
        args.pop()
    return function(*args, **kwargs)


def _operands(bound) -> tuple:
    keys, found = [], []
    for name, value in bound.items():
        if isinstance(value, Tensor):
            keys.append((name, None))
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for i, x in enumerate(value):
                if isinstance(x, Tensor):
                    keys.append((name, i))
                    found.append(x)
    return keys, found


def substituted(bound, keys, tensors) -> dict:
    """The arguments with their operands replaced by `tensors`."""
    made = {k: list(v) if isinstance(v, (list, tuple)) else v for k, v in bound.items()}
    for (name, i), x in zip(keys, tensors, strict=True):
        if i is None:
            made[name] = x
        else:
            made[name][i] = x
    return made


def mesh_of(operands, name):
    """The mesh of the DTensors among the operands. Raises an error for different meshes or plain tensors among them."""
    mesh = None
    for x in operands:
        if not isinstance(x, DTensor):
            continue
        if mesh is None:
            mesh = x.device_mesh
        elif x.device_mesh != mesh:
            raise NotImplementedError(
                f"{name}: DTensor on different device meshes is not supported: {mesh}, {x.device_mesh}"
            )
    for x in operands:
        if not isinstance(x, DTensor) and x.ndim > 0 and x.numel() != 1 and not _State.replication:
            raise RuntimeError(
                f"{name}: got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor before calling "
                "distributed operators!"
            )
    return mesh


def _described(x) -> TensorMeta:
    return TensorMeta(tuple(x.shape), tuple(x.stride()), x.dtype)


def _meta(x):
    if isinstance(x, DTensor):
        return _C.detach(x)
    return ops.empty_strided(tuple(x.shape), tuple(x.stride()), dtype=x.dtype, device="meta")


def _results_of(declaration, inplace, bound, keys, operands) -> list:
    """The descriptions of the results, computed with meta tensors."""
    if inplace:
        return [_described(operands[0])]
    with no_grad():
        made = call_plain(declaration, False, substituted(bound, keys, [_meta(x) for x in operands]))
    made = [made] if isinstance(made, Tensor) else list(made)
    return [_described(x) for x in made]


@dataclass
class Plan:
    """The chosen placements of the operands and results of a call."""

    ins: list
    outs: list
    described: list
    shared: (
        list  # for each operand, the mesh dimensions on which each process has only a part of its gradient
    )


_plans: dict = {}


def _key(declaration, inplace, bound, keys, operands):
    rest = tuple(
        (k, tuple(v) if isinstance(v, list) else v)
        for k, v in bound.items()
        if not isinstance(v, Tensor)
        and not (isinstance(v, (list, tuple)) and any(isinstance(x, Tensor) for x in v))
    )
    specs = tuple((x._spec if isinstance(x, DTensor) else _described(x), x.requires_grad) for x in operands)
    key = declaration.schema.name, inplace, tuple(keys), specs, rest, is_grad_enabled()
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _planned(declaration, inplace, bound, keys, operands) -> Plan:
    key = _key(declaration, inplace, bound, keys, operands)
    plan = _plans.get(key) if key is not None else None
    if plan is None:
        plan = _plan(declaration, inplace, bound, keys, operands)
        if key is not None:
            if len(_plans) > 10000:
                _plans.clear()
            _plans[key] = plan
    return plan


def _plan(declaration, inplace, bound, keys, operands) -> Plan:
    name = declaration.schema.name
    mesh = mesh_of(operands, name)
    this = Call(
        name,
        declaration.facts,
        bound,
        keys,
        operands,
        mesh,
        _results_of(declaration, inplace, bound, keys, operands),
    )
    ins: list[list] = [[] for _ in operands]
    outs: list[list] = [[] for _ in this.outs]
    shared: list[list] = [[] for _ in operands]
    for mesh_dim in range(mesh.ndim):
        this.mesh_dim = mesh_dim
        chosen = _cheapest(this, rule_for(declaration), inplace)
        alone = all(p.is_replicate() for p in (*chosen.ins, *chosen.outs))
        for i, placement in enumerate(chosen.ins):
            ins[i].append(placement)
            if placement.is_replicate() and not alone:
                shared[i].append(mesh_dim)
            if placement.is_shard():
                this.cut[i, placement.dim] = this.cut.get((i, placement.dim), 1) * this.parts
        for i, placement in enumerate(chosen.outs):
            outs[i].append(placement)
    return Plan([tuple(p) for p in ins], [tuple(p) for p in outs], this.outs, shared)


def _cheapest(this: Call, rule: Callable, inplace: bool) -> Strategy:
    strategies = [s for found in rule(this) for s in (*_strided(this, found), found)]
    strategies.append(Strategy((WHOLE,) * len(this.outs), (WHOLE,) * len(this.operands)))
    if inplace:
        own = this.here(0)
        strategies = [s for s in strategies if s.outs[0] == own and s.ins[0] == own]
        if not strategies:
            raise RuntimeError(
                f"{this.name}_: in-place operations that require placement changes are not supported (the tensor is {own!r}); "
                "use the operation out of place or redistribute first"
            )
    return min(strategies, key=lambda s: _cost(this, s))


def _cost(this: Call, strategy: Strategy) -> float:
    return sum(
        _moving(this.here(i), wanted, x, this.parts)
        for i, (x, wanted) in enumerate(zip(this.operands, strategy.ins, strict=True))
    )


def _like_cut(placement, here):
    """A shard placement that is strided like `here`."""
    return _StridedShard(placement.dim, split_factor=here.split_factor) if placement.is_shard() else placement


def _strided(this: Call, strategy: Strategy) -> list:
    """The strategy for operands with strided shards, which gives the results strided shards too."""
    made = []
    for i, wanted in enumerate(strategy.ins):
        here = this.here(i)
        if isinstance(here, _StridedShard) and wanted.is_shard(here.dim):
            made.append(
                Strategy(*(tuple(_like_cut(p, here) for p in side) for side in (strategy.outs, strategy.ins)))
            )
    return made


def _moving(have, want, x, parts: int) -> float:
    """The approximate number of bytes that a process sends. Redistribution without messages costs almost nothing."""
    if have == want:
        return 0.0
    size = math.prod(x.shape) * x.dtype.itemsize + 8.0
    if have.is_replicate():
        return 1e-3 if want.is_shard() else 2e-3
    if have.is_partial():
        return size * (1 if want.is_shard() else 2 if want.is_replicate() else math.inf)
    if want.is_shard():
        return size / parts
    return size if want.is_replicate() else math.inf


def _local_operand(x, placements, shared, mesh):
    if not isinstance(x, DTensor):
        if any(not p.is_replicate() for p in placements):
            x = wrap(x, mesh, (WHOLE,) * mesh.ndim, x.shape, x.stride())
            return placed(x, placements)._local_tensor
        return x
    local = placed(x, placements)._local_tensor
    if shared and is_grad_enabled() and local.requires_grad:
        wanted = gradient_placements(placements)
        arriving = tuple(Partial() if i in shared else p for i, p in enumerate(wanted))
        local = with_gradient_from(local, mesh, tuple(x.shape), arriving, wanted)
    return local


def _by_rule(declaration, inplace, bound):
    keys, operands = _operands(bound)
    plan = _planned(declaration, inplace, bound, keys, operands)
    mesh = next(x.device_mesh for x in operands if isinstance(x, DTensor))
    if mesh.get_coordinate() is None:  # this process is not in the mesh
        made = [ops.empty(0, dtype=d.dtype) for d in plan.described]
        return operands[0] if inplace else _wrapped(made[0] if len(made) == 1 else tuple(made), mesh, plan)
    locals_ = [_local_operand(*each, mesh) for each in zip(operands, plan.ins, plan.shared, strict=True)]
    arguments = substituted(bound, keys, locals_)
    adjust = ADJUST.get(declaration.schema.name)
    if adjust is not None:
        adjust(arguments, plan, bound)
    made = call_plain(declaration, inplace, arguments)
    if inplace:
        return operands[0]
    return _wrapped(made, mesh, plan)


def _wrapped(made, mesh, plan):
    if isinstance(made, Tensor):
        return wrap(made, mesh, plan.outs[0], *plan.described[0][:2])
    out = [wrap(x, mesh, p, *d[:2]) for x, p, d in zip(made, plan.outs, plan.described, strict=True)]
    return type(made)(tuple(out)) if isinstance(made, tuple) else out


def _torch_function(cls, function, types, args=(), kwargs=None):
    return call(function, args, kwargs or {})


DTensor.__torch_function__ = classmethod(_torch_function)
