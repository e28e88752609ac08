"""Registers all works: the programs that are timed."""

from __future__ import annotations

from . import large, models, operators, small, training  # (each of the others registers its works)
from .registry import WORKS, NotHere, Work

__all__ = ["WORKS", "NotHere", "find"]


def find(name: str) -> Work:
    """The work of a name: a registered one, or a generated one (operators.py)."""
    return operators.find(name) if name.startswith(operators.PREFIX) else WORKS[name]
