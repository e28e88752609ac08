"""Weights that receive a gradient for each sample of a batch."""

from . import _calls  # noqa: F401  it fills the class with the functions that take it
from .expanded_weights_impl import ExpandedWeight

__all__ = ["ExpandedWeight"]
