"""The signatures of the table's functions.

PyTorch writes some of these functions in Python, so `inspect.signature` finds their arguments; the others are builtins, and
`inspect.signature` raises an error for them. Both is the same here.
"""

from __future__ import annotations

import functools
import inspect
import keyword
import numbers
from typing import Any, Optional

from .._values.base import _C
from .._values.device import device
from .._values.layout import layout, memory_format
from ..ops import _generator
from ..ops._declare import binds, declaration_of
from ._tensor import Tensor

__all__ = ["signature_of", "written_out"]
# Two functions each, chosen by the argument return_indices.
_DISPATCHED = """
adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d fractional_max_pool2d fractional_max_pool3d max_pool1d max_pool2d
max_pool3d
""".split()  # noqa: SIM905
_TYPES = {
    "Tensor": Tensor,
    "Tensor[]": list[Tensor],
    "TensorOrScalar": Tensor | numbers.Number,
    "Scalar": numbers.Number,
    "int": int,
    "int[]": list[int],
    "float": float,
    "float[]": list[float],
    "bool": bool,
    "str": str,
    "ScalarType": int,  # as in PyTorch's schemas
    "Generator": _generator.Generator,
    "Layout": layout,
    "Device": device,
    "MemoryFormat": memory_format,
    "any": Any,
}
_OUT = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
_STARS = inspect.Signature(
    [
        inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL),
        inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD),
    ]
)


def written_out(schema, further=()) -> inspect.Signature:
    """Return a schema of the table as a signature, whose first tensor is called input.

    Args:
        schema: the parsed schema.
        further: inspect.Parameter objects behind its own.
    """
    parameters = []
    last = max((i for i, p in enumerate(schema.parameters) if keyword.iskeyword(p.name)), default=-1)
    for i, p in enumerate(schema.parameters):
        kind: Any = (
            inspect.Parameter.KEYWORD_ONLY if p.keyword_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        if i <= last:  # up to an argument whose name no call can give, because it is a keyword of Python
            kind = inspect.Parameter.POSITIONAL_ONLY
        annotation = Optional[_TYPES[p.type]] if p.nullable else _TYPES[p.type]  # noqa: UP045 (typing.Any has no |)
        name = "input" if p.name == "self" else p.name
        default = inspect.Parameter.empty if p.required else p.default
        parameters.append(inspect.Parameter(name, kind, default=default, annotation=annotation))
    result = Tensor if len(schema.results) == 1 else tuple([Tensor] * len(schema.results))
    return inspect.Signature([*parameters, *further], return_annotation=result)


@functools.cache
def signature_of(function) -> inspect.Signature | None:
    """Return the signature of a function that PyTorch writes in Python, and None for its builtins."""
    declaration, inplace = declaration_of(function)
    if declaration is None or inplace or not binds(declaration.schema.name):
        return None
    space, _, name = declaration.schema.name.rpartition(".")
    if space == "Tensor":
        return None
    if space == "nn.functional" and name in _DISPATCHED:
        return _STARS
    return written_out(declaration.schema, [_OUT] if "o" in declaration.forms else [])


_C.set_signature_handler(signature_of)
