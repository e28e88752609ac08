"""Reads the gradient formulas of a declaration: which arguments and results each formula uses."""

from __future__ import annotations

import dis
import functools
import inspect

from . import _schema

_METADATA = ("shape", "dtype", "ndim")


@functools.lru_cache(maxsize=1)  # a formula is asked about each of its arguments in turn
def _instructions(code) -> list:
    return list(dis.get_instructions(code))


def _reads_shape_only(function, name: str) -> bool:
    """Whether a formula asks its argument for nothing but shape, dtype and ndim: then the values are not kept."""
    if not any(attribute in function.__code__.co_names for attribute in _METADATA):
        return False  # seen at once; reading instructions costs import time
    code = _instructions(function.__code__)
    uses = [i for i, step in enumerate(code) if step.opname.startswith("LOAD_") and step.argval == name]
    return bool(uses) and all(
        code[i].opname == "LOAD_FAST"
        and code[i + 1].opname == "LOAD_ATTR"
        and code[i + 1].argval in _METADATA
        for i in uses
    )


def formulas(schema: _schema.Schema, grad) -> list:
    """Return (indices of the arguments, function, what it reads, whether it returns all gradients) of each formula.

    What a formula reads is a list of (kind, index, whether only shape, dtype and ndim are read), as csrc/dispatch takes it.
    Raises ValueError for a name that is neither an argument nor a result.
    """
    out = []
    names = [p.name for p in schema.parameters]
    for key, function in (grad or {}).items():
        joint = isinstance(key, tuple)
        wanted = [schema.index(k) for k in (key if joint else (key,))]
        parameters = list(inspect.signature(function).parameters)[1:]
        needs = []
        for name in parameters:
            if name == "needs":
                needs.append((2, 0, False))
            elif name == "result":
                needs.append((1, 0, False))
            elif name.startswith("result") and name[6:].isdigit():
                needs.append((1, int(name[6:]), False))
            elif name in names:
                needs.append((0, names.index(name), _reads_shape_only(function, name)))
            elif name in schema.results:
                needs.append((1, schema.results.index(name), False))
            else:
                raise ValueError(
                    f"{schema.name}: the gradient reads {name!r}, which is neither argument nor result"
                )
        out.append((wanted, function, needs, joint))
    return out
