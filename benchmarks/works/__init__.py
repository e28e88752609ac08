"""Registers all works: the programs that are timed."""

from . import large, models, small, training  # noqa: F401  (each registers its works)
from .registry import WORKS, NotHere

__all__ = ["WORKS", "NotHere"]
