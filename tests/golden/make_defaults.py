"""The suite defaults: the defaults of PyTorch's functions, constructors and methods.

Reads the modules of PyTorch that this project has a file for. A default is recorded as Python text; defaults that are
no plain values are left out, because their texts name addresses.
"""

from __future__ import annotations

import importlib
import inspect
import warnings
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "msadapter"
PLAIN = (type(None), bool, int, float, complex, str)


def modules() -> list[str]:
    """The names of the project's modules that are also modules of torch."""
    files = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")]
    parts = [(*path.parts[:-1], *([] if path.stem == "__init__" else [path.stem])) for path in files]
    hidden = ("csrc", "ops", "alias", "_host")
    return sorted(".".join(("torch", *p)) for p in parts if not (p and p[0] in hidden))


def text_of(default) -> str | None:
    """A plain value, or a tuple or list of plain values, as Python text; None for anything else."""
    inner = default if isinstance(default, (tuple, list)) else [default]
    if all(isinstance(v, PLAIN) for v in inner):
        return (
            f"'{default.value}'" if isinstance(default, str) and hasattr(default, "value") else repr(default)
        )
    return None


def defaults_of(function) -> dict[str, str]:
    """The recorded defaults of a callable by parameter; empty if Python cannot find its signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return {}
    found = {p.name: text_of(p.default) for p in parameters if p.default is not p.empty}
    return {name: text for name, text in found.items() if text is not None}


def callables(module) -> dict[str, object]:
    """The functions of a module and the public methods of its classes, by their names in the module."""
    found = {}
    for name, value in vars(module).items():
        if inspect.isfunction(value):
            found[name] = value
        elif isinstance(value, type) and not name.startswith("_"):
            for inner in vars(value):
                method = inspect.getattr_static(value, inner)
                method = getattr(method, "__func__", method)
                if inspect.isfunction(method) and (
                    not inner.startswith("_") or inner in ("__init__", "__new__")
                ):
                    found[f"{name}.{inner}"] = method
    return found


def golden_answers(torch) -> dict:
    warnings.simplefilter("ignore")
    record, seen = {}, set()
    for path in modules():
        try:
            module = importlib.import_module(path)
        except ImportError:
            continue
        for name, function in callables(module).items():
            if not (function.__module__ or "").startswith("torch") or id(function) in seen:
                continue
            if found := defaults_of(function):
                seen.add(id(function))
                record.setdefault(path, {})[name] = found
    return record
