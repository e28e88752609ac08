"""What declarations say about operators is what PyTorch says about them."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter.ops._declare import declarations
from msadapter.profiler import profile
from tests.golden import store

GOLDEN = store.load("facts").cases
_FAMILIES = ("special", "linalg", "fft")
_UNTAGGED = "PyTorch has no tag for it"
_LIKE = "its numbers do not depend on its operand"
_PARTS = "its results of parts cannot be joined, and msadapter.func has a rule of its own for it"

# By fact: the operators of which we say something else, with the reason.
DIFFERENT = {
    "pointwise": {
        **dict.fromkeys(("complex", "conj", "copy", "fill", "floor_divide", "hardswish", "imag"), _UNTAGGED),
        **dict.fromkeys(("polar", "real", "special_ndtr", "zero"), _UNTAGGED),
        **dict.fromkeys(("empty_like", "full_like", "ones_like", "zeros_like"), _LIKE),
        "frexp": "returns two tensors",
        "heaviside": "does not promote its operands",
        "max": "PyTorch's tag is that of its form with two tensors",
        "min": "PyTorch's tag is that of its form with two tensors",
        "mvlgamma": "a composite of pointwise operators",
    },
    "reduction": {
        **dict.fromkeys(("aminmax", "norm", "std", "std_mean", "var", "var_mean"), _PARTS),
        **dict.fromkeys(("median", "nanmedian"), _UNTAGGED),
    },
    "random": {
        "fractional_max_pool2d": "in torch.ops.aten its random numbers are an argument",
        **dict.fromkeys(
            ("gru", "lstm", "rnn_relu", "rnn_tanh"), "the dropout that they call draws the numbers"
        ),
    },
    "keeps_zeros": {
        "clone": "msadapter.sparse has code of its own for it",
        "conj_physical": "PyTorch keeps repeated indices, although it is not linear in complex numbers",
    },
}


def _by_name() -> dict:
    """Our operators by the names that they have in torch.ops.aten, in the order in which names are preferred."""
    found: dict = {}
    for space in ("", "aten", "Tensor", "nn.functional", *_FAMILIES):
        for declaration in declarations.values():
            own, _, name = declaration.schema.name.rpartition(".")
            if own == space:
                found.setdefault(f"{space}_{name}" if space in _FAMILIES else name, declaration)
    return {name: d for name, d in found.items() if name in GOLDEN["known"] and not name.endswith("_")}


@pytest.mark.parametrize(
    ("fact", "tag"),
    [
        ("pointwise", "pointwise"),
        ("reduction", "reduction"),
        ("random", "nondeterministic_seeded"),
        ("keeps_zeros", "keeps_zeros"),
    ],
)
def test_fact(fact, tag):
    operators = _by_name()
    assert len(operators) > 400
    ours = {name for name, declaration in operators.items() if getattr(declaration.facts, fact)}
    assert ours ^ (operators.keys() & GOLDEN[tag]) == DIFFERENT[fact].keys()


def _called_by(function, *args) -> list:
    """The declarations of the operators that a call runs."""
    with profile() as events:
        function(*args)
    names = {event.name.removeprefix("aten::") for event in events.events()}
    return [d for d in declarations.values() if d.schema.name in names]


def test_what_a_pointwise_composite_runs_is_pointwise():
    """vmap and DTensor take a composite apart, and read the facts of the operators that it runs."""
    values = {
        "Tensor": torch.full((2, 3), 0.5),
        "TensorOrScalar": torch.full((2, 3), 0.5),
        "float": 0.25,
        "Scalar": 0.25,
    }
    composites = [d for d in declarations.values() if d.kind == "composite" and d.facts.pointwise]
    others, count = {}, 0
    for composite in composites:
        if composite.schema.name in ("fill", "where"):  # where with a condition alone finds indices
            continue
        args = [values[p.type] for p in composite.schema.parameters if p.required]
        called = [d for d in _called_by(composite.function, *args) if d.kind != "composite" and not d.view]
        others |= {(composite.schema.name, d.schema.name): 1 for d in called if not d.facts.pointwise}
        count += bool(called)
    assert not others
    assert count > 20


def test_every_foreach_function_is_there():
    assert len(GOLDEN["foreach"]) > 40
    assert [name for name in GOLDEN["foreach"] if not hasattr(torch, f"_foreach_{name}")] == []
