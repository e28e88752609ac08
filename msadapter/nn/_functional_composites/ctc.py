"""Connectionist temporal classification."""

from ... import ops
from ..._values.dtype import bool as bool_
from ..._values.dtype import float16, int64
from ...tensor import Tensor
from ...tensor._tensor import tensor

__all__ = ["ctc_loss"]


def _lengths(values, device):
    return (
        values.to(device, int64)
        if isinstance(values, Tensor)
        else tensor(list(values), dtype=int64, device=device)
    )


def _padded_targets(targets, lengths, blank):
    """(N, S) targets; the entries after each length are blanks."""
    longest = int(lengths.max()) if lengths.numel() else 0
    if targets.dim() == 1:
        starts = lengths.cumsum(0) - lengths
        position = ops.arange(longest, device=targets.device).unsqueeze(0)
        index = (starts.unsqueeze(1) + position).clamp(max=max(targets.numel() - 1, 0))
        rows = targets[index] if targets.numel() else ops.zeros_like(index)
    else:
        rows = targets[:, :longest]
        position = ops.arange(longest, device=targets.device).unsqueeze(0)
    return ops.where(position < lengths.unsqueeze(1), rows, ops.full_like(rows, blank)).to(int64)


def ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False
):
    """Minus the log probability of ``targets`` over every alignment with (T, N, C) ``log_probs``.

    ``targets`` is (N, S), or all targets one after another. ``mean`` divides each loss by its
    target length first.
    """
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    device = log_probs.device
    input_lengths = _lengths(input_lengths, device).reshape(-1)
    target_lengths = _lengths(target_lengths, device).reshape(-1)
    steps, batch, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise RuntimeError("blank must be in label range")
    if input_lengths.numel() != batch:
        raise RuntimeError("input_lengths must be of size batch_size")
    if target_lengths.numel() != batch:
        raise RuntimeError("target_lengths must be of size batch_size")
    if batch and int(input_lengths.max()) > steps:
        raise RuntimeError(
            f"Expected input_lengths to have value at most {steps}, but got value {int(input_lengths.max())}"
        )
    loss = -_log_likelihood(
        log_probs, _padded_targets(targets, target_lengths, blank), input_lengths, target_lengths, blank
    )
    loss = loss + _normalisation_gradient(log_probs, input_lengths)
    if zero_infinity:
        loss = ops.where(loss == float("inf"), ops.zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / target_lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss.squeeze(0) if single else loss


def _log_likelihood(log_probs, targets, input_lengths, target_lengths, blank):
    """Forward recursion over the labels with blanks between them, in log space."""
    steps, batch, _ = log_probs.shape
    width = 2 * targets.size(1) + 1
    labels = ops.full((batch, width), blank, dtype=int64, device=log_probs.device)
    labels[:, 1::2] = targets
    emitted = log_probs.gather(2, labels.unsqueeze(0).expand(steps, batch, width))
    # A label may be reached over the blank before it, unless the label before is the same.
    skip = ops.zeros((batch, width), dtype=bool_, device=log_probs.device)
    if width > 2:
        skip[:, 2:] = (labels[:, 2:] != blank) & (labels[:, 2:] != labels[:, :-2])
    # A very small finite number instead of -inf keeps the gradient of logsumexp free of NaN.
    low = -1e30 if log_probs.dtype != float16 else -6e4
    position = ops.arange(width, device=log_probs.device).unsqueeze(0)
    floor = ops.full((batch, width), low, dtype=log_probs.dtype, device=log_probs.device)
    alpha = ops.where(position < 2, emitted[0], floor)
    for t in range(1, steps):
        before = ops.cat([floor[:, :1], alpha[:, :-1]], 1)
        terms = [alpha, before]
        if width > 2:
            two = ops.cat([floor[:, :2], alpha[:, :-2]], 1)
            terms.append(ops.where(skip, two, floor))
        moved = ops.logsumexp(ops.stack(terms, 0), 0) + emitted[t]
        alpha = ops.where((t < input_lengths).unsqueeze(1), moved, alpha)
    last = (2 * target_lengths).unsqueeze(1)
    final = alpha.gather(1, last)
    previous = ops.where(
        target_lengths.unsqueeze(1) > 0, alpha.gather(1, (last - 1).clamp(min=0)), floor[:, :1]
    )
    total = ops.logsumexp(ops.cat([final, previous], 1), 1)
    return ops.where(total < low / 2, ops.full_like(total, float("-inf")), total)


def _normalisation_gradient(log_probs, input_lengths):
    """Zero, with the gradient exp(log_probs): torch's gradient is the one of unnormalised scores."""
    step = ops.arange(log_probs.size(0), device=log_probs.device).unsqueeze(1)
    inside = (step < input_lengths).unsqueeze(2)
    total = ops.where(inside, log_probs.exp(), ops.zeros_like(log_probs)).sum((0, 2))
    return total - total.detach()
