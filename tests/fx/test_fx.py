"""torch.fx against the answers recorded from PyTorch."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

import msadapter as torch
from msadapter.ops._declare import declaration_of
from tests.batches import together
from tests.golden import store
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("fx")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because the cases import torch by name."""


def test_wrap_keeps_calls():
    from msadapter import fx

    space: dict = {"fx": fx, "__name__": "wrapping"}
    code = "fx.wrap('len')\nfx.wrap('twice')\ndef twice(x):\n    return x * 2\ndef f(x):\n    return twice(x) + len(x)\n"
    exec(compile(code, "wrapping", "exec"), space)
    graph = fx.symbolic_trace(space["f"]).graph
    assert [n.name for n in graph.nodes if n.op == "call_function"] == ["twice", "len_1", "add"]
    assert "len" not in space  # tracing adds names to the module, and must remove them again


def test_modules_are_as_before():
    from msadapter import fx

    before = torch.nn.Module.__call__, torch.nn.functional.relu, "__getattr__" in vars(torch.nn.Module)
    with pytest.raises(ValueError, match="control flow"):
        fx.symbolic_trace(lambda x: 1 if x else 2)
    assert before == (
        torch.nn.Module.__call__,
        torch.nn.functional.relu,
        "__getattr__" in vars(torch.nn.Module),
    )


@together(CASES)
def test_case(case):
    check("fx", case, CASES[case], torch)


def test_make_fx_refuses_what_it_cannot_do():
    from msadapter.fx.experimental.proxy_tensor import make_fx

    for options, name in (
        ({"tracing_mode": "symbolic"}, "tracing_mode"),
        ({"decomposition_table": {1: 2}}, "decomposition_table"),
    ):
        with pytest.raises(NotImplementedError, match=f"make_fx: {name}.*docs/coverage.md"):
            make_fx(lambda x: x, **options)
    with pytest.raises(TypeError, match="expected a Tensor, not ValueProxy"):
        make_fx(torch.vmap(lambda v: v.sin()))(torch.ones(2, 2))


def test_values_that_leave_a_trace_are_noticed():
    """A number that is not a tensor becomes a constant: with a warning, or not at all."""
    from msadapter.distributed.pipelining import pipeline
    from msadapter.jit import TracerWarning

    def through_numpy(x):
        return x * float(x.detach().numpy().sum())

    with pytest.warns(TracerWarning, match="a ndarray becomes a Python ndarray"):
        torch.jit.trace(through_numpy, torch.ones(2))

    class Branch(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x

    with pytest.raises(RuntimeError, match="turns a tensor into a Python bool"):
        pipeline(Branch(), (torch.ones(2),))


def test_a_module_that_keeps_a_traced_tensor_is_refused_and_left_as_it_was():
    class Keeps(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(2))

        def forward(self, x):
            self.total = self.total + x
            return self.total

    module = Keeps()
    with pytest.raises(NotImplementedError, match="forward assigns a traced tensor to total"):
        torch.jit.trace(module, torch.ones(2))
    assert type(module.total) is torch.Tensor
    assert module.total.tolist() == [0.0, 0.0]


def test_assertions_are_recorded_on_demand():
    from msadapter import fx

    class Asserting(fx.Tracer):
        trace_asserts = True

    space: dict = {}
    exec(
        "def program(x):\n    assert x.sum() > 0\n    return x", space
    )  # pytest changes the assertions of this file
    graph = Asserting().trace(space["program"])
    module = fx.GraphModule({}, graph)
    assert [n.op for n in graph.nodes] == [
        "placeholder",
        "call_method",
        "call_function",
        "call_function",
        "output",
    ]
    with pytest.raises(AssertionError, match="Assertion failed"):
        module(torch.zeros(2))


def test_functions_that_pytorch_writes_in_python_have_its_signatures():
    """The names of PyTorch's own signatures, in their order."""
    seen = 0
    for key, wanted in store.load("surface").cases.items():
        name = key.removeprefix("signature torch.nn.functional.")
        function = vars(torch.nn.functional).get(name) if name != key else None
        declaration = declaration_of(function)[0]
        if declaration is None or not declaration.schema.name.startswith("nn.functional."):
            continue  # torch.sigmoid and a few others are torch.nn.functional's functions too here
        names = [p.lstrip("~/").partition("=")[0] for p in wanted]
        assert list(inspect.signature(function).parameters) == names, name
        seen += 1
    assert seen > 80


def test_builtins_of_pytorch_pass_for_builtins():
    assert inspect.isbuiltin(torch.add)
    assert inspect.isbuiltin(torch.nn.functional.conv2d)
    assert not inspect.isbuiltin(torch.nn.functional.relu)
    assert copy.deepcopy(torch.add) is torch.add
    assert pickle.loads(pickle.dumps(torch.nn.functional.relu)) is torch.nn.functional.relu


def test_operators_with_different_results_are_called_as_often_as_before():
    from msadapter import fx
    from msadapter.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops

    aten = torch.ops.aten
    assert {aten.rand_like, aten.bernoulli} <= get_CSE_banned_ops()
    module = fx.symbolic_trace(lambda x: aten.rand_like.default(x) + aten.rand_like.default(x))
    assert not CSEPass(get_CSE_banned_ops())(module).modified
    assert CSEPass()(module).modified


def test_a_replacement_brings_its_modules():
    from msadapter import fx

    class Uses(torch.nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return self.inner(x)

    class Other(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.other = torch.nn.Tanh()

        def forward(self, x):
            return self.other(x)

    module = fx.symbolic_trace(Uses(torch.nn.ReLU()))
    fx.replace_pattern(module, fx.symbolic_trace(Uses(torch.nn.ReLU())), fx.symbolic_trace(Other()))
    assert [name for name, _ in module.named_children()] == ["other"]
    x = torch.linspace(-1, 1, 5)
    assert torch.equal(module(x), x.tanh())
