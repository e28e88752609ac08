"""The names of graph nodes, such as MulBackward0. They are PyTorch's, which programs print and compare."""

from __future__ import annotations

import re

from . import _schema

_KINDS = (
    "tensor",
    "number",
    "given",
    "list",
    "1d",
    "2d",
)  # in the order of Op::NodeCase in csrc/dispatch/op.h


def node_name(schema: _schema.Schema) -> str:
    """Return the name of an operator's node, as PyTorch makes it: ``linalg.lu`` gives LinalgLuBackward0."""
    name = re.sub(r"^(Tensor|nn\.functional|aten)\.", "", schema.name)
    return re.sub(r"[._]", " ", name).title().replace(" ", "") + "Backward0"


def node_cases(
    schema: _schema.Schema, nodes: dict[str, str] | None
) -> list[tuple[list[tuple[int, int]], str]]:
    """Return (conditions, name) for each entry of ``nodes``, whose keys are such as "self 2d, other 1d".

    A condition is (kind, index of the argument). Raises ValueError for an unknown argument or kind.
    """
    return [
        ([_condition(schema, text) for text in case.split(", ")], name)
        for case, name in (nodes or {}).items()
    ]


def _condition(schema: _schema.Schema, text: str) -> tuple[int, int]:
    argument, _, kind = text.partition(" ")
    if kind not in _KINDS:
        raise ValueError(
            f"{schema.name}: nodes: {text!r} is not an argument followed by one of {', '.join(_KINDS)}"
        )
    return _KINDS.index(kind), schema.index(argument)
