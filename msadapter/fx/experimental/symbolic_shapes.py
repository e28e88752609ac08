"""Questions that libraries ask about sizes. Sizes are always numbers here, so every question has an answer."""

from __future__ import annotations

__all__ = [
    "GuardOnDataDependentSymNode",
    "free_symbols",
    "free_unbacked_symbols",
    "guard_or_false",
    "guard_or_true",
    "guard_size_oblivious",
    "has_free_symbols",
    "is_concrete_bool",
    "is_concrete_int",
    "statically_known_true",
    "sym_eq",
]


class GuardOnDataDependentSymNode(RuntimeError):
    """PyTorch's error for a branch on a size that it does not know. Nothing here raises it."""


def guard_or_false(a) -> bool:
    """Return the truth of a condition."""
    return bool(a)


guard_or_true = guard_size_oblivious = statically_known_true = guard_or_false


def is_concrete_int(a) -> bool:
    """Return whether a value is an integer; TypeError for other values."""
    if not isinstance(a, int):
        raise TypeError(f"is_concrete_int needs an integer, got {type(a).__name__}")
    return True


def is_concrete_bool(a) -> bool:
    """Return whether a value is a bool; TypeError for other values."""
    if not isinstance(a, bool):
        raise TypeError(f"is_concrete_bool needs a bool, got {type(a).__name__}")
    return True


def free_symbols(val) -> set:
    """Return the symbols in sizes: none."""
    return set()


def free_unbacked_symbols(x) -> set:
    """Return the symbols without a known value: none."""
    return set()


def has_free_symbols(val) -> bool:
    """Return False."""
    return False


def sym_eq(x, y) -> bool:
    """Return whether two numbers, or two sequences of sizes, are equal."""
    if isinstance(x, (tuple, list)) and isinstance(y, (tuple, list)):
        return len(x) == len(y) and all(map(sym_eq, x, y))
    return x == y
