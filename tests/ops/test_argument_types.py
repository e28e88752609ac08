"""Arguments of wrong types: each function of the table raises TypeError, as PyTorch's argument parser does."""

from __future__ import annotations

import functools

import pytest

import msadapter as torch
from msadapter.ops import declarations
from tests.batches import together

VALUES = {
    "Tensor": lambda: torch.ones(2, 2),
    "TensorOrScalar": lambda: torch.ones(2, 2),
    "Tensor[]": lambda: [torch.ones(2, 2)],
    "int[]": lambda: [1],
    "float": lambda: 1.0,
    "float[]": lambda: [1.0],
    "bool": lambda: False,
    "str": lambda: "none",
    "ScalarType": lambda: torch.float32,
}
WRONG = {"a number": 2, "a string": "abc", "a list": [1.0, 2.0], "None": None, "an object": object()}


def _public():
    """(name, function, schema) of all functions and methods of the table."""
    for declaration in declarations.values():
        name = declaration.schema.name
        if name.split(".")[-1].startswith("_"):
            continue
        if "f" in declaration.forms and not name.startswith("Tensor."):
            # Some operators have names below torch.ops alone.
            root = torch.ops if name.startswith("aten.") else torch
            function = functools.reduce(getattr, name.split("."), root)
            yield name, function, declaration.schema
        if declaration.inplace is not None:
            yield name + "_", declaration.inplace, declaration.schema


CASES = {name: (function, schema) for name, function, schema in _public()}


@together(sorted(CASES))
def test_wrong_types_in_places_of_tensors(name):
    function, schema = CASES[name]
    required = [p for p in schema.parameters if p.required]
    for place, parameter in enumerate(required):
        if parameter.type not in ("Tensor", "Tensor[]"):
            continue
        for what, wrong in WRONG.items():
            if wrong is None and parameter.nullable:
                continue
            values = [VALUES.get(p.type, lambda: 1)() for p in required]
            values[place] = wrong
            args = [v for p, v in zip(required, values, strict=True) if not p.keyword_only]
            kwargs = {p.name: v for p, v in zip(required, values, strict=True) if p.keyword_only}
            with pytest.raises(TypeError):
                function(*args, **kwargs)
                pytest.fail(f"{name} takes {what} as {parameter.name}")


@pytest.mark.parametrize(
    "call, message",
    [
        ("torch.nn.functional.kl_div(x, [1.0, 2.0])", "argument 'target' (position 2) must be Tensor, not list"),
        ("torch.ldexp(1, 2)", "argument 'self' (position 1) must be Tensor, not int"),
        ("torch.cdist(1, 2)", "argument 'x1' (position 1) must be Tensor, not int"),
        ("torch.kron(x, None)", "argument 'other' (position 2) must be Tensor, not NoneType"),
        ("torch.Tensor.add_(2, 2)", "descriptor 'add_' for 'torch._C.TensorBase' objects doesn't apply to a 'int' object"),
        ("torch.Tensor.add(2, 2)", "descriptor 'add' for 'torch._C.TensorBase' objects doesn't apply to a 'int' object"),
    ],
)  # fmt: skip
def test_the_error_names_the_argument(call, message):
    with pytest.raises(TypeError) as error:
        eval(call, {"torch": torch, "x": torch.ones(2)})
    assert message in str(error.value)


METHODS = sorted(name for name, d in declarations.items() if {"m", "o"} <= set(d.forms) and "." not in name)


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_no_out(name):
    """The function has a form with ``out=``, its method has none."""
    x = torch.ones(2, 2)
    method = getattr(torch.Tensor, name.split(".")[-1])
    required = [p for p in declarations[name].schema.parameters[1:] if p.required]
    args = [VALUES.get(p.type, lambda: 1)() for p in required if not p.keyword_only]
    kwargs = {p.name: VALUES.get(p.type, lambda: 1)() for p in required if p.keyword_only}
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'out'"):
        method(x, *args, **kwargs, out=torch.empty(0))


def test_classes_that_answer_functions():
    """Objects that are not tensors may implement the torch functions to which they are passed."""

    class Diagonal:
        def __init__(self, n):
            self.n = n

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, [type(a).__name__ for a in args], types

    d = Diagonal(2)
    assert torch.mean(d) == ("mean", ["Diagonal"], (Diagonal,))
    assert torch.add(torch.ones(2), d)[0] == "add"
    assert torch.nn.functional.kl_div(d, d)[0] == "kl_div"
    assert torch.stack([torch.ones(2), d])[0] == "stack"


@pytest.mark.parametrize(
    "make",
    [
        lambda **o: torch.zeros(2, **o),
        lambda **o: torch.empty(2, **o),
        lambda **o: torch.full((2,), 1.0, **o),
        lambda **o: torch.arange(3, **o),
        lambda **o: torch.ones_like(torch.ones(2), **o),
        lambda **o: torch.rand(2, **o),
        lambda **o: torch.eye(2, **o),
        lambda **o: torch.ones(2).new_zeros(2, **o),
    ],
)
def test_layouts_of_new_tensors(make):
    """Of one dim: a compressed layout needs two, and most of these functions know no sparse layouts."""
    assert make(layout=torch.strided).layout is torch.strided is make(layout=None).layout
    with pytest.raises(
        (NotImplementedError, RuntimeError), match="only strided tensors|but got size \\[2\\]"
    ):
        make(layout=torch.sparse_csr)


def test_cdist_knows_its_modes():
    x = torch.ones(2, 3)
    assert torch.equal(torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist"), torch.zeros(2, 2))
    with pytest.raises(ValueError, match="fast is not a valid value for compute_mode"):
        torch.cdist(x, x, compute_mode="fast")
