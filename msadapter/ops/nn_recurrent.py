"""One layer of a recurrent network in one direction, as a single operator.

Layers that the operator does not take, and all layers on an NPU, are made of ordinary operators (``_recurrent``).
"""

from __future__ import annotations

from ._declare import op, raw
from ._recurrent import run_direction
from .nn_norm import gradients_of, recording


def _gradients_of_steps(gs, operands, mode, reverse, batch_sizes, needs):
    """Return the gradients of the same layer made of ordinary operators, with their own graph."""

    def layer(inputs, hx, cx, w_ih, w_hh, b_ih, b_hh):
        weights = [w_ih, w_hh] if b_ih is None else [w_ih, w_hh, b_ih, b_hh]
        state = hx if cx is None else (hx, cx)
        rows, last = run_direction(mode, inputs, state, weights, b_ih is not None, reverse, batch_sizes)
        return (rows, last) if cx is None else (rows, *last)

    return gradients_of(layer, operands, needs, gs[: 2 if operands[2] is None else 3])


def _recurrent_grad(gs, input, hx, cx, w_ih, w_hh, b_ih, b_hh, mode, reverse, batch_sizes,
        result0, result3, result4, needs):  # fmt: skip
    if gs[0] is None and gs[1] is None and gs[2] is None:
        return (None,) * 7
    if recording():
        operands = (input, hx, cx, w_ih, w_hh, b_ih, b_hh)
        return _gradients_of_steps(gs, operands, mode, reverse, batch_sizes, needs)
    found = raw.RecurrentGrad(
        *gs[:3],
        input,
        hx,
        cx,
        w_ih,
        w_hh,
        result0,
        result3,
        result4,
        mode,
        reverse,
        batch_sizes,
        [int(needed) for needed in needs],
    )
    return tuple(g if needed else None for g, needed in zip(found, needs, strict=True))


@op(
    "_recurrent_layer(Tensor input, Tensor hx, Tensor? cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, "
    "str mode, bool reverse, int[] batch_sizes) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    forms="f",
    grad={("input", "hx", "cx", "w_ih", "w_hh", "b_ih", "b_hh"): _recurrent_grad},
    autocast="as given",
    whole=True,
)
def _recurrent_layer(input, hx, cx, w_ih, w_hh, b_ih, b_hh, mode, reverse, batch_sizes):
    """Return (output, last h, last c, the gates and cells that the gradient reads) of one layer and direction.

    Args:
        input: (T, B, I), or packed rows (N, I) when ``batch_sizes`` has a number for each step.
        hx: (B, H). cx: (B, H) for LSTM, else None.
        w_ih: (gates * H, I). w_hh: (gates * H, H). b_ih, b_hh: (gates * H), or None.
        mode: LSTM, GRU, RNN_TANH or RNN_RELU, whose gates and formulas are those of PyTorch's layers.
        reverse: whether it runs from the last step to the first.

    All tensors are float32, or all float64. RuntimeError for shapes that do not fit.
    """
    return raw.Recurrent(input, hx, cx, w_ih, w_hh, b_ih, b_hh, mode, reverse, batch_sizes)
