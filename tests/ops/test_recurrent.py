"""Layers of recurrent networks in one operator: the same numbers as ordinary operators, in every way that they are used."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter import autograd, func
from msadapter.ops._declare import t
from msadapter.ops._recurrent import run_direction, run_stack

MODES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
# Sequences and steps: below and above the number from which threads divide them, and where the weight is transposed.
SHAPES = [(1, 1, 1, 1), (3, 5, 2, 7), (21, 4, 3, 17), (9, 3, 33, 8)]


def _operands(mode, batch, steps, width, hidden, *, bias=True, kind=torch.float64, packed=False):
    """Return (input, state, weights, batch_sizes) with gradients, whose values repeat nowhere."""
    sizes = [max(1, batch - 3 * s) for s in range(steps)] if packed else []
    gates, count = MODES[mode] * hidden, 0
    shapes = [(sum(sizes), width) if packed else (steps, batch, width)]
    shapes += [(batch, hidden)] * (2 if mode == "LSTM" else 1)
    shapes += [(gates, width), (gates, hidden), *[(gates,)] * (2 if bias else 0)]
    made = []
    for shape in shapes:
        numbers = torch.arange(count, count + torch.empty(shape).numel(), dtype=torch.float64)
        count += len(numbers)
        made.append((numbers * 0.7391 + 0.3).sin().mul(0.6).reshape(shape).to(kind).requires_grad_())
    inputs, states, weights = (
        made[0],
        made[1 : 3 if mode == "LSTM" else 2],
        made[3 if mode == "LSTM" else 2 :],
    )
    return inputs, tuple(states) if mode == "LSTM" else states[0], weights, sizes


def _flat(out, last):
    return [out, *(last if isinstance(last, tuple) else (last,))]


def _in_one_call(mode, inputs, state, weights, bias, reverse, sizes):
    states = state if isinstance(state, tuple) else (state, None)
    biases = weights[2:] if bias else (None, None)
    out, h, c, _, _ = t._recurrent_layer(inputs, *states, *weights[:2], *biases, mode, reverse, sizes)
    return [out, h, c] if mode == "LSTM" else [out, h]


def _gradients(results, operands):
    weights = [torch.linspace(-1, 2, r.numel(), dtype=r.dtype).reshape(r.shape) for r in results]
    return autograd.grad(results, operands, weights)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_one_call_equals_ordinary_operators(mode, bias, reverse, packed):
    for shape in SHAPES:
        for kind, near in ((torch.float64, 1e-12), (torch.float32, 2e-5)):
            inputs, state, weights, sizes = _operands(mode, *shape, bias=bias, kind=kind, packed=packed)
            operands = [*_flat(inputs, state), *weights]
            expected = _flat(*run_direction(mode, inputs, state, weights, bias, reverse, sizes))
            found = _in_one_call(mode, inputs, state, weights, bias, reverse, sizes)
            torch.testing.assert_close(found, expected, rtol=near, atol=near)
            torch.testing.assert_close(
                _gradients(found, operands), _gradients(expected, operands), rtol=20 * near, atol=20 * near
            )


@pytest.mark.parametrize("mode", MODES)
def test_gradients_of_each_result_and_of_each_operand_alone(mode):
    inputs, state, weights, _ = _operands(mode, 2, 3, 2, 3)
    operands = [*_flat(inputs, state), *weights]
    expected = _flat(*run_direction(mode, inputs, state, weights, True, False, []))
    found = _in_one_call(mode, inputs, state, weights, True, False, [])
    for mine, other in zip(found, expected, strict=True):
        for operand in operands:
            one = autograd.grad(mine.cos().sum(), operand, retain_graph=True)
            two = autograd.grad(other.cos().sum(), operand, retain_graph=True)
            torch.testing.assert_close(one, two, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives(mode, packed):
    inputs, state, weights, sizes = _operands(mode, 2, 3, 2, 2, packed=packed)
    flat, many = [*_flat(inputs, state), *weights], 2 if mode == "LSTM" else 1

    def layer(inputs, *rest):
        state = rest[:2] if many == 2 else rest[0]
        return tuple(_in_one_call(mode, inputs, state, rest[many:], True, True, sizes))

    assert autograd.gradcheck(layer, flat)
    assert autograd.gradgradcheck(layer, flat)


def test_hooks_of_operands_see_only_the_gradients_of_the_graph():
    inputs, state, weights, _ = _operands("GRU", 2, 3, 2, 3)
    seen = []
    twice = inputs * 2
    twice.register_hook(seen.append)
    out, _ = _in_one_call("GRU", twice, state, weights, True, False, [])
    autograd.grad(out.sum(), inputs, create_graph=True)
    assert len(seen) == 1


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_a_layer_is_one_node_however_many_steps(name):
    def nodes(steps):
        layer = getattr(torch.nn, name)(2, 3, bidirectional=True)
        seen, todo = set(), [layer(torch.randn(steps, 2, 2))[0].grad_fn]
        while todo:
            node = todo.pop()
            if node is not None and node not in seen:
                seen.add(node)
                todo += [n for n, _ in node.next_functions]
        return len(seen)

    assert nodes(3) == nodes(40)


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_transforms_of_functions(name):
    layer = getattr(torch.nn, name)(2, 3).double()
    own = dict(layer.named_parameters())
    x = torch.randn(4, 5, 2, 2, dtype=torch.float64)

    def loss(own, x):
        return func.functional_call(layer, own, (x,))[0].cos().sum()

    each = [func.grad(loss)(own, part) for part in x]
    together = func.vmap(func.grad(loss), in_dims=(None, 0))(own, x)
    for key, found in together.items():
        torch.testing.assert_close(found, torch.stack([g[key] for g in each]), rtol=1e-10, atol=1e-12)
    small = x[0, :2, :1]
    tangent = torch.randn_like(small)
    _, forward = func.jvp(lambda x: loss(own, x), (small,), (tangent,))
    backward = (func.grad(loss, argnums=1)(own, small) * tangent).sum()
    torch.testing.assert_close(forward, backward, rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(
        func.hessian(lambda x: loss(own, x))(small),
        func.jacrev(func.jacrev(lambda x: loss(own, x)))(small),
        rtol=1e-9,
        atol=1e-11,
    )


def test_a_state_of_one_sequence_serves_all():
    inputs, _, weights, _ = _operands("GRU", 3, 4, 2, 5)
    state = torch.randn(1, 1, 5, dtype=torch.float64)
    options = {"bias": True, "num_layers": 1, "dropout": 0.0, "training": False, "bidirectional": False}
    found = run_stack("GRU", inputs, state, weights, **options)[0]
    expected = run_stack("GRU", inputs, state.expand(1, 3, 5), weights, **options)[0]
    torch.testing.assert_close(found, expected)


def test_shapes_without_values():
    layer = torch.nn.LSTM(3, 4, 2, bidirectional=True, device="meta")
    out, (h, c) = layer(torch.empty(5, 6, 3, device="meta"))
    assert (out.shape, h.shape, c.shape) == ((5, 6, 8), (4, 6, 4), (4, 6, 4))
    assert out.is_meta


def test_lower_precision_rounds_at_each_operator_as_before():
    layer = torch.nn.GRU(3, 4).bfloat16()
    x = torch.randn(5, 2, 3).bfloat16()
    weights = list(layer.parameters())
    expected, _ = run_direction("GRU", x, torch.zeros(2, 4).bfloat16(), weights, True, False, [])
    assert torch.equal(layer(x)[0], expected)


@pytest.mark.parametrize(
    ("place", "shape", "message"),
    [
        (0, (3, 4, 2), "the input has 4 sequences, the state 2"),
        (0, (3, 2), "input must have 3 dimensions, got 2"),
        (1, (2, 3, 1), "the state must have 2 dimensions, got 3"),
        (2, (2, 4), r"the cell state must have the shape \[2, 3\], but got \[2, 4\]"),
        (3, (12, 5), r"the weight of the input must have the shape \[12, 2\]"),
        (4, (12, 4), r"the weight of the state must have the shape \[12, 3\]"),
        (6, (11,), r"a bias must have the shape \[12\]"),
    ],
)
def test_wrong_shapes_are_errors(place, shape, message):
    inputs, state, weights, _ = _operands("LSTM", 2, 3, 2, 3)
    operands = [inputs, *state, *weights]
    operands[place] = torch.zeros(shape, dtype=torch.float64)
    with pytest.raises(RuntimeError, match=message):
        t._recurrent_layer(*operands, "LSTM", False, [])


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ([1, 2], "batch_sizes must not grow"),
        ([3], "the first one must be at most 2"),
        ([2], "does not have the 2 rows of batch_sizes"),
    ],
)
def test_wrong_batch_sizes_are_errors(sizes, message):
    inputs, state, weights, _ = _operands("RNN_TANH", 2, 1, 2, 3)
    with pytest.raises(RuntimeError, match=message):
        t._recurrent_layer(
            torch.zeros(3, 2, dtype=torch.float64), state, None, *weights, "RNN_TANH", False, sizes
        )


def test_operands_of_two_types_are_an_error():
    inputs, state, weights, _ = _operands("RNN_RELU", 2, 1, 2, 3)
    with pytest.raises(RuntimeError, match="all operands must have the type Double"):
        t._recurrent_layer(inputs, state.float(), None, *weights, "RNN_RELU", False, [])


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
def test_cells_are_steps_of_layers(name):
    cell = getattr(torch.nn, name)(3, 5)
    layer = getattr(torch.nn, name.removesuffix("Cell"))(3, 5)
    for mine, other in zip(cell.parameters(), layer.parameters(), strict=True):
        other.data.copy_(mine.data)
    x, state = torch.randn(4, 2, 3), None
    for step in x:
        state = cell(step, state)
    last = layer(x)[1]
    found, expected = (tuple(s) if isinstance(s, tuple) else (s,) for s in (state, last))
    torch.testing.assert_close(found, tuple(s[0] for s in expected))
    batch = torch.randn(6, 2, 3)
    torch.testing.assert_close(
        func.vmap(lambda x: _pair(cell(x))[0])(batch),
        torch.stack([_pair(cell(x))[0] for x in batch]),
    )


def _pair(state):
    return state if isinstance(state, tuple) else (state, state)


@pytest.mark.parametrize("name", ["LSTMCell", "GRUCell", "RNNCell"])
def test_second_derivatives_of_cells(name):
    cell = getattr(torch.nn, name)(2, 3).double()
    x = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    own = list(cell.parameters())
    assert autograd.gradgradcheck(lambda x, *own: cell(x), (x, *own))


@pytest.mark.parametrize(("name", "gates"), [("lstm_cell", 4), ("gru_cell", 3)])
def test_a_cell_without_one_of_the_biases(name, gates):
    x, h = torch.randn(2, 3), torch.randn(2, 5)
    state = (h, h / 2) if name == "lstm_cell" else h
    weights = torch.randn(gates * 5, 3), torch.randn(gates * 5, 5)
    bias = torch.randn(gates * 5)
    cell = getattr(torch, name)
    found = cell(x, state, *weights, None, bias), cell(x, state, *weights, bias)
    none = torch.zeros_like(bias)
    expected = cell(x, state, *weights, none, bias), cell(x, state, *weights, bias, none)
    torch.testing.assert_close(found, expected)
