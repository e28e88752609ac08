"""Properties of every declaration in the operator table: its names exist, and its arguments are PyTorch's."""

from __future__ import annotations

import importlib
import json
from collections import Counter
from pathlib import Path

import msadapter
from msadapter.alias import absent
from msadapter.ops import declarations, t
from msadapter.ops._declare import declaration_of
from tests.contract import coverage
from tests.golden import surface

HERE = Path(__file__).resolve().parent
DIFFERENCES = json.loads((HERE / "differences.json").read_text(encoding="utf-8"))

_SAME = {"self": "input", "tensor": "input"}  # the first argument of a method has another name in functions


def _holder(space: str) -> object:
    if space == "torch":
        return msadapter
    if space == "Tensor":
        return msadapter.Tensor
    if space == "aten":
        return msadapter.ops.aten
    return importlib.import_module(f"msadapter.{space}")


def test_every_name_is_reachable() -> None:
    wrong = []
    for declaration in declarations.values():
        for full in declaration.names:
            space, _, name = full.rpartition(".")
            if name.startswith("_") and not name.startswith("__"):
                continue  # used inside the table only
            found = getattr(_holder(space), name, None)
            if not callable(found):
                wrong.append(full)
    assert not wrong


def test_every_operator_of_torch_has_a_name() -> None:
    nameless = [
        name
        for name, declaration in declarations.items()
        if not declaration.names and not name.startswith("_")
    ]
    assert not nameless


def test_private_operators_are_not_methods() -> None:
    """An operator that serves other operators alone must not appear on PyTorch's Tensor."""
    assert [name for name, d in declarations.items() if name.startswith("_") and "m" in d.forms] == []


def test_no_name_is_declared_twice() -> None:
    counts = Counter(full for declaration in declarations.values() for full in set(declaration.names))
    assert [full for full, n in counts.items() if n > 1] == []


def _known(declaration) -> set[str]:
    """Return every keyword that the operator takes.

    PyTorch's two names of the first argument count as one.
    """
    names = {name for p in declaration.schema.parameters for name in (p.name, *p.aliases)}
    names |= {"out"} if "o" in declaration.forms else set()
    return {_SAME.get(name, name) for name in names}


def _torchs(name: str) -> set[str] | None:
    """Return the keywords that PyTorch takes, or None if neither inspect nor the dispatcher knows them."""
    inspected = surface.signature(f"torch.{name}")
    operator = name.removeprefix("Tensor.").removeprefix("aten.").replace(".", "_")
    if inspected is not None:
        names = {p.name for p in inspected}
    elif (overloads := surface.overloads(operator)) is not None:
        names = {p.name for overload in overloads for p in overload}
    else:
        return None
    return {_SAME.get(name, name) for name in names}


def test_arguments_are_torchs() -> None:
    """Operators take all keywords of PyTorch except the listed ones, and the list has no outdated entries."""
    missing, compared = {}, 0
    for name, declaration in declarations.items():
        theirs = _torchs(name)
        if theirs is None or name.startswith("_"):
            continue
        compared += 1
        if absent := sorted(theirs - _known(declaration)):
            missing[name] = absent
    assert compared > 400
    assert missing == {name: entry["absent"] for name, entry in DIFFERENCES.items()}
    assert all(entry["why"] for entry in DIFFERENCES.values())


def test_order_of_positional_arguments_is_torchs() -> None:
    """Positional arguments that an operator and PyTorch share come in the same order."""
    wrong = []
    for name, declaration in declarations.items():
        inspected = surface.signature(f"torch.{name}")
        if inspected is None:
            continue
        theirs = [_SAME.get(p.name, p.name) for p in inspected if p.kind == "POSITIONAL_OR_KEYWORD"]
        ours = [_SAME.get(p.name, p.name) for p in declaration.schema.parameters if not p.keyword_only]
        common = [p for p in ours if p in theirs]
        if common != [p for p in theirs if p in ours]:
            wrong.append((name, ours, theirs))
    assert not wrong


def test_coverage_page_is_up_to_date() -> None:
    rows = coverage.names()
    for path, text in ((coverage.PAGE, coverage.page(rows)), (absent.LIST, coverage.absent_names(rows))):
        assert path.read_text(encoding="utf-8") == text, "run python -m tests.contract.coverage"


def test_coverage_counts_what_is_there() -> None:
    rows = {f"{row.namespace}.{row.name}": row for row in coverage.names()}
    assert rows["torch.add"].status == "supported" and rows["torch.nn.Linear"].status == "supported"
    assert rows["torch.ao.quantization.prepare_qat"].status == "not supported"
    assert all(row.reason for row in rows.values() if row.status == "not supported")


def test_operators_behind_the_table() -> None:
    rows = {row.name: row for row in coverage.operators()}
    assert "AddExt" in rows["add"].mindspore
    assert all(row.mindspore or row.ours or row.through or row.kind != "operator" for row in rows.values())


_DRAWING = {
    f"{name}_" for name in ("normal", "uniform", "exponential", "bernoulli", "random", "geometric", "cauchy")
}


def _draws(declaration, seen: set[str]) -> bool:
    """Whether an operator, or an operator that its body calls, is declared as random or fills tensors with random numbers."""
    if declaration.schema.name in seen:
        return False
    seen.add(declaration.schema.name)
    if declaration.facts.random or declaration.body is None:
        return declaration.facts.random is not None
    if _DRAWING & set(declaration.body.__code__.co_names):
        return True
    _, called = coverage.behind(declaration.body)
    found = (declaration_of(getattr(t, name, None))[0] for name in called)
    return any(_draws(other, seen) for other in found if other is not None)


def test_every_operator_that_draws_random_numbers_says_so() -> None:
    silent = [d.schema.name for d in declarations.values() if not d.facts.random and _draws(d, set())]
    assert silent == []
