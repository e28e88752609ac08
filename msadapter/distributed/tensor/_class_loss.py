"""Cross entropy on logits that are sharded along the classes, without gathering them."""

from __future__ import annotations

import contextlib

from ... import ops
from ..._errors import unsupported
from ...autograd import no_grad
from ...ops.nn_loss import _CODES
from ._dtensor import DTensor, placed, wrap
from ._spec import local_shape_and_offset
from .placement_types import Partial, Replicate


def reduction_codes() -> tuple:
    """The codes of the loss operators for the reductions none, mean and sum."""
    return _CODES["none"], _CODES["mean"], _CODES["sum"]


class _State:
    depth = 0


def active() -> bool:
    """True inside a block of loss_parallel."""
    return _State.depth > 0


@contextlib.contextmanager
def loss_parallel():
    """A block in which cross entropy accepts logits that are sharded along the classes."""
    _State.depth += 1
    try:
        yield
    finally:
        _State.depth -= 1


def cross_entropy(bound) -> tuple:
    """Returns (loss, number of rows that are not ignored) for logits (rows, classes) on a one-dimensional mesh."""

    logits, target = bound["self"], bound["target"]
    mesh, (none, mean, _) = logits.device_mesh, reduction_codes()
    if mesh.ndim != 1 or bound["weight"] is not None or bound["label_smoothing"]:
        raise unsupported(
            "torch.distributed.tensor.parallel.loss_parallel",
            "weights, label smoothing and a mesh of several dims are not supported",
        )
    if not logits.placements[0].is_shard(1):
        raise ValueError(
            "loss_parallel() should be enabled only when the input tensor is sharded on the class dimension."
        )
    target = (
        target
        if isinstance(target, DTensor)
        else wrap(target, mesh, (Replicate(),), target.shape, target.stride())
    )
    target = placed(target, (Replicate(),))._local_tensor
    with no_grad():
        largest = placed(logits.detach().amax(1, keepdim=True), (Replicate(),))
    shifted = logits - largest
    normalizer = placed(shifted.exp().sum(1), (Replicate(),)).log()
    loss = normalizer - placed(_picked(shifted, target, mesh), (Replicate(),))
    counted = target != bound["ignore_index"]
    loss = loss * _whole(counted.to(logits.dtype), mesh)
    count = _whole(counted.sum(), mesh)
    if bound["reduction"] == none:
        return loss, count
    total = loss.sum()
    return (total / count if bound["reduction"] == mean else total), count


def _whole(local, mesh):
    return wrap(local, mesh, (Replicate(),), local.shape, local.stride())


def _picked(shifted, target, mesh):
    """The logit of each row's target class, from the process that has it."""
    (_, classes), (_, start) = local_shape_and_offset(shifted.shape, mesh, shifted.placements)
    own = target - start
    outside = (own < 0) | (own >= classes)
    local = shifted._local_tensor
    if classes:
        found = (
            ops.gather(local, 1, ops.where(outside, 0, own).unsqueeze(1)).squeeze(1).masked_fill(outside, 0.0)
        )
    else:
        found = local.sum(1)
    return wrap(found, mesh, (Partial(),), tuple(target.shape), tuple(target.stride()))
