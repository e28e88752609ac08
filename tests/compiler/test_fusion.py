"""Elementwise functions given to torch.compile or torch.jit.script run as one kernel with the same bits."""

import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from msadapter.compiler import _fusion
from msadapter.compiler._fusion import Fused
from msadapter.nn import functional as F
from msadapter.ops._declare import declarations, namespaces


@torch.compile
def swiglu(y):
    a, b = torch.chunk(y, 2, -1)
    return F.silu(a) * b


@torch.compile
def bias_swiglu(y, bias):
    y = y + bias
    return swiglu(y)


@torch.compile
def swiglu_back(g, y):
    a, b = torch.chunk(y, 2, -1)
    return torch.cat((g * torch.sigmoid(a) * (1 + a * (1 - torch.sigmoid(a))) * b, g * F.silu(a)), -1)


@torch.jit.script
def bias_gelu(bias, y):
    x = bias + y
    return x * 0.5 * (1.0 + torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x)))


@torch.jit.script
def bias_gelu_back(g, bias, y):
    x = bias + y
    t = torch.tanh(0.79788456 * x * (1 + 0.044715 * x * x))
    ff = 0.5 * x * ((1 - t * t) * (0.79788456 + 0.1070322243 * x * x)) + 0.5 * (1 + t)
    return ff * g


@torch.compile
def pair(x, y):
    z = x * y - 2.5
    return z.exp(), 1.0 / (z * z + 1)


