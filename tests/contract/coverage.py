"""Writes docs/coverage.md: which public names of torch are supported, and on which MindSpore operators they run.

    python -m tests.contract.coverage            write the page, and the list of absent names that error messages use
    python -m tests.contract.coverage --check    exit code 1 if the page is not what would be written

Two parts of the page are written by hand: the reasons in docs/coverage_reasons.json, and the measured rates and differences
in docs/coverage_answers.json. The names are those of real PyTorch (tests/golden/surface.json). A name is "partial" if some
code raises a NotImplementedError whose message begins with the name; the message says which arguments are refused. A name is
"not supported" if it is absent, and "supported" otherwise. Operators are read from the operator table.
"""

from __future__ import annotations

import argparse
import ast
import dis
import functools
import importlib
import importlib.util
import json
import re
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msadapter._host import native
from msadapter.alias import absent
from msadapter.alias.submodules import ELSEWHERE
from msadapter.ops import declarations
from msadapter.ops._declare import _Raw
from msadapter.tensor import Tensor

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "msadapter"
SURFACE = ROOT / "tests" / "golden" / "surface.json"
REASONS = ROOT / "docs" / "coverage_reasons.json"
ANSWERS = ROOT / "docs" / "coverage_answers.json"
ON_ASCEND = ROOT / "docs" / "ascend_answers.json"  # written by tests/conformance/simulated_npu.py
OUTCOMES = (
    "passes",
    "falls back",
    "differs",
    "refused",
)  # of samples on the simulated NPU, from the best to the worst
PAGE = ROOT / "docs" / "coverage.md"
MODULES = ROOT / "tests" / "golden" / "module_tree.json"  # the modules of PyTorch
ABSENT_MODULES = ROOT / "tests" / "alias" / "absent_modules.json"  # reasons for those that are absent
_MISSING = object()


# ---- which MindSpore operators a table operator runs on
def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


_RAW_CODES = set(_codes(_Raw.__getattr__.__code__))  # of the functions that raw.NAME gives


def _is_raw(value: object) -> bool:
    return isinstance(value, types.FunctionType) and value.__code__ in _RAW_CODES


