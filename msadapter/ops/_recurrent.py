"""The computation of recurrent networks with ordinary operators: cells, layers and stacks of layers."""

from __future__ import annotations

from .._host import extensions
from ._declare import _C, t
from ._functional import functional


def tanh_step(gates, hidden, w_hh, b_hh):
    """Return the next hidden state, tanh(gates + W h)."""
    return t.tanh(gates + functional.linear(hidden, w_hh, b_hh))


def relu_step(gates, hidden, w_hh, b_hh):
    """Return the next hidden state, relu(gates + W h)."""
    return functional.relu(gates + functional.linear(hidden, w_hh, b_hh))


def gru_step(gates, hidden, w_hh, b_hh):
    """Return the next hidden state n + z (h - n), computed from the reset, update and new gates."""
    in_reset, in_update, in_new = gates.chunk(3, -1)
    h_reset, h_update, h_new = functional.linear(hidden, w_hh, b_hh).chunk(3, -1)
    reset = t.sigmoid(in_reset + h_reset)
    update = t.sigmoid(in_update + h_update)
    new = t.tanh(in_new + reset * h_new)
    return (hidden - new) * update + new


def lstm_step(gates, state, w_hh, b_hh, w_hr=None):
    """Return the next states (h', c'), computed from the input, forget, cell and output gates.

    ``w_hr`` projects h' if it is given.
    """
    hidden, cell = state
    in_gate, forget, new, out = (gates + functional.linear(hidden, w_hh, b_hh)).chunk(4, -1)
    cell = t.sigmoid(forget) * cell + t.sigmoid(in_gate) * t.tanh(new)
    hidden = t.sigmoid(out) * t.tanh(cell)
    if w_hr is not None:
        hidden = functional.linear(hidden, w_hr)
    return hidden, cell


STEPS = {"RNN_TANH": tanh_step, "RNN_RELU": relu_step, "GRU": gru_step, "LSTM": lstm_step}


class _States:
    """A state of one tensor (RNN, GRU) or two tensors (LSTM), whose rows can be selected and joined."""

    @staticmethod
    def map(state, fn):
        return tuple(fn(s) for s in state) if isinstance(state, tuple) else fn(state)

    @staticmethod
    def cat(first, second):
        if isinstance(first, tuple):
            return tuple(t.cat([a, b], 0) for a, b in zip(first, second, strict=True))
        return t.cat([first, second], 0)

    @staticmethod
    def hidden(state):
        return state[0] if isinstance(state, tuple) else state


def _split_weights(weights, bias):
    """Return (w_ih, b_ih, the remaining arguments of the step function) of one layer and direction."""
    w_ih, w_hh = weights[:2]
    b_ih, b_hh = weights[2:4] if bias else (None, None)
    rest = weights[4 if bias else 2 :]
    return w_ih, b_ih, (w_hh, b_hh, *rest)


def _run_padded(step, inputs, state, weights, bias, reverse):
    """Run one direction over padded inputs (T, B, I). Returns the outputs (T, B, H) and the last state."""
    w_ih, b_ih, own = _split_weights(weights, bias)
    gates = functional.linear(inputs, w_ih, b_ih).unbind(0)
    outputs = []
    for gate in reversed(gates) if reverse else gates:
        state = step(gate, state, *own)
        outputs.append(_States.hidden(state))
    if reverse:
        outputs.reverse()
    return t.stack(outputs, 0), state


def _run_packed(step, inputs, state, weights, bias, reverse, batch_sizes):
    """Run one direction over packed rows. The longest sequence comes first in each step."""
    w_ih, b_ih, own = _split_weights(weights, bias)
    gates = list(functional.linear(inputs, w_ih, b_ih).split(batch_sizes, 0))
    if reverse:
        return _run_packed_backwards(step, gates, state, own, batch_sizes)
    outputs, finished = [], []
    current = batch_sizes[0]
    for gate, size in zip(gates, batch_sizes, strict=True):
        if size < current:
            finished.append(_States.map(state, lambda s, a=size: s[a:]))
            state = _States.map(state, lambda s, a=size: s[:a])
            current = size
        state = step(gate, state, *own)
        outputs.append(_States.hidden(state))
    for tail in reversed(finished):
        state = _States.cat(state, tail)
    return t.cat(outputs, 0), state


def _run_packed_backwards(step, gates, initial, own, batch_sizes):
    """Run from the last step to the first. A sequence enters at its own last step."""
    outputs = []
    current = batch_sizes[-1]
    state = _States.map(initial, lambda s: s[:current])
    for gate, size in zip(reversed(gates), reversed(batch_sizes), strict=True):
        if size > current:
            joining = _States.map(initial, lambda s, a=current, b=size: s[a:b])
            state = _States.cat(state, joining)
            current = size
        state = step(gate, state, *own)
        outputs.append(_States.hidden(state))
    outputs.reverse()
    return t.cat(outputs, 0), state