def data(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return [torch.randn(*shape).to(dtype) for shape in shapes]


CASES = {
    "swiglu": (swiglu, ((5, 8),)),
    "bias_swiglu": (bias_swiglu, ((3, 5, 8), (8,))),
    "swiglu_back": (swiglu_back, ((7, 6), (7, 12))),
    "bias_gelu": (bias_gelu, ((700,), (9, 700))),
    "bias_gelu_back": (bias_gelu_back, ((9, 700), (700,), (9, 700))),
    "pair": (pair, ((4, 1, 6), (5, 1))),
}


def bits(result):
    results = result if isinstance(result, tuple) else (result,)
    return [(r.dtype, tuple(r.shape), r.stride(), r.tolist()) for r in results]


def runs_as_one_kernel(function, operands):
    plans = [plan for plan in function._plans.values() if plan is not None]
    return len(plans) == 1 and bits(plans[0].run(operands, 0)) is not None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_the_function(name, dtype):
    function, shapes = CASES[name]
    function._plans.clear()
    operands = data(*shapes, dtype=dtype)
    assert bits(function(*operands)) == bits(function.__wrapped__(*operands))
    assert runs_as_one_kernel(function, operands)


def test_operands_of_two_types():
    x, y = data((4, 6), (4, 6))
    x = x.bfloat16()
    pair._plans.clear()
    assert bits(pair(x, y)) == bits(pair.__wrapped__(x, y))


def test_strided_operands():
    x, y = data((6, 4), (8, 6))
    assert bits(pair(x.t(), y[::2])) == bits(pair.__wrapped__(x.t(), y[::2]))


def test_parameters_are_operands_too():
    bias_gelu._plans.clear()
    with torch.no_grad():
        y, bias = torch.randn(9, 70), torch.nn.Parameter(torch.randn(70))
        assert bits(bias_gelu(bias, y)) == bits(bias_gelu.__wrapped__(bias, y))
    assert runs_as_one_kernel(bias_gelu, [bias, y])


def test_gradients_are_recorded_by_the_function_itself():
    x, y = data((4, 6), (4, 6))
    x.requires_grad_()
    a, b = pair(x, y)
    (a + b).sum().backward()
    wanted = torch.autograd.grad(sum(pair.__wrapped__(x, y)).sum(), x)[0]
    assert torch.equal(x.grad, wanted)
    with torch.no_grad():
        assert not pair(x, y)[0].requires_grad


def test_what_depends_on_values_is_not_fused():
    calls = []

    @torch.compile
    def decides(x):
        return x * 2 + 1 if x.sum() > 0 else x - 1

    @torch.compile
    def effects(x):
        calls.append(1)
        return x * 2 + 1

    x = torch.ones(3)
    assert decides(x).tolist() == [3, 3, 3] and decides(-x).tolist() == [-2, -2, -2]
    effects(x), effects(x)
    assert len(calls) == 2


def test_errors_are_the_functions_own():
    with pytest.raises(RuntimeError, match="The size of tensor a"):
        bias_gelu(torch.ones(3), torch.ones(2, 4))
    with pytest.raises(TypeError):
        bias_gelu(torch.ones(3))


def test_a_function_that_was_replaced_is_seen():
    x, b = data((5, 8), (8,))
    before = bits(bias_swiglu(x, b))
    original = globals()["swiglu"]
    globals()["swiglu"] = Fused(lambda y: y * 2 + 1)
    try:
        assert bits(bias_swiglu(x, b)) == bits((x + b) * 2 + 1) != before
    finally:
        globals()["swiglu"] = original


def test_modes_autocast_and_meta_leave_it_alone():
    x, y = data((4, 6), (4, 6))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert bits(pair(x, y)) == bits(pair.__wrapped__(x, y))
    assert pair(x.to("meta"), y.to("meta"))[0].is_meta


def test_a_module_stays_what_it_is():
    module = torch.nn.Linear(2, 2)
    assert torch.compile(module) is module


FUSABLE = sorted(
    (place.rpartition(".")[2], len([p for p in one.schema.parameters if p.type.startswith("Tensor")]))
    for one in declarations.values()
    if one.facts.fuses is not None
    for place in one.names
    if place.startswith("Tensor.") and namespaces["Tensor"][place.rpartition(".")[2]] is not one.inplace
)


@pytest.mark.parametrize(("name", "operands"), FUSABLE)
def test_the_method_of_every_fusable_operator_runs_as_one_kernel(name, operands):
    """As a method, and as an operator of Python if it is one. A declaration that says ``fuses=`` is enough for that."""
    scope: dict = {}
    call = f"a.{name}({'b' if operands == 2 else ''})"
    exec(f"def function(a, b):\n    return {call} * 0.5 + b", scope)
    function = torch.compile(scope["function"])
    values = data((3, 5), (5,))
    assert bits(function(*values)) == bits(scope["function"](*values))
    assert runs_as_one_kernel(function, values)


def test_a_new_fusable_operator_has_its_method():
    assert {"add", "subtract", "__truediv__", "__abs__", "negative", "relu"} <= {name for name, _ in FUSABLE}


def test_a_method_with_another_option_runs_as_it_is():
    @torch.compile
    def function(a, b):
        return a.add(b, alpha=3) * 2 + b

    values = data((3, 5), (5,))
    assert bits(function(*values)) == bits(function.__wrapped__(*values))
    assert not runs_as_one_kernel(function, values)


OPERATORS = st.sampled_from(
    [
        "a + b",
        "a - b",
        "a * b",
        "a / b",
        "-a",
        "a.tanh()",
        "a.sigmoid()",
        "torch.relu(a)",
        "F.silu(a)",
        "F.gelu(a)",
        "a * 0.3",
        "2 - a",
        "1.5 / a",
        "a.abs()",
        "a.sub(b)",
        "a.multiply(2.5)",
        "a.div(b)",
        "abs(a)",
        "a.negative()",
        "F.gelu(a, approximate='tanh')",
        "a + 0.1",
    ]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(OPERATORS, st.integers(0, 30), st.integers(0, 30)), min_size=2, max_size=12),
    st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_a_random_chain_gives_the_same_bits_when_fused(steps, dtype):
    lines, values = ["def chain(v0, v1):"], ["v0", "v1"]
    for text, i, j in steps:
        name = f"v{len(values)}"
        a, b = values[i % len(values)], values[j % len(values)]
        lines.append(f"    a, b = {a}, {b}\n    {name} = {text}")
        values.append(name)
    lines.append(f"    return {values[-1]}")
    scope = {"torch": torch, "F": F}
    exec("\n".join(lines), scope)
    function = torch.compile(scope["chain"])
    operands = data((3, 70), (70,), dtype=dtype)
    ours, wanted = function(*operands), scope["chain"](*operands)
    assert ours.dtype == wanted.dtype and torch.equal(ours.nan_to_num(7.0), wanted.nan_to_num(7.0))


def test_operands_of_two_types_run_as_one_kernel():
    """A regression test: an error during recording was swallowed, so such calls were never fused."""
    x, y = data((4, 6), (4, 1))
    pair._plans.clear()
    operands = [x.to(torch.bfloat16), y]
    pair(*operands)
    assert runs_as_one_kernel(pair, operands)


def test_a_recording_that_fails_says_so():
    """An error that occurs with symbols but not with tensors is reported."""

    @torch.compile
    def surprising(x):
        return torch.nn.functional.broken(x) * x + x

    torch.nn.functional.broken = lambda x: 2.0 * x if isinstance(x, torch.Tensor) else 1 / 0
    try:
        (x,) = data((3, 4))
        with pytest.warns(RuntimeWarning, match=r"surprising could not be recorded .*ZeroDivisionError"):
            made = surprising(x)
        assert bits(made) == bits(2.0 * x * x + x)
    finally:
        del torch.nn.functional.broken


def test_errors_of_the_function_are_its_own():
    @torch.compile
    def wrong(x):
        return torch.add(x, x, x, x, x) + x

    with pytest.raises(TypeError, match="positional arguments"), warnings.catch_warnings():
        warnings.simplefilter("error")
        wrong(*data((3, 4)))


def test_errors_of_the_planner_are_not_hidden(monkeypatch):
    def broken(self, result):
        raise LookupError("a mistake in the planner")

    monkeypatch.setattr(_fusion._Plan, "__init__", broken)
    pair._plans.clear()
    with pytest.raises(LookupError, match="a mistake in the planner"):
        pair(*data((3, 4), (3, 4)))


def test_a_write_to_an_argument_is_not_lost():
    @torch.compile
    def accumulate(x, y):
        x += y
        return x * 2 + y

    x, y = data((3, 4), (3, 4))
    want = (x + y).tolist()
    accumulate(x, y)
    assert x.tolist() == want
