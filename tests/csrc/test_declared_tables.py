"""Native code and declarations match: an entry without a declaration is an error."""

from __future__ import annotations

from dataclasses import replace

import pytest

import msadapter as torch
from msadapter.ops import _declare
from tests.golden import store

OUT = store.load("out_forms").cases

# One function has both names here, two in PyTorch, of which only one takes out=.
TWO_NAMES = {
    "nn.functional.tanh",
    "nn.functional.sigmoid",
    "special.softmax",
    "special.log_softmax",
    "threshold",
    "det",
}


def test_every_entry_is_declared():
    entries = _declare._C.native_entries()
    assert {"body", "gradient", "call"} == set(entries) and all(
        len(set(names)) == len(names) for names in entries.values()
    )
    _declare.check_native()


@pytest.mark.parametrize(
    ("kind", "name"), [("body", "sum"), ("gradient", "nn.functional.linear"), ("call", "reshape")]
)
def test_an_entry_without_a_declaration_is_an_error(kind, name, monkeypatch):
    declaration = _declare.declarations[name]
    monkeypatch.setattr(declaration, "facts", replace(declaration.facts, native=()))
    with pytest.raises(
        RuntimeError,
        match=f'has a native {kind} for {name}, but no declaration of that name says native="{kind}"',
    ):
        _declare.check_native()


def test_out_is_taken_where_pytorch_takes_it():
    wrong = {}
    for d in _declare.declarations.values():
        for name in (d.schema.name, *d.aliases):
            takes = "o" in d.forms or any(p.name == "out" for p in d.schema.parameters)
            if name in OUT and name not in TWO_NAMES and OUT[name] != takes:
                wrong[name] = OUT[name]
    assert len(OUT) > 500 and not wrong


@pytest.mark.parametrize(
    "call",
    [
        lambda x: torch.clone(x, out=x),
        lambda x: torch.zeros_like(x, out=x),
        lambda x: x.clone().add_(1, out=x),
        lambda x: torch.nn.functional.relu(x, out=x),
        lambda x: torch.clone(x, out=None),
    ],
)
def test_out_is_refused_elsewhere(call):
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        call(torch.ones(2))


@pytest.fixture
def declare():
    """Declares an operator with many parameters, and removes it from the table afterwards."""
    names = []

    def make(parameters: int, needs: int):
        own = [f"x{i}" for i in range(parameters)]
        formula = eval(f"lambda g, {', '.join(own[:needs])}: g")
        schema = f"_wide{parameters}({', '.join(f'Tensor {n}' for n in own)}) -> Tensor"
        names.append(schema.partition("(")[0])
        return _declare.op(schema, forms="f", grad={"x0": formula})(lambda x0, *rest: _declare.raw.Mul(x0, 2))

    yield make
    for name in names:
        _declare.declarations.pop(name, None)
        _declare.namespaces["torch"].pop(name, None)
        vars(_declare.t).pop(name, None)


def test_formulas_may_read_every_parameter(declare):
    """A formula that reads forty arguments. A regression test: the array for them had room for twenty-four."""
    function = declare(40, 40)
    x = [torch.ones(2, requires_grad=True) for _ in range(40)]
    function(*x).sum().backward()
    assert x[0].grad.tolist() == [1, 1]


def test_more_parameters_than_there_is_room_for_are_refused(declare):
    with pytest.raises(RuntimeError, match="_wide41: 41 parameters are declared, at most 40 are possible"):
        declare(41, 1)