def run_direction(mode, inputs, state, weights, bias, reverse, batch_sizes):
    """Run one layer and direction with ordinary operators. Returns the outputs and the last state.

    ``batch_sizes`` is the number of rows of each step of packed inputs (N, I); for padded inputs (T, B, I) it is empty.
    """
    step = STEPS[mode]
    if batch_sizes:
        return _run_packed(step, inputs, state, weights, bias, reverse, batch_sizes)
    return _run_padded(step, inputs, state, weights, bias, reverse)


_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _is_one_call(mode, inputs, state, weights, bias, batch_sizes) -> bool:
    """Return whether one operator computes the layer: full precision, no projection, shapes as PyTorch documents them.

    Ordinary operators compute any other layer, or say what is wrong with its shapes.
    """
    states = state if isinstance(state, tuple) else (state,)
    kind, hidden = inputs.dtype, states[0].shape[-1]
    gates = _GATES[mode] * hidden
    batch = batch_sizes[0] if batch_sizes else inputs.shape[1]
    shapes = [(gates, inputs.shape[-1]), (gates, hidden), *[(gates,)] * (2 if bias else 0)]
    return (
        not inputs.is_npu
        and not _C.autocast_enabled()
        and inputs.is_floating_point()
        and kind.itemsize > 2
        and inputs.numel() > 0
        and inputs.ndim == (2 if batch_sizes else 3)
        and all(x.dtype is kind for x in (*states, *weights))
        and all(tuple(x.shape) == (batch, hidden) for x in states)
        and [tuple(w.shape) for w in weights] == shapes
    )


def _run_one_call(mode, inputs, state, weights, bias, reverse, batch_sizes):
    h, c = state if isinstance(state, tuple) else (state, None)
    w_ih, w_hh, b_ih, b_hh = weights if bias else (*weights, None, None)
    out, h, c, _, _ = t._recurrent_layer(inputs, h, c, w_ih, w_hh, b_ih, b_hh, mode, reverse, batch_sizes)
    return out, (h, c) if isinstance(state, tuple) else h


def _is_batched(tensors) -> bool:
    """Return whether one of the tensors is a batch of vmap. Ordinary operators take the whole batch at once."""
    batches = extensions.batches.value
    return batches is not None and any(isinstance(x, batches.kind) for x in tensors)


def run_cell(mode, inputs, state, w_ih, w_hh, b_ih, b_hh):
    """Return the next state of a cell: inputs (B, I), and h (B, H) or the pair (h, c).

    LSTM and GRU are layers of one step. The other cells have too few operators to gain from it.
    """
    states = state if isinstance(state, tuple) else (state,)
    bias = b_ih is not None
    weights = [w_ih, w_hh, b_ih, b_hh] if bias else [w_ih, w_hh]
    whole = mode in ("LSTM", "GRU") and bias == (b_hh is not None) and inputs.ndim == 2
    whole = whole and not _is_batched([inputs, *states, *weights])
    if whole and _is_one_call(mode, inputs.unsqueeze(0), state, weights, bias, []):
        return _run_one_call(mode, inputs.unsqueeze(0), state, weights, bias, False, [])[1]
    return STEPS[mode](functional.linear(inputs, w_ih, b_ih), state, w_hh, b_hh)


def run_stack(
    mode, inputs, hx, weights, *, bias, num_layers, dropout, training, bidirectional, batch_sizes=None
):
    """Run every layer and direction.

    Args:
        inputs: (T, B, I), or the packed rows when ``batch_sizes`` is given.
        hx: initial states (layers * directions, B, H), a pair for LSTM.
        weights: flat list, layer by layer, forward direction first.

    Returns:
        (outputs, last states in the form of ``hx``).
    """
    sizes = batch_sizes or []
    directions = 2 if bidirectional else 1
    per_cell = len(weights) // (num_layers * directions)
    last = []
    for layer in range(num_layers):
        parts = []
        for direction in range(directions):
            index = layer * directions + direction
            cell = weights[index * per_cell : (index + 1) * per_cell]
            state = _States.map(hx, lambda s, i=index: s[i])
            one_call = _is_one_call(mode, inputs, state, cell, bias, sizes)
            run = _run_one_call if one_call else run_direction
            out, state = run(mode, inputs, state, cell, bias, direction == 1, sizes)
            parts.append(out)
            last.append(state)
        inputs = parts[0] if directions == 1 else t.cat(parts, -1)
        if dropout and training and layer < num_layers - 1:
            inputs = functional.dropout(inputs, dropout, True)
    if mode == "LSTM":
        return inputs, tuple(t.stack([s[i] for s in last], 0) for i in (0, 1))
    return inputs, t.stack(last, 0)
