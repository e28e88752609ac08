"""All works by name."""

from . import large, models, small, training  # noqa: F401  (each registers its works)
from .registry import WORKS, NotHere

__all__ = ["WORKS", "NotHere"]
