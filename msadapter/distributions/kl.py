"""Kullback-Leibler divergences of pairs of distributions, by the classes of both."""

from __future__ import annotations

import warnings

__all__ = ["kl_divergence", "register_kl"]
_registry: dict = {}
_found: dict = {}


def register_kl(type_p, type_q):
    """Return a decorator that registers a function of (p, q) for two classes and their subclasses. The most specific pair wins.

    A class need not extend Distribution: pyro registers its own.
    """
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError("issubclass() arg 1 must be a class")

    def decorate(function):
        _registry[type_p, type_q] = function
        _found.clear()
        return function

    return decorate


def _distance(kind, base) -> int:
    return kind.__mro__.index(base)


def _dispatch(type_p, type_q):
    """Return the most specific registered function for two classes, or None if there is none."""
    pairs = [(p, q) for p, q in _registry if issubclass(type_p, p) and issubclass(type_q, q)]
    if not pairs:
        return None
    left = min(pairs, key=lambda pair: (_distance(type_p, pair[0]), _distance(type_q, pair[1])))
    right = min(pairs, key=lambda pair: (_distance(type_q, pair[1]), _distance(type_p, pair[0])))
    if _registry[left] is not _registry[right]:
        names = [kind.__name__ for kind in (type_p, type_q, *left, *right)]
        warnings.warn(
            f"Ambiguous kl_divergence({names[0]}, {names[1]}). Please register_kl({names[2]}, {names[5]})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _registry[left]


def kl_divergence(p, q):
    """Return KL(p || q) = E_p[log p - log q], in the shape of the batch. Raise NotImplementedError for a pair without a formula."""
    key = (type(p), type(q))
    if key not in _found:
        _found[key] = _dispatch(*key)
    if _found[key] is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {p.__class__.__name__} and q type {q.__class__.__name__}"
        )
    return _found[key](p, q)
