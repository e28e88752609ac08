"""torch._C._autograd: hooks on saved tensors, under the names of PyTorch's native module."""

from __future__ import annotations

from .._host.native import load

_C = load()


def _push_saved_tensors_default_hooks(pack_hook, unpack_hook) -> None:
    """From now on, save ``pack_hook(tensor)`` instead of each tensor; backward calls ``unpack_hook`` on it."""
    _C.push_saved_hooks(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks() -> None:
    """Remove the hooks of the last push. The earlier ones apply again."""
    _C.pop_saved_hooks()
