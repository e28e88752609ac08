"""`python -m kernels_ascend` writes docs/kernels.md: for each fused operator, what it runs on and which tests check it.

Nothing in its table is written by hand. Operators, gradients and mappings are read from the modules, proofs from the tests.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from msadapter.ops import declarations

from . import _mapping, mindspeed

ROOT = Path(__file__).resolve().parents[1]
PROOFS = ("tests/kernels", "tests/distributed/jobs/fused_products.py")
NO_PROOF = (
    "test_mapping.py",
    "test_ascend_inference.py",
)  # they check the mapping onto Ascend operators, no numbers
PREFIX = "torch_npu."
COMPOSITE = "composite of table operators"


@dataclass(frozen=True)
class Proof:
    """A test that uses an operator. kind: "drawn" (by hypothesis), "ranks" (several processes) or "fixed" (chosen cases)."""

    test: str
    kind: str


def _bodies() -> dict:
    """Name of every public operator -> the function that implements it."""
    import kernels_ascend

    found = {
        name.removeprefix(PREFIX): one.body for name, one in declarations.items() if name.startswith(PREFIX)
    }
    found |= {name: getattr(kernels_ascend, name) for name in kernels_ascend.__all__}
    return {
        name: body
        for name, body in sorted(found.items())
        if not name.startswith("_") or name.startswith("_npu")
    }


def mapped(body, seen: set | None = None) -> set[str]:
    """Return the operators of MindSpore, gradients too, that a function names, itself or through functions that it calls."""
    seen = set() if seen is None else seen
    body = getattr(body, "__wrapped__", body)
    if not hasattr(body, "__code__") or body in seen:
        return set()
    seen.add(body)
    codes, found = [body.__code__], set()
    while codes:
        code = codes.pop()
        codes += [x for x in code.co_consts if hasattr(x, "co_consts")]
        found |= {x for x in code.co_consts if isinstance(x, str) and x in _mapping.OPERATORS}
        modules = [
            body.__globals__[x] for x in code.co_names if isinstance(body.__globals__.get(x), ModuleType)
        ]
        for name in code.co_names:
            inner = body.__globals__.get(name) or next(
                (getattr(x, name) for x in modules if hasattr(x, name)), None
            )
            operator = (
                declarations.get(PREFIX + name.removeprefix("torch_npu_"))
                if name.startswith("torch_npu_")
                else None
            )
            for one in (operator and operator.body, inner):
                if (getattr(one, "__module__", None) or "").startswith("kernels_ascend"):
                    found |= mapped(one, seen)
    return found | {f"{name}Grad" for name in found if f"{name}Grad" in _mapping.OPERATORS}


def _tests():
    """Yields for every test: the file of its module, its syntax tree, and the module's functions by name."""
    for place in PROOFS:
        path = ROOT / place
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            if file.name in NO_PROOF or not file.exists():
                continue
            functions = {
                n.name: n for n in ast.parse(file.read_text()).body if isinstance(n, ast.FunctionDef)
            }
            for name, node in functions.items():
                if name.startswith(("test_", "check_")):
                    yield file, node, functions


