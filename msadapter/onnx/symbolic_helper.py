"""torch.onnx.symbolic_helper: the decorator with which packages write functions for export. Nothing is exported here."""

from __future__ import annotations

__all__ = ["parse_args"]

_KINDS = ("v", "i", "is", "f", "fs", "b", "s", "t", "none")


def parse_args(*arg_descriptors: str):
    """Return a decorator that notes the kinds of a function's arguments: "v" a value, "i" an integer, and so on."""
    wrong = [kind for kind in arg_descriptors if kind not in _KINDS]
    if wrong:
        raise ValueError(f"parse_args: {wrong[0]!r} is none of the kinds of arguments {_KINDS}")

    def decorate(function):
        function._arg_descriptors = arg_descriptors
        return function

    return decorate