def _reached(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield everything that the code of ``function`` uses, as ("raw", name), ("table", name) or ("function",
    object).
    """
    captured = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    yield from (_kind(value) for value in captured)
    yield from (_kind(value) for value in function.__defaults__ or ())
    for code in _codes(function.__code__):
        steps = list(dis.get_instructions(code))
        for step, after in zip(steps, [*steps[1:], None], strict=True):
            if step.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
                continue
            attribute = (
                after.argval if after is not None and after.opname in ("LOAD_ATTR", "LOAD_METHOD") else None
            )
            if step.argval in ("raw", "t") and attribute:
                yield ("raw" if step.argval == "raw" else "table"), attribute
            else:
                value = function.__globals__.get(step.argval)
                yield _kind(
                    getattr(value, attribute, None)
                    if isinstance(value, types.ModuleType) and attribute
                    else value
                )


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # empty: the variable of a closure that has no value yet
        return False


def _kind(value: Any) -> tuple[str, Any]:
    if _is_raw(value):
        return "raw", value.__name__
    value = getattr(value, "__wrapped__", value)
    ours = isinstance(value, types.FunctionType) and value.__module__.startswith(PACKAGE.name + ".ops")
    return ("function", value) if ours else ("", None)


def behind(function: types.FunctionType) -> tuple[set[str], set[str]]:
    """Return the MindSpore operators and the table operators that ``function`` uses, also through helpers in
    ops.
    """
    raws: set[str] = set()
    tables: set[str] = set()
    seen, queue = set(), [function]
    while queue:
        current = queue.pop()
        if current in seen:
            continue
        seen.add(current)
        for kind, value in _reached(current):
            if kind == "raw":
                raws.add(value)
            elif kind == "table":
                tables.add(value)
            elif kind == "function":
                queue.append(value)
    return raws, tables


@dataclass(frozen=True)
class Operator:
    """A row of the table of operators."""

    name: str
    forms: str
    kind: str
    mindspore: tuple[str, ...]  # operators of MindSpore that it calls
    ours: tuple[str, ...]  # operators that exist only as CPU kernels of this project
    through: tuple[str, ...]  # operators of the table that it calls
    own_on_npu: bool = False  # on an NPU it is a composite


def operators() -> list[Operator]:
    """One row for each declaration."""
    mindspore = set(native._mindspore_operators(native._mindspore_root()))
    rows = []
    for name, declaration in sorted(declarations.items()):
        if name.startswith("torch_npu."):  # declared when torch_npu is imported; docs/kernels.md lists them
            continue
        if isinstance(declaration.body, types.FunctionType):
            raws, tables = behind(declaration.body)
        else:
            raws, tables = {str(declaration.mindspore), *declaration.numbers.values()} - {""}, set()
        only_here = raws - mindspore
        rows.append(
            Operator(
                name,
                _forms(declaration),
                declaration.kind,
                tuple(sorted(raws - only_here)),
                tuple(sorted(only_here)),
                tuple(sorted(tables)),
                declaration.npu is not None,
            )
        )
    return rows


def _forms(declaration) -> str:
    words = {"f": "function", "m": "method", "i": "in place", "o": "out="}
    return ", ".join(words[letter] for letter in "fmio" if letter in declaration.forms)


# ---- which public names are there
def _joined(node: ast.expr, constants: dict[str, str]) -> str:
    """Return the text of a string expression, with "…" for each part that is known only at run time.

    ``constants`` has the texts to which the module gives a name.
    """
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name):
        return constants.get(node.id, "…")
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _joined(part, constants) if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    if isinstance(node, ast.BinOp):
        return _joined(node.left, constants) + _joined(node.right, constants)
    return ""


def _refusal(node: ast.AST, constants: dict[str, str]) -> str | None:
    """Return the message of a node that raises NotImplementedError with a torch name first, else None.

    Such a node raises the class itself, or what `unsupported` of `msadapter/_errors.py` makes of a name and a reason.
    """
    if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call) or not node.exc.args:
        return None
    texts = [_joined(argument, constants) for argument in node.exc.args]
    kind = getattr(node.exc.func, "id", "")
    if kind == "unsupported":
        message = ": ".join(texts) if len(texts) > 1 else f"{texts[0]} is not supported"
    elif kind == "NotImplementedError":
        message = texts[0].replace(" (docs/coverage.md)", "").rstrip(".")
    else:
        return None
    return message if re.match(r"torch\.[\w.]+\w", message) else None


@functools.cache
def refusals() -> dict[str, list[str]]:
    """Return, for each torch name, the messages of the code that says what is not supported."""
    found: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            target.id: node.value.value
            for node in module.body
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
            for target in node.targets
            if isinstance(target, ast.Name) and isinstance(node.value.value, str)
        }
        for node in ast.walk(module):
            message = _refusal(node, constants)
            if message is None:
                continue
            start = re.match(r"torch\.[\w.]+\w", message)
            if start is None:
                continue
            name = start[0]
            rest = message[len(name) :].lstrip(": ")
            found.setdefault(name, []).append(rest)
    return {name: sorted(set(messages)) for name, messages in found.items()}


def _lookup(namespace: str, name: str) -> object:
    module_path = PACKAGE.name + namespace.removeprefix("torch")
    if f"{namespace}.{name}".removeprefix("torch.") in ELSEWHERE:  # a module with another name here
        return ELSEWHERE
    holder: object
    try:
        if namespace == "torch.Tensor":
            holder = Tensor
        else:
            holder = importlib.import_module(module_path)
    except ModuleNotFoundError:
        return _MISSING
    try:
        return getattr(holder, name, _MISSING)
    except NotImplementedError:
        return _MISSING
    except (RuntimeError, AttributeError):  # a property that works on instances only
        return _MISSING


def _said_by(value: object) -> list[str]:
    """Return what functions that only raise NotImplementedError say: this value, or methods of this class."""
    if isinstance(value, types.FunctionType):
        return [value.unsupported] if hasattr(value, "unsupported") else []
    if not isinstance(value, type):
        return []
    methods = [name for name, method in vars(value).items() if hasattr(method, "unsupported")]
    return ["its methods " + ", ".join(f"`{name}`" for name in sorted(methods))] if methods else []


@dataclass(frozen=True)
class Name:
    """One public name of torch. Its status is "supported", "partial" or "not supported"."""

    namespace: str
    name: str
    status: str
    reason: str = ""


def _reasons() -> dict[str, str]:
    return json.loads(REASONS.read_text(encoding="utf-8"))


def _reason_of(full: str, reasons: dict[str, str]) -> str:
    """Return the reason whose pattern matches the name and is the longest; "" if none matches."""
    matching = [pattern for pattern in reasons if re.fullmatch(pattern, full)]
    return reasons[max(matching, key=len)] if matching else ""


def names() -> list[Name]:
    """Return every public name of torch with its status."""
    recorded = json.loads(SURFACE.read_text(encoding="utf-8"))["cases"]
    surface = {
        key.removeprefix("names "): value for key, value in recorded.items() if key.startswith("names ")
    }
    refused, reasons = refusals(), _reasons()
    rows = []
    for namespace in sorted(surface):
        for name in surface[namespace]:
            full = f"{namespace}.{name}"
            value = _lookup(namespace, name)
            said = refused.get(full, []) + _said_by(value)
            if value is _MISSING:
                rows.append(
                    Name(namespace, name, "not supported", _reason_of(full, reasons) or "not written yet")
                )
            elif said:
                rows.append(Name(namespace, name, "partial", "; ".join(text for text in said if text)))
            else:
                rows.append(Name(namespace, name, "supported"))
    return rows


def absent_names(rows: list[Name]) -> str:
    """Return the text of absent.LIST: the public names and the modules of PyTorch that msadapter does not have, by reason."""
    recorded = json.loads(MODULES.read_text(encoding="utf-8"))
    given = json.loads(ABSENT_MODULES.read_text(encoding="utf-8"))
    reasons = {module: reason for reason, modules in given.items() for module in modules}
    absent: dict[str, list[str]] = {}
    for row in rows:
        if row.status == "not supported":
            absent.setdefault(row.reason, []).append(f"{row.namespace}.{row.name}")
    missing = {name for part in recorded["cases"].values() for name in part if not _has_module(name)}
    for module in sorted({*reasons, *missing}):
        # a deep module in an absent package is explained by the package
        deep = module.count(".") > 2 and module.rpartition(".")[0] in missing and module not in reasons
        if not _has_module(module) and not deep:
            absent.setdefault(_module_reason(module, reasons), []).append(module)
    return (
        json.dumps({reason: sorted(set(names)) for reason, names in sorted(absent.items())}, indent=0) + "\n"
    )


def _has_module(name: str) -> bool:
    below = name.partition(".")[2]
    try:
        return importlib.util.find_spec(f"{PACKAGE.name}.{ELSEWHERE.get(below, below)}") is not None
    except ModuleNotFoundError:  # the parent does not exist either, or is not a package
        return False
    except ValueError:  # a module that is made at run time, such as torch.ops
        return True


def _module_reason(module: str, reasons: dict[str, str]) -> str:
    """Return the reason that is given for a module, or for the nearest module above or the first below it."""
    above = module
    while above.count("."):
        if above in reasons:
            return reasons[above]
        above = above.rpartition(".")[0]
    below = [reason for name, reason in reasons.items() if name.startswith(f"{module}.")]
    return below[0] if below else _reason_of(f"{module}.x", _reasons()) or "not written yet"


# ---- the page
def _table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> list[str]:
    header = list(header)
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return lines + ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]


def _summary(rows: list[Name]) -> list[str]:
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        of = counts.setdefault(row.namespace, {"supported": 0, "partial": 0, "not supported": 0})
        of[row.status] += 1
    cells: list[list[object]] = [[f"`{space}`", *of.values()] for space, of in counts.items()]
    total: list[object] = [
        "all",
        *(sum(of[key] for of in counts.values()) for key in ("supported", "partial", "not supported")),
    ]
    return _table(("namespace", "supported", "partial", "not supported"), [*cells, total])


def _namespace(space: str, rows: list[Name]) -> list[str]:
    lines = [f"### {space}", ""]
    whole = [row.name for row in rows if row.status == "supported"]
    if whole:
        lines += ["Supported: " + ", ".join(f"`{name}`" for name in whole) + ".", ""]
    partial = [(f"`{row.name}`", row.reason) for row in rows if row.status == "partial"]
    if partial:
        lines += [*_table(("partial", "what is not supported"), partial), ""]
    absent: dict[str, list[str]] = {}
    for row in rows:
        if row.status == "not supported":
            absent.setdefault(row.reason, []).append(f"`{row.name}`")
    if absent:
        cells = [(", ".join(items), reason) for reason, items in absent.items()]
        lines += [*_table(("not supported", "why"), cells), ""]
    return lines


def _operator_cells(row: Operator, on_ascend: dict[str, str]) -> tuple[str, str, str, str]:
    parts = []
    if row.mindspore:
        parts.append(", ".join(row.mindspore))
    if row.ours:
        parts.append("CPU-only kernel " + ", ".join(row.ours))
    if row.own_on_npu:
        parts.append("on an NPU a composite")
    if row.kind == "composite" or not parts:
        parts.insert(0, "composite" + (" of " + ", ".join(row.through) if row.through else ""))
    seen = on_ascend.get(row.name.removeprefix("Tensor."), "no samples")
    return f"`{row.name}`", row.forms, "; ".join(parts), seen


def _on_ascend(rows: dict[str, dict]) -> dict[str, str]:
    """Return, for each operator of the table that PyTorch's samples reach, what they showed on the simulated NPU."""
    found: dict[str, list[dict]] = {}
    for row in rows.values():
        name = re.sub(r"^torch\.(nn\.functional\.|Tensor\.)?", "", row["path"])
        found.setdefault(name, []).append(row)
    return {name: _worst(rows) for name, rows in found.items()}


def _worst(rows: list[dict]) -> str:
    """Return the worst outcome of an operator's samples, with the checks that had it, or with what ran on the host."""
    outcomes = [(check, outcome) for row in rows for check, outcome in row["outcomes"].items()]
    worst = max((outcome for _, outcome in outcomes), key=OUTCOMES.index)
    if worst == "passes":
        return worst
    if worst == "falls back":
        return f"{worst}: {', '.join(sorted({call for row in rows for call in row['on host']}))}"
    return f"{worst}: {', '.join(sorted({check for check, outcome in outcomes if outcome == worst}))}"


def _answers() -> list[str]:
    """Return the section on how many operators agree with PyTorch, and which differ and why."""
    found = json.loads(ANSWERS.read_text(encoding="utf-8"))
    kinds = ("forward", "gradient", "in-place", "method")
    rates = [(row["samples"], *(f"{row[kind]:.1f} %" for kind in kinds)) for row in found["measured"]]
    rest = [(row["operators"], row["answer"], row["why"]) for row in found["differences"]]
    return [
        "## Answers",
        "",
        "The first table counts the operators of PyTorch's sample database (OpInfo) for which every sample of every dtype gives",
        "PyTorch's result within the tolerances of `torch.testing.assert_close`. It was measured on the CPU.",
        "",
        *_table(("samples of each operator", *kinds), rates),
        "",
        "These operators differ:",
        "",
        *_table(("operators", "what differs", "why"), rest),
        "",
    ]


def _simulated_words(how: str) -> list[str]:
    """Return what the column on the simulated NPU means. ``how`` says how it was measured."""
    return [
        "The last column says what PyTorch's own samples showed on [the simulated NPU](simulated_npu.md), not on a device",
        f"({how}).",
        "*Passes*: every sample gives PyTorch's answer. *Falls back*: so it does, but the named operators were computed on the",
        "host for some samples ([ascend.md](ascend.md)). *Differs*, *refused*: some sample of the named checks gives another",
        "answer or raises an error. *No samples*: PyTorch's database has none; other operators may call it.",
    ]


def page(rows: list[Name]) -> str:
    """Return the text of docs/coverage.md."""
    table = operators()
    simulated = json.loads(ON_ASCEND.read_text(encoding="utf-8"))
    on_ascend = _on_ascend(simulated["operators"])
    version = json.loads(SURFACE.read_text(encoding="utf-8"))["torch"].partition("+")[0]
    lines = [
        "# What is supported",
        "",
        "Written by `python -m tests.contract.coverage`; a test checks that it is up to date. The lists have every public name of",
        f"PyTorch {version}, the version whose API msadapter provides by default. With `MSADAPTER_TORCH_VERSION=2.7` all of them",
        "are there too, and programs are told version 2.7.1.",
        "",
        "- *Supported*: msadapter has the name, and its code refuses no arguments that PyTorch accepts. Its results are checked",
        "  by the tests and by PyTorch's own operator samples.",
        "- *Partial*: the code refuses some arguments, or every call, which the tables name.",
        "- *Not supported*: msadapter does not have the name. The tables say why.",
        "",
        *_summary(rows),
        "",
        *_answers(),
        "## Operators",
        "",
        f"The table lists the {len(table)} operators that msadapter declares, and the MindSpore operators on which each one",
        "runs. On the CPU, msadapter's own kernels implement these MindSpore operators. *CPU-only kernel* means that MindSpore",
        "has no such operator, so an NPU's tensors are computed on the host, unless the row says *on an NPU a composite*. A",
        "*composite* consists of other operators of the table.",
        "",
        *_simulated_words(simulated["how"]),
        "",
        *_table(
            ("operator", "forms", "runs on", "Ascend (simulated)"),
            (_operator_cells(row, on_ascend) for row in table),
        ),
        "",
        "## Names",
        "",
    ]
    for space in dict.fromkeys(row.namespace for row in rows):
        lines += _namespace(space, [row for row in rows if row.namespace == space])
    return "\n".join(lines).rstrip() + "\n"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.contract.coverage", description="Writes docs/coverage.md."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; check that the page is up to date"
    )
    args = parser.parse_args(arguments)
    rows = names()
    stale = 0
    for path, text in ((PAGE, page(rows)), (absent.LIST, absent_names(rows))):
        shown = path.relative_to(ROOT)
        if not args.check:
            path.write_text(text, encoding="utf-8")
            print(f"{shown}: {text.count(chr(10))} lines")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale = 1
            print(f"{shown} is out of date; run python -m tests.contract.coverage")
        else:
            print(f"{shown} is up to date")
    return stale


if __name__ == "__main__":
    sys.exit(main())