def _names(node, functions: dict, seen: set[str]) -> set[str]:
    """The names that a test uses, directly or through functions of its module."""
    found = {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    found |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    for name in (found & set(functions)) - seen:
        seen.add(name)
        found |= _names(functions[name], functions, seen)
    return found


def proofs() -> dict[str, list[Proof]]:
    """Name -> the tests that use it, drawn tests first. Tests of refusals do not count as proofs."""
    found: dict[str, list[Proof]] = {}
    for file, node, functions in _tests():
        drawn = any("given" in ast.unparse(one) for one in node.decorator_list)
        kind = "drawn" if drawn else "ranks" if node.name.startswith("check_") else "fixed"
        if "refus" in node.name or "missing" in node.name or "derivative" in node.name:
            continue
        for name in _names(node, functions, {node.name}):
            found.setdefault(name, []).append(Proof(f"{file.stem}::{node.name}", kind))
    order = ("drawn", "ranks", "fixed")
    return {name: sorted(tests, key=lambda x: (order.index(x.kind), x.test)) for name, tests in found.items()}


def gradient_of(name: str) -> str:
    """The entry of the column "gradient": "yes", "raises", "in place" or "integers"."""
    one = declarations.get(PREFIX + name)
    if name.removesuffix("_v2") in _mapping.UNDERIVABLE:
        return "raises"
    if name in mindspeed.IN_PLACE:
        return "in place"
    return "yes" if one is None or one.kind == "composite" or one.differentiable else "integers"


def rows() -> list[tuple[str, str, str, list[Proof]]]:
    """(operator, gradient, MindSpore's operators or "composite", proofs) of every public operator and extension."""
    bodies, tests = _bodies(), proofs()
    functions = {one.function: one.body for one in declarations.values()}
    for extension in mindspeed.EXTENSIONS:
        for name, body in vars(mindspeed.load(extension)).items():
            bodies.setdefault(name, functions.get(body, body))
    found: list[tuple[str, str, str, list[Proof]]] = []
    for name, body in bodies.items():
        if getattr(body, "refused", False):
            found.append((name, "-", "refused by name", []))
            continue
        operators = ", ".join(sorted(mapped(body))) or COMPOSITE
        if name in _mapping.NOT_CALLED:
            operators += f"; MindSpore's {_mapping.NOT_CALLED[name]} is not called"
        found.append((name, gradient_of(name), operators, tests.get(name, [])))
    return found


def _shown(tests: list[Proof]) -> str:
    """At most two tests of the strongest kind."""
    best = [x for x in tests if x.kind == tests[0].kind][:2]
    return ", ".join(x.test for x in best) + f" ({best[0].kind})" if best else "-"


def _simulated(name: str) -> str:
    """Whether tests/simulator/jobs/torch_fused.py compares the operator with the CPU."""
    return "as on the CPU" if re.search(rf"torch_npu\.{name}\(", SIMULATED.read_text()) else "-"


def table() -> str:
    """The rows as Markdown."""
    lines = [
        "| operator | gradient | on Ascend | CPU, proven by | on the simulated NPU | on a device |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {g} | {operators} | {_shown(tests)} | {_simulated(name)} | not run yet |"
        for name, g, operators, tests in rows()
    ]
    return "\n".join(lines)


PAGE = ROOT / "docs/kernels.md"
SIMULATED = ROOT / "tests/simulator/jobs/torch_fused.py"
INTRODUCTION = """# Fused operators

Generated by `python -m kernels_ascend` from the modules of `kernels_ascend` and from the tests.

- gradient: "yes" means that backward() differentiates the operator, "raises" that backward() raises NotImplementedError. There is
  nothing to differentiate if the results are integers, or are written to tensors that the caller passes ("in place").
- on Ascend: the MindSpore operators that the operator of MindSpeed or torch_npu calls there. Names, order and kinds of their
  operands are checked against MindSpore's headers, shapes and dtypes of their results against MindSpore's own inference, without
  a device. A composite consists of operators of msadapter's table, because MindSpore has no operator for it.
- CPU: the tests that compare numbers with a second implementation in float64. "drawn": hypothesis draws shapes, dtypes, strides and
  modes; "ranks": the test runs on two to four processes; "fixed": chosen cases.
- on the simulated NPU: "as on the CPU" means that a test compares the operator there, with its gradients, with the CPU
  (`tests/simulator/jobs/torch_fused.py`). It shows nothing about a device's numbers ([simulated_npu.md](simulated_npu.md)).
"""


def page() -> str:
    """The text of docs/kernels.md."""
    return f"{INTRODUCTION}\n{table()}\n"


if __name__ == "__main__":
    PAGE.write_text(page())
