"""Redistributes local tensors from one set of placements to another, with gradients."""

from __future__ import annotations

from ... import ops
from ..._errors import unsupported
from ...autograd import Function, is_grad_enabled
from .. import collectives
from ..reduce_op import ReduceOp
from ._spec import cuts, gradient_placements, part
from .placement_types import Partial, Replicate, Shard

_REDUCE = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.SUM,
    "max": ReduceOp.MAX,
    "min": ReduceOp.MIN,
    "product": ReduceOp.PRODUCT,
}


def _sizes_before(size: int, mesh, mesh_dims) -> list:
    """The length of a tensor dimension before each mesh dimension shards it."""
    here, made = mesh.get_coordinate(), []
    for mesh_dim in mesh_dims:
        made.append(size)
        size = part(size, mesh.size(mesh_dim), here[mesh_dim])[0]
    return made


def _whole(local, dim: int, size: int, mesh, mesh_dim: int):
    """All-gathers and concatenates the shards along a mesh dimension."""
    count, group = mesh.size(mesh_dim), mesh.get_group(mesh_dim)
    each = -(-size // count)
    if each == 0:
        return local
    missing = each - local.size(dim)
    if missing:
        local = ops.cat([local, local.new_zeros([*local.shape[:dim], missing, *local.shape[dim + 1 :]])], dim)
    pieces = [ops.empty(local.shape, dtype=local.dtype, device=local.device) for _ in range(count)]
    collectives.all_gather(pieces, local.contiguous(), group)
    return ops.cat([p.narrow(dim, 0, part(size, count, i)[0]) for i, p in enumerate(pieces)], dim)


def _own(local, dim: int, mesh, mesh_dim: int):
    """This process's shard along a mesh dimension."""
    length, start = part(local.size(dim), mesh.size(mesh_dim), mesh.get_local_rank(mesh_dim))
    return local.narrow(dim, start, length).contiguous()


def _exchanged(local, old: int, new: int, size: int, mesh, mesh_dim: int):
    """Changes the sharded dimension from ``old``, of global length ``size``, to ``new`` by an all-to-all."""
    count, me = mesh.size(mesh_dim), mesh.get_local_rank(mesh_dim)
    length = local.size(new)
    out = [
        local.narrow(new, start, n).contiguous()
        for n, start in (part(length, count, i) for i in range(count))
    ]
    shape = list(local.shape)
    shape[new] = part(length, count, me)[0]
    received = []
    for i in range(count):
        shape[old] = part(size, count, i)[0]
        received.append(ops.empty(shape, dtype=local.dtype, device=local.device))
    collectives.all_to_all(received, out, mesh.get_group(mesh_dim))
    return ops.cat(received, old)


def _reduced(local, reduce_op: str, mesh, mesh_dim: int):
    out = local.clone()
    collectives.all_reduce(out, _REDUCE[reduce_op], mesh.get_group(mesh_dim))
    return out / mesh.size(mesh_dim) if reduce_op == "avg" else out


def _reduced_part(local, reduce_op: str, dim: int, mesh, mesh_dim: int):
    count = mesh.size(mesh_dim)
    if local.size(dim) % count or reduce_op not in ("sum", "avg"):
        return _own(_reduced(local, reduce_op, mesh, mesh_dim), dim, mesh, mesh_dim)
    pieces = [p.contiguous() for p in ops.chunk(local, count, dim)]
    out = ops.empty_like(pieces[0])
    collectives.reduce_scatter(out, pieces, ReduceOp.SUM, mesh.get_group(mesh_dim))
    return out / count if reduce_op == "avg" else out


def _summand(local, reduce_op: str, mesh, mesh_dim: int):
    """Converts a replicated tensor to Partial: the first process keeps the values, the others have the neutral element."""
    if reduce_op != "sum" or mesh.get_local_rank(mesh_dim) == 0:
        return local
    return ops.zeros_like(local)


def _kept_cuts(source, target, old, new) -> dict:
    """For each tensor dimension, the number of leading shard operations that stay unchanged."""
    kept = {}
    for dim in {*old, *new}:
        have, want = old.get(dim, []), new.get(dim, [])
        count = 0
        while count < min(len(have), len(want)) and have[count] == want[count]:
            count += 1
        kept[dim] = count
    return kept


def move(local, mesh, shape, source, target):
    """Redistributes a local tensor of a global ``shape`` from ``source`` to ``target`` placements, without gradient."""
    if source == target or mesh.get_coordinate() is None:
        return local
    old, new = cuts(source, mesh), cuts(target, mesh)
    kept, now = _kept_cuts(source, target, old, new), list(source)
    changed = [i for i, (a, b) in enumerate(zip(source, target, strict=True)) if a != b]
    if len(changed) == 1 and _is_exchange(source[changed[0]], target[changed[0]], old, new, changed[0]):
        mesh_dim = changed[0]
        a, b = source[mesh_dim].dim, target[mesh_dim].dim
        return _exchanged(local, a, b, _sizes_before(shape[a], mesh, old[a])[-1], mesh, mesh_dim)
    for dim, mesh_dims in old.items():
        before = _sizes_before(shape[dim], mesh, mesh_dims)
        for mesh_dim, size in reversed(list(zip(mesh_dims, before, strict=True))[kept[dim] :]):
            local, now[mesh_dim] = _whole(local, dim, size, mesh, mesh_dim), Replicate()
    for mesh_dim, placement in enumerate(target):
        if now[mesh_dim].is_partial() and not placement.is_shard() and placement != now[mesh_dim]:
            local, now[mesh_dim] = _reduced(local, now[mesh_dim].reduce_op, mesh, mesh_dim), Replicate()
    for dim, mesh_dims in new.items():
        for mesh_dim in mesh_dims[kept[dim] :]:
            if now[mesh_dim].is_partial():
                local = _reduced_part(local, now[mesh_dim].reduce_op, dim, mesh, mesh_dim)
            else:
                local = _own(local, dim, mesh, mesh_dim)
    for mesh_dim, placement in enumerate(target):
        if placement.is_partial() and now[mesh_dim].is_replicate():
            local = _summand(local, placement.reduce_op, mesh, mesh_dim)
    return local


def _is_exchange(a, b, old, new, mesh_dim: int) -> bool:
    """True if a mesh dimension changes from sharding one tensor dimension last to sharding another one last."""
    plain = type(a) is Shard and type(b) is Shard and a.dim != b.dim
    return plain and old[a.dim][-1] == mesh_dim and new[b.dim][-1] == mesh_dim


def average_parts(placements, mesh) -> int:
    """The number of summands over which the tensor is an average."""
    count = 1
    for mesh_dim, placement in enumerate(placements):
        if placement.is_partial("avg"):
            count *= mesh.size(mesh_dim)
    return count


class _Moved(Function):
    """`move` as an autograd function. Backward redistributes the gradient in reverse."""

    @staticmethod
    def forward(ctx, local, mesh, shape, source, target):
        ctx.back = mesh, shape, source, target
        made = move(local, mesh, shape, source, target)
        return made.view_as(made) if made is local else made

    @staticmethod
    def backward(ctx, grad):
        mesh, shape, source, target = ctx.back
        made = moved(grad, mesh, shape, gradient_placements(target), gradient_placements(source))
        scale = average_parts(target, mesh) / average_parts(source, mesh)
        return made if scale == 1 else made * scale, None, None, None, None


def moved(local, mesh, shape, source, target):
    """Redistributes a local tensor to ``target`` placements, with gradient.

    A gradient has the placements of its tensor, but is replicated where the tensor is Partial. For an average it is divided by
    the number of processes.
    """
    if source == target:
        return local
    if not (is_grad_enabled() and local.requires_grad):
        return move(local, mesh, shape, source, target)
    for placement in source:
        if isinstance(placement, Partial) and placement.reduce_op not in ("sum", "avg"):
            raise unsupported("torch.distributed.tensor", f"the gradient of {placement!r} is not supported")
    return _Moved.apply(local, mesh, tuple(shape), tuple(source), tuple(target))


class _GradientGiven(Function):
    """Returns the tensor unchanged. Its gradient arrives with other placements and is redistributed."""

    @staticmethod
    def forward(ctx, local, mesh, shape, arriving, wanted, parts):
        ctx.back, ctx.parts = (mesh, shape, arriving, wanted), parts
        return local.view_as(local)

    @staticmethod
    def backward(ctx, grad):
        made = moved(grad, *ctx.back)
        return made if ctx.parts == 1 else made / ctx.parts, None, None, None, None, None


def with_gradient_from(local, mesh, shape, arriving, wanted, parts: int = 1):
    """``local`` with a gradient that arrives with placements ``arriving`` and is redistributed to ``wanted``.

    The gradient is divided by `parts`, the number of summands if the tensor is an average.
    """
    if (arriving == wanted and parts == 1) or not (is_grad_enabled() and local.requires_grad):
        return local
    return _GradientGiven.apply(local, mesh, tuple(shape), tuple(arriving), tuple(wanted), parts)
