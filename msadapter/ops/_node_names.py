"""The names of graph nodes, such as MulBackward0. They are PyTorch's, which programs print and compare."""

from __future__ import annotations

import re

from . import _schema

_KINDS = ("tensor", "number", "given", "list")  # in the order of Op::NodeCase in csrc/dispatch/op.h


def node_name(schema: _schema.Schema) -> str:
    """Return the name of an operator's node, as PyTorch makes it: ``linalg.lu`` gives LinalgLuBackward0."""
    name = re.sub(r"^(Tensor|nn\.functional|aten)\.", "", schema.name)
    return re.sub(r"[._]", " ", name).title().replace(" ", "") + "Backward0"


def node_cases(schema: _schema.Schema, nodes: dict[str, str] | None) -> list[tuple[int, int, str]]:
    """Return (kind, index of the argument, name) for each entry of ``nodes``, whose keys are such as "other tensor".

    Raises ValueError for an unknown argument or kind.
    """
    cases = []
    for case, name in (nodes or {}).items():
        argument, _, kind = case.partition(" ")
        if kind not in _KINDS:
            raise ValueError(
                f"{schema.name}: nodes: {case!r} is not an argument followed by one of {', '.join(_KINDS)}"
            )
        cases.append((_KINDS.index(kind), schema.index(argument), name))
    return cases
