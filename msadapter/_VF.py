"""torch._VF: the operators under the names that ATen gives them. torch.nn.modules.rnn and exported programs use it."""

from __future__ import annotations

from .ops import aten
from .ops._declare import namespaces


def __getattr__(name: str):
    found = None if name.startswith("__") else namespaces["torch"].get(name) or getattr(aten, name, None)
    if found is None:
        raise AttributeError(f"module 'torch._VF' has no attribute {name!r} (docs/coverage.md)")
    return found
