"""Parser of operator schemas such as ``add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor``."""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass, field

from .._values.dtype import ALL

TYPES = {
    "Tensor",
    "Tensor[]",
    "TensorOrScalar",
    "Scalar",
    "int",
    "int[]",
    "float",
    "float[]",
    "bool",
    "str",
    "ScalarType",
    "Generator",
    "Layout",
    "Device",
    "MemoryFormat",
    "any",
}
# The names of arguments in numpy and in PyTorch's documentation. They are accepted wherever PyTorch accepts
# them.
NUMPY_NAMES = {
    "dim": ("axis",),
    "split_size_or_sections": ("split_size",),  # the name in the method of Tensor
    "keepdim": ("keepdims",),
    "self": ("input", "x"),
    "other": ("x2",),
    # The documentation of torch.linalg calls these arguments A and x, but the functions call them input.
    "A": ("input",),
    "x": ("input",),
}


@dataclass
class Parameter:
    """One argument of an operator."""

    name: str
    type: str
    nullable: bool = False
    keyword_only: bool = False
    required: bool = True
    default: object = None

    @property
    def aliases(self) -> tuple[str, ...]:
        return NUMPY_NAMES.get(self.name, ())


@dataclass
class Schema:
    """A parsed schema: the dotted name, the parameters and the names of the results ("" if unnamed)."""

    name: str
    parameters: list[Parameter]
    results: list[str]
    text: str = field(repr=False, default="")

    def index(self, name: str) -> int:
        for i, p in enumerate(self.parameters):
            if p.name == name:
                return i
        raise KeyError(f"{self.name}: the schema has no parameter {name!r}")


def split_arguments(text: str) -> list[str]:
    parts, depth, quote, current = [], 0, "", ""
    for ch in text:
        if quote:
            quote = "" if ch == quote else quote
        elif ch in "'\"":
            quote = ch
        elif ch in "([":
            depth += 1
        elif ch in ")]":
            depth -= 1
        if ch == "," and depth == 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += ch
    if current.strip():
        parts.append(current.strip())
    return parts


@functools.cache  # a few texts are the defaults of most parameters, and import time counts
def _default(text: str):
    if text == "None":
        return None
    if text in ALL:
        return ALL[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        if text in ("inf", "-inf"):
            return float(text)
        raise ValueError(f"default {text!r} is not a literal") from None


def parse(text: str) -> Schema:
    """Parse ``text`` into a Schema. ValueError names the part that cannot be parsed."""
    match = re.fullmatch(r"\s*([\w.]+)\((.*)\)\s*->\s*(.+?)\s*", text, re.S)
    if not match:
        raise ValueError(f"not an operator schema: {text!r}")
    name, arguments, results = match.groups()
    parameters, keyword_only = [], False
    for part in split_arguments(arguments):
        if part == "*":
            keyword_only = True
            continue
        declaration, eq, default = part.partition("=")
        pieces = declaration.split()
        if len(pieces) != 2:
            raise ValueError(f"{name}: cannot read parameter {part!r}")
        kind, parameter = pieces
        nullable = kind.endswith("?")
        kind = kind.rstrip("?")
        if kind not in TYPES:
            raise ValueError(f"{name}: unknown type {kind!r}")
        parameters.append(
            Parameter(
                parameter, kind, nullable, keyword_only, not eq, _default(default.strip()) if eq else None
            )
        )
    if results.startswith("("):
        names = []
        for part in split_arguments(results[1:-1]):
            pieces = part.split()
            names.append(pieces[1] if len(pieces) > 1 else "")
    else:
        names = [""]
    return Schema(name, parameters, names, text)
