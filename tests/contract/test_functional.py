"""torch.nn.functional has one home: what computes is declared in the operator table, so that every rule for operators sees it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import msadapter as torch
from msadapter.ops import declarations, namespaces

F = torch.nn.functional

# Helpers that PyTorch's own modules import from torch.nn.functional. None of them computes an answer of its own.
HELPERS = {
    "_canonical_mask",
    "_in_projection",
    "_in_projection_packed",
    "_mha_shape_check",
    "_no_grad_embedding_renorm_",
    "_none_or_dtype",
    "_verify_batch_size",
    "_verify_spatial_size",
    "has_torch_function",
    "has_torch_function_unary",
    "has_torch_function_variadic",
}


def test_functions_are_declared():
    # As `torch.nn.functional` the module has a __getattr__, which says which names of PyTorch are absent.
    plain = {name for name, value in vars(F).items() if inspect.isfunction(value)} - {"__getattr__"}
    assert plain == HELPERS
    for name, function in namespaces["nn.functional"].items():
        assert vars(F)[name] is function


@pytest.mark.parametrize(
    "name", ["cross_entropy", "prelu", "glu", "bilinear", "interpolate", "ctc_loss", "embedding_bag"]
)
def test_a_function_has_one_definition(name):
    package = Path(torch.__file__).parent
    found = [
        (path.name, node.name)
        for folder in ("nn", "ops")
        for path in (package / folder).rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name == name
        # torch.ctc_loss is another operator, with a number for the reduction.
        if path.name != "torch_forms.py"
    ]
    assert len(found) == 1
    assert f"nn.functional.{name}" in declarations


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.kl_div(torch.ones(2)),
        lambda: torch.gru_cell(torch.ones(1, 2), torch.ones(1, 2)),
        lambda: F.interpolate(torch.ones(1, 1, 2), sice=3),
        lambda: torch.detach(torch.ones(1), torch.ones(1)),
    ],
)
def test_arguments_are_checked_against_the_schema(call):
    with pytest.raises(TypeError, match="interpolate|kl_div|gru_cell|detach"):
        call()


def test_a_mode_sees_the_function_and_not_its_parts():
    seen = []

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            seen.append(function.__name__)
            return function(*args, **(kwargs or {}))

    x = torch.ones(1, 1, 2)
    with Watch():
        F.interpolate(x, 4)
    assert seen == ["interpolate"]


def test_vmap_and_out():
    x = torch.randn(3, 2, 4)
    assert torch.equal(torch.vmap(lambda v: F.normalize(v))(x), torch.stack([F.normalize(v) for v in x]))
    out = torch.empty(3, 2, 4)
    assert F.normalize(x, out=out) is out
    assert torch.equal(out, F.normalize(x))


def test_the_deprecated_name_of_the_mean_is_understood_by_every_loss():
    x, y = torch.randn(3), torch.ones(3)
    with pytest.warns(UserWarning, match="elementwise_mean"):
        assert F.soft_margin_loss(x, y, reduction="elementwise_mean") == F.soft_margin_loss(x, y)
