"""Averages of parameters."""

from . import averagers, utils

__all__ = ["averagers", "utils"]
