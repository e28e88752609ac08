"""Operators on DTensors that sharding rules cannot describe: random numbers, optimizer steps, norms, indexing.

Random numbers are drawn for the global tensor from the random state of the mesh's first process. They equal those of a single
process with this state and do not depend on the sharding.
"""

from __future__ import annotations

import operator

from ... import ops, random
from ..._errors import unsupported
from ...autograd import is_grad_enabled, no_grad
from ...ops import declarations, indexing
from ...tensor import Tensor
from .. import collectives
from ..reduce_op import ReduceOp
from . import _class_loss as class_loss
from ._dispatch import _by_rule, _operands, call_plain, general_special, mesh_of, run, special, substituted
from ._dtensor import DTensor, placed, wrap
from ._redistribute import move
from ._spec import gradient_placements
from ._utils import compute_local_shape_and_global_offset
from .placement_types import Partial, Replicate

R = Replicate()


# ---- random numbers
def same_state(mesh) -> None:
    """Broadcasts the random state of the mesh's first process."""
    if mesh.get_coordinate() is None:
        return
    state = random.get_rng_state()
    for mesh_dim in range(mesh.ndim):
        if mesh.size(mesh_dim) > 1:
            collectives.broadcast(state, group=mesh.get_group(mesh_dim), group_src=0)
    random.set_rng_state(state)


def _drawn(x: DTensor, generator, make):
    """This process's part of the random numbers that ``make`` draws for a tensor of the global shape."""
    mesh = x.device_mesh
    if generator is None:
        same_state(mesh)
    with no_grad():
        whole = make(ops.empty(tuple(x.shape), dtype=x.dtype, device=x.device))
    return move(whole, mesh, tuple(x.shape), (R,) * mesh.ndim, gradient_placements(x.placements))


def _random_operand(declaration, bound):
    """The argument that is drawn for, as (name, DTensor). RuntimeError if it is Partial."""
    name, x = next((k, v) for k, v in bound.items() if isinstance(v, DTensor))
    if any(p.is_partial() for p in x.placements):
        raise RuntimeError(
            f"{declaration.schema.name}: random numbers cannot be drawn with the placements {x.placements}; redistribute first"
        )
    return name, x


@general_special("random each")
def _random(declaration, inplace, bound):
    name, x = _random_operand(declaration, bound)
    made = _drawn(
        x, bound.get("generator"), lambda empty: call_plain(declaration, inplace, bound | {name: empty})
    )
    if inplace:
        x._local_tensor.copy_(made)
        return x
    made = wrap(made, x.device_mesh, x.placements, x.shape, x.stride())
    return made.requires_grad_(bool(bound.get("requires_grad")))


@general_special("random values")
def _random_of_values(declaration, inplace, bound):
    """The values of all operands are needed, so that each process gathers them and draws all numbers."""
    keys, operands = _operands(bound)
    if (
        is_grad_enabled()
        and any(x.requires_grad for x in operands)
        and declaration.schema.name != "bernoulli"
    ):
        raise unsupported(
            "torch.distributed.tensor", f"the gradient of {declaration.schema.name} is not supported"
        )
    _, x = _random_operand(declaration, bound)
    whole = [v.full_tensor().detach() if isinstance(v, DTensor) else v for v in operands]
    made = _drawn(
        x,
        bound.get("generator"),
        lambda empty: call_plain(declaration, inplace, substituted(bound, keys, whole)),
    )
    return wrap(made, x.device_mesh, x.placements, x.shape, x.stride())


@special("_dropout")
def _dropout(declaration, inplace, bound):
    """Returns (result, mask) with the dropout drawn for the global tensor."""
    x, p = bound["self"], bound["p"]
    x = placed(x, gradient_placements(x.placements))
    scale = _drawn(x, None, lambda empty: ops._dropout(ops.ones_like(empty), p)[0])
    noise = wrap(scale, x.device_mesh, x.placements, x.shape, x.stride())
    return x * noise, noise != 0


