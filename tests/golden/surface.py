"""Reads the suite surface: PyTorch's public names, and the parameters of its functions and operators.

A parameter is written as its name, after a mark of its kind, with "=" and its default: `input`, `~dim=None` (by keyword
only), `/x` (by position only), `*args`, `**options`. Of the dispatcher's operators the default itself is left out: `dim=`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from tests.golden import store

MARKS = {
    "POSITIONAL_OR_KEYWORD": "",
    "POSITIONAL_ONLY": "/",
    "KEYWORD_ONLY": "~",
    "VAR_POSITIONAL": "*",
    "VAR_KEYWORD": "**",
}
_KINDS = {mark: kind for kind, mark in MARKS.items()}


@dataclass(frozen=True)
class Parameter:
    """kind: its name in inspect; default: the text of the default, or None if there is none."""

    name: str
    kind: str
    default: str | None


def parameter(text: str) -> Parameter:
    """The parameter that a text describes. Raises ValueError for any other text."""
    found = re.fullmatch(r"(\*\*|[*/~])?(\w+)(?:=(.*))?", text, re.DOTALL)
    if not found:
        raise ValueError(f"not a parameter: {text!r}")
    mark, name, default = found.groups()
    return Parameter(name, _KINDS[mark or ""], default)


def names(path: str) -> list[str]:
    """The public names of a module. Raises KeyError if the module is not recorded."""
    return store.load("surface").cases[f"names {path}"]


@cache
def signature(name: str) -> list[Parameter] | None:
    """The parameters of a function, or None if Python could not find its signature."""
    told = store.load("surface").cases.get(f"signature {name}")
    return None if told is None else [parameter(text) for text in told]


@cache
def overloads(name: str) -> list[list[Parameter]] | None:
    """The parameters of each overload of an operator of the dispatcher, or None if it has no such operator."""
    told = store.load("surface").cases.get(f"schemas {name}")
    return None if told is None else [[parameter(text) for text in one.split()] for one in told]
