"""Limits of floating types by dtype."""

from __future__ import annotations

import functools

import msadapter


@functools.cache
def _finfo(dtype):
    return msadapter.finfo(dtype)


def eps_of(dtype) -> float:
    """Distance from 1 to the next number."""
    return _finfo(dtype).eps


def tiny_of(dtype) -> float:
    """The smallest normal number."""
    return _finfo(dtype).tiny
