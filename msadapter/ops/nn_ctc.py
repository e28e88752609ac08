"""Connectionist temporal classification (CTC)."""

from __future__ import annotations

from .._values.base import Base
from .._values.dtype import ALL
from ._declare import composite, op, raw, t
from .nn_norm import gradients_of, recording


def _lengths(values, device, name):
    if isinstance(values, Base) and (values.is_floating_point() or values.is_complex()):
        raise RuntimeError(f"{name} must be integral")
    return (
        values.to(device, ALL["int64"])
        if isinstance(values, Base)
        else t.tensor(list(values), dtype=ALL["int64"], device=device)
    )


def _padded_targets(targets, lengths, blank):
    """Return targets (N, S) in which the entries after each length are blanks."""
    longest = int(lengths.max()) if lengths.numel() else 0
    if targets.dim() == 1:
        starts = lengths.cumsum(0) - lengths
        position = t.arange(longest, device=targets.device).unsqueeze(0)
        index = (starts.unsqueeze(1) + position).clamp(max=max(targets.numel() - 1, 0))
        rows = targets[index] if targets.numel() else t.zeros_like(index)
    else:
        rows = targets[:, :longest]
        position = t.arange(longest, device=targets.device).unsqueeze(0)
    return t.where(position < lengths.unsqueeze(1), rows, t.full_like(rows, blank)).to(ALL["int64"])


@composite(
    "nn.functional.ctc_loss(Tensor log_probs, Tensor targets, any input_lengths, any target_lengths, "
    "int blank=0, str reduction='mean', bool zero_infinity=False) -> Tensor",
    forms="f",
    autocast={"cpu": "float32"},
)
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity):
    """Return the negative log probability of ``targets`` over all alignments with ``log_probs`` (T, N, C).

    ``targets`` is (N, S), or 1-dimensional with all targets one after another. The reduction ``mean`` first
    divides each loss by the length of its target.
    """
    single = log_probs.dim() == 2
    if single:
        log_probs = log_probs.unsqueeze(1)
        targets = targets.unsqueeze(0) if targets.dim() == 1 else targets
    device = log_probs.device
    input_lengths = _lengths(input_lengths, device, "input_lengths").reshape(-1)
    target_lengths = _lengths(target_lengths, device, "target_lengths").reshape(-1)
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
    labels = _labels_of_states(_padded_targets(targets, target_lengths, blank), blank)
    if log_probs.is_floating_point() and log_probs.dtype.itemsize > 2 and not log_probs.is_npu:
        loss, _ = t._ctc(log_probs, labels, input_lengths, target_lengths, zero_infinity)
    else:
        loss = _loss_of_operators(log_probs, labels, input_lengths, target_lengths)
    if zero_infinity:
        loss = t.where(loss == float("inf"), t.zeros_like(loss), loss)
    if reduction == "mean":
        return (loss / target_lengths.clamp(min=1).to(loss.dtype)).mean()
    if reduction == "sum":
        return loss.sum()
    if reduction != "none":
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return loss.squeeze(0) if single else loss


def _labels_of_states(targets, blank):
    """Return the labels (N, 2 S + 1) with blanks before, between and behind them."""
    labels = t.full(
        (targets.size(0), 2 * targets.size(1) + 1), blank, dtype=ALL["int64"], device=targets.device
    )
    labels[:, 1::2] = targets
    return labels


def _ctc_grad(gs, log_probs, labels, input_lengths, target_lengths, zero_infinity, result0, result1):
    if gs[0] is None:
        return None
    if not recording():
        return raw.CtcLossGrad(
            gs[0], log_probs, labels, input_lengths, target_lengths, result0, result1, zero_infinity
        )

    def loss(log_probs):
        return _loss_of_operators(log_probs, labels, input_lengths, target_lengths)

    return gradients_of(loss, [log_probs], [True], gs[0])[0]


@op(
    "_ctc(Tensor log_probs, Tensor labels, Tensor input_lengths, Tensor target_lengths, bool zero_infinity)"
    " -> (Tensor, Tensor)",
    forms="f",
    grad={"log_probs": _ctc_grad},
    node="CtcLossBackward0",
    whole=True,
)
def _ctc(log_probs, labels, input_lengths, target_lengths, zero_infinity):
    """Return (loss (N,), the log probabilities of all states, which the gradient reads).

    ``zero_infinity`` says that an infinite loss has the gradient zero instead of NaN.
    """
    return raw.CtcLoss(log_probs, labels, input_lengths, target_lengths)


def _loss_of_operators(log_probs, labels, input_lengths, target_lengths):
    loss = -_log_likelihood(log_probs, labels, input_lengths, target_lengths)
    return loss + _normalisation_gradient(log_probs, input_lengths)


def _log_likelihood(log_probs, labels, input_lengths, target_lengths):
    """Do the forward recursion over the labels of the states, in log space."""
    steps, batch, _ = log_probs.shape
    width = labels.size(1)
    emitted = log_probs.gather(2, labels.unsqueeze(0).expand(steps, batch, width))
    # A label can follow the previous label without the blank between them, unless both are the same.
    skip = t.zeros((batch, width), dtype=ALL["bool"], device=log_probs.device)
    if width > 2:
        skip[:, 2:] = labels[:, 2:] != labels[:, :-2]
    # A very small finite number is used instead of -inf, because -inf makes the gradient of logsumexp NaN.
    low = -1e30 if log_probs.dtype != ALL["float16"] else -6e4
    position = t.arange(width, device=log_probs.device).unsqueeze(0)
    floor = t.full((batch, width), low, dtype=log_probs.dtype, device=log_probs.device)
    alpha = t.where(position < 2, emitted[0], floor)
    for time in range(1, steps):
        before = t.cat([floor[:, :1], alpha[:, :-1]], 1)
        terms = [alpha, before]
        if width > 2:
            two = t.cat([floor[:, :2], alpha[:, :-2]], 1)
            terms.append(t.where(skip, two, floor))
        moved = t.logsumexp(t.stack(terms, 0), 0) + emitted[time]
        alpha = t.where((time < input_lengths).unsqueeze(1), moved, alpha)
    last = (2 * target_lengths).unsqueeze(1)
    final = alpha.gather(1, last)
    previous = t.where(
        target_lengths.unsqueeze(1) > 0, alpha.gather(1, (last - 1).clamp(min=0)), floor[:, :1]
    )
    total = t.logsumexp(t.cat([final, previous], 1), 1)
    return t.where(total < low / 2, t.full_like(total, float("-inf")), total)


def _normalisation_gradient(log_probs, input_lengths):
    """Return zero, with the gradient exp(log_probs).

    PyTorch's gradient is that with respect to scores that are not normalised.
    """
    step = t.arange(log_probs.size(0), device=log_probs.device).unsqueeze(1)
    inside = (step < input_lengths).unsqueeze(2)
    total = t.where(inside, log_probs.exp(), t.zeros_like(log_probs)).sum((0, 2))
    return total - total.detach()