# ---- fused optimizer steps
@special("_fused_adamw_", "_fused_adam_", "_fused_sgd_")
def _fused(declaration, inplace, bound):
    """Runs the step on local tensors. Gradients and averages are redistributed to the placements of their parameters."""
    first = next(iter(bound.values()))
    made = {}
    for name, value in bound.items():
        if isinstance(value, (list, tuple)):
            value = [_like_parameter(x, p) for x, p in zip(value, first, strict=True)] if value else value
        elif isinstance(value, DTensor):
            value = value.full_tensor()
        made[name] = value
    return call_plain(declaration, inplace, made)


def _like_parameter(x, parameter):
    if not isinstance(x, DTensor):
        return x
    if not isinstance(parameter, DTensor) or x.shape != parameter.shape:
        return x.full_tensor()
    return placed(x, parameter.placements)._local_tensor


@special("_foreach_norm", "_norms")
def _norms(declaration, inplace, bound):
    tensors = next(iter(bound.values()))
    made = [ops.linalg_vector_norm(x, float(bound["ord"])) for x in tensors]
    whole = [x.full_tensor() if isinstance(x, DTensor) else x for x in made]
    return ops.stack(whole) if declaration.schema.name == "_norms" else tuple(whole)


@special("_scale_all_")
def _scale_all(declaration, inplace, bound):
    factor = bound["factor"]
    factor = factor.full_tensor() if isinstance(factor, DTensor) else factor
    with no_grad():
        for x in bound["tensors"]:
            _local(x).mul_(factor)


@special("_amp_foreach_non_finite_check_and_unscale_")
def _unscale(declaration, inplace, bound):
    """The same as on ordinary tensors, but found_inf is combined over all processes of the mesh."""
    tensors = bound["self"]
    made = {k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in bound.items() if k != "self"}
    result = call_plain(declaration, inplace, {"self": [_local(x) for x in tensors]} | made)
    for mesh in dict.fromkeys(x.device_mesh for x in tensors if isinstance(x, DTensor)):
        for mesh_dim in range(mesh.ndim):
            collectives.all_reduce(made["found_inf"], ReduceOp.MAX, mesh.get_group(mesh_dim))
    return result


def _local(x):
    return x._local_tensor if isinstance(x, DTensor) else x


# ---- norms: the norms of the local tensors are combined
@special("_vector_norm")
def _vector_norm(declaration, inplace, bound):
    x, order = bound["self"], bound["ord"]
    x = placed(x, gradient_placements(x.placements))
    gone = range(x.ndim) if bound["dim"] is None else [d % max(x.ndim, 1) for d in bound["dim"]]
    cut = [p.dim for p in x.placements if p.is_shard() and p.dim in gone]
    if not cut:
        return _rule("_vector_norm", bound | {"self": x})
    kind = {float("inf"): "max", float("-inf"): "min"}.get(order)
    if kind is not None:
        reduce = ops.amax if kind == "max" else ops.amin
        return reduce(x.abs(), list(gone), bound["keepdim"])
    if order == 0:
        return (x != 0).to(x.dtype).sum(list(gone), bound["keepdim"])
    power = x.square() if order == 2 else x.abs().pow(order)
    total = power.sum(list(gone), bound["keepdim"])
    total = placed(total, gradient_placements(total.placements))
    return total.sqrt() if order == 2 else total.pow(1.0 / order)


def _rule(name, bound):
    return _by_rule(declarations[name], False, bound)


@special("_std")
def _std(declaration, inplace, bound):
    return run(declarations["_var"], False, bound).sqrt()


