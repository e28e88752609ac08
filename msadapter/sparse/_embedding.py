"""Embedding with a sparse gradient, which contains only the rows that were used."""

from __future__ import annotations

from .._host.native import load
from ..autograd import Function, _is_checkpoint_valid, no_grad
from ..ops._declare import t
from ._construct import sparse_coo_tensor

_C = load()


def _accumulate(weight, gradient) -> None:
    with no_grad():
        if weight.grad is None:
            weight.grad = gradient
        else:  # as in PyTorch, the gradient stays the same object
            weight.grad.add_(gradient)


class _Rows(Function):
    """`nn.functional.embedding` with a sparse gradient.

    The autograd engine carries dense gradients only. The sparse gradient of a leaf is therefore added to its
    .grad when the pass ends. The gradient is dense if it is returned by autograd.grad, or if the table is not
    a leaf.
    """

    @staticmethod
    def forward(ctx, weight, indices, padding_idx, scale_grad_by_freq):
        ctx.weight, ctx.padding_idx, ctx.scaled = weight, padding_idx, scale_grad_by_freq
        ctx.save_for_backward(indices)
        return t._embedding(weight, indices, padding_idx, scale_grad_by_freq)

    @staticmethod
    def backward(ctx, g):
        if ctx.scaled:
            raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
        # The program may change its indices afterwards, so the gradient has a copy.
        indices, weight = ctx.saved_tensors[0].reshape(-1).long().clone(), ctx.weight
        values = g.reshape(indices.numel(), weight.shape[1])
        if ctx.padding_idx >= 0:
            kept = t.nonzero(indices != ctx.padding_idx).reshape(-1)
            indices, values = t.index_select(indices, 0, kept), t.index_select(values, 0, kept)
        gradient = sparse_coo_tensor(indices.unsqueeze(0), values, weight.shape)
        if not weight.is_leaf or not _is_checkpoint_valid():
            return gradient.to_dense(), None, None, None
        _C.queue_callback(lambda: _accumulate(weight, gradient.detach()))
        return None, None, None, None


def embedding(weight, indices, padding_idx, scale_grad_by_freq):
    """Return rows of ``weight``, whose gradient is sparse."""
    return _Rows.apply(weight, indices, padding_idx, scale_grad_by_freq)
