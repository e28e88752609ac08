"""The names of graph nodes, such as MulBackward0. They are PyTorch's, which programs print and compare."""

from __future__ import annotations

import re

from . import _schema


def node_name(schema: _schema.Schema) -> str:
    """Return the name of an operator's node, as PyTorch makes it: ``linalg.lu`` gives LinalgLuBackward0."""
    name = re.sub(r"^(Tensor|nn\.functional|aten)\.", "", schema.name)
    return re.sub(r"[._]", " ", name).title().replace(" ", "") + "Backward0"
