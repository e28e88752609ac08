"""torch.fx against the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
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


@pytest.mark.parametrize("case", CASES)
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
