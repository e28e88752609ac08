"""Operators by their names in torch._C's submodules, which are their names in ATen."""

from __future__ import annotations

import importlib


def operator_of(module: str, name: str):
    """Return the operator ``torch.ops.aten.<name>``.

    Raises:
        AttributeError: there is no such operator. The message names ``torch._C.<module>``.
    """
    if not name.startswith("__"):
        aten = importlib.import_module("msadapter.ops").aten
        found = getattr(aten, name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'torch._C.{module}' has no attribute {name!r} (docs/coverage.md)")