# ---- an embedding with sharded rows: each process looks up the rows that it has
@special("_embedding")
def _embedding(declaration, inplace, bound):
    weight, indices = bound["weight"], bound["indices"]
    by_rows = isinstance(weight, DTensor) and [i for i, p in enumerate(weight.placements) if p.is_shard(0)]
    if not by_rows:
        return _rule("_embedding", bound)
    mesh = weight.device_mesh
    indices = (
        indices
        if isinstance(indices, DTensor)
        else wrap(indices, mesh, (R,) * mesh.ndim, indices.shape, indices.stride())
    )
    indices = placed(
        indices,
        [
            R if weight.placements[i].is_shard() else p
            for i, p in enumerate(gradient_placements(indices.placements))
        ],
    )
    weight = placed(weight, [p if p.is_shard() else R for p in weight.placements])
    (rows, *_), (start, *_) = compute_local_shape_and_global_offset(weight.shape, mesh, weight.placements)
    own = indices._local_tensor - start
    outside = (own < 0) | (own >= rows)
    padding = bound["padding_idx"]
    padding = padding - start if start <= padding < start + rows else -1
    local = weight._local_tensor
    if rows:
        found = declaration.function(local, ops.where(outside, 0, own), -1, bound["scale_grad_by_freq"])
        masked = outside if padding < 0 else outside | (own == padding)
        found = _without_gradient(found, masked & ~outside).masked_fill(outside.unsqueeze(-1), 0.0)
    else:
        empty = ops.zeros([*own.shape, local.shape[1]], dtype=local.dtype, device=local.device)
        found = empty + local.sum()  # a sum of nothing, so that the weight has a gradient
    placements = []
    for i, p in enumerate(weight.placements):
        if p.is_shard(0):
            placements.append(Partial())
        else:
            placements.append(type(p)(indices.ndim) if p.is_shard() else indices.placements[i])
    shape = (*indices.shape, weight.shape[1])
    stride = ops.empty(shape, device="meta").stride()
    return wrap(found, mesh, placements, shape, stride)


def _without_gradient(x, rows):
    """``x`` without gradients from the given rows."""
    return ops.where(rows.unsqueeze(-1), x.detach(), x)


# ---- classification losses: a mean over rows is computed as a sum and a count
@special("_cross_entropy", "_nll_loss")
def _class_loss(declaration, inplace, bound):
    logits, target, reduction = bound["self"], bound["target"], bound["reduction"]
    if class_loss.active() and declaration.schema.name == "_cross_entropy" and isinstance(logits, DTensor):
        return class_loss.cross_entropy(bound)
    rows = isinstance(logits, DTensor) and logits.ndim == 2 and any(p.is_shard(0) for p in logits.placements)
    plain = bound["weight"] is None and target.ndim == 1 and not bound.get("label_smoothing")
    if not (rows and plain):
        return _whole(declaration, inplace, bound)
    mesh = logits.device_mesh
    wanted = [p if p.is_shard(0) else R for p in logits.placements]
    logits = placed(logits, wanted)
    target = (
        target
        if isinstance(target, DTensor)
        else wrap(target, mesh, (R,) * mesh.ndim, target.shape, target.stride())
    )
    target = placed(target, wanted)
    none, mean, total = class_loss.reduction_codes()
    local = declaration.function(
        *(
            bound
            | {
                "self": logits._local_tensor,
                "target": target._local_tensor,
                "reduction": none if reduction == none else total,
            }
        ).values()
    )
    if reduction == none:
        loss = wrap(local[0], mesh, wanted, target.shape, target.stride())
        return loss, loss
    loss = wrap(local[0], mesh, [Partial() if p.is_shard() else R for p in wanted], (), ())
    count = (target != bound["ignore_index"]).sum()
    count = placed(count, (R,) * mesh.ndim)
    return (loss / count if reduction == mean else loss), count


# ---- replicated operands: there is no rule with less communication, or the shape of the result depends on values
@general_special("whole")
def _whole(declaration, inplace, bound):
    keys, operands = _operands(bound)
    mesh = mesh_of(operands, declaration.schema.name)
    whole = (R,) * mesh.ndim
    if inplace and isinstance(operands[0], DTensor) and operands[0].placements != whole:
        raise RuntimeError(
            f"{declaration.schema.name}_: in-place operations that require placement changes are not supported "
            f"(the tensor is {operands[0].placements})"
        )
    if declaration.facts.random and bound.get("generator") is None:
        same_state(mesh)
    plain = [placed(x, whole)._local_tensor if isinstance(x, DTensor) else x for x in operands]
    made = call_plain(declaration, inplace, substituted(bound, keys, plain))
    if inplace:
        return operands[0]
    if isinstance(made, Tensor):
        return wrap(made, mesh, whole, made.shape, made.stride())
    out = [wrap(x, mesh, whole, x.shape, x.stride()) for x in made]
    return type(made)(tuple(out)) if isinstance(made, tuple) else out


# ---- comparisons of complete tensors
@special("equal", "allclose")
def _compared(declaration, inplace, bound):
    return call_plain(
        declaration, inplace, {k: v.full_tensor() if isinstance(v, DTensor) else v for k, v in bound.items()}
    )


@special("_autocast_cast")
def _autocast_cast(declaration, inplace, bound):
    return bound["self"].to(bound["dtype"])


# ---- indexing
def _items(x, index) -> list | None:
    """The index as a list of ints, slices and None; None if it contains tensors or lists."""
    items = list(index) if isinstance(index, tuple) else [index]
    plain = all(
        i is None or i is Ellipsis or isinstance(i, (int, slice)) and not isinstance(i, bool) for i in items
    )
    if not plain:
        return None
    used = sum(i is not None and i is not Ellipsis for i in items)
    if used > x.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x.ndim}")
    place = items.index(Ellipsis) if Ellipsis in items else len(items)
    return [*items[:place], *[slice(None)] * (x.ndim - used), *items[place + 1 :]]


def get_item(x, index):
    """``x[index]``: a view for ints, slices and None. For other indices the complete tensor is gathered and indexed."""
    items = _items(x, index) if isinstance(x, DTensor) else None
    if items is None:
        return _indexed(x, index)
    dim = 0
    for item in items:
        if item is None:
            x, dim = ops.unsqueeze(x, dim), dim + 1
        elif isinstance(item, slice):
            bounds = [None if b is None else operator.index(b) for b in (item.start, item.stop, item.step)]
            if bounds != [None, None, None]:
                x = ops._slice(x, dim, bounds[0], bounds[1], 1 if bounds[2] is None else bounds[2])
            dim += 1
        else:
            x = ops.select(x, dim, item)
    return x


def _indexed(x, index):
    index = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    every = [v for v in (x, *index) if isinstance(v, DTensor)]
    mesh = every[0].device_mesh
    whole = [R] * mesh.ndim
    plain = tuple(placed(i, whole)._local_tensor if isinstance(i, DTensor) else i for i in index)
    local = (placed(x, whole)._local_tensor if isinstance(x, DTensor) else x)[plain]
    return wrap(local, mesh, whole, local.shape, local.stride())


def set_item(x, index, value) -> None:
    """``x[index] = value`` for a replicated x, or for an assignment to all elements."""
    whole = all(p.is_replicate() for p in x.placements)
    if not whole and index not in (Ellipsis, slice(None)):
        raise unsupported(
            "torch.distributed.tensor.DTensor.__setitem__", "parts of a sharded tensor are not supported"
        )
    if not whole:
        x.copy_(value) if isinstance(value, Tensor) else x.fill_(value)
        return
    mesh = x.device_mesh
    plain = lambda v: placed(v, (R,) * mesh.ndim)._local_tensor if isinstance(v, DTensor) else v  # noqa: E731
    index = tuple(map(plain, index)) if isinstance(index, tuple) else plain(index)
    indexing.setitem(x._local_tensor, index, plain(value))


DTensor.__getitem__ = get_item
DTensor.__setitem__ = set_item
