"""torch._C._autograd: the hooks on saved tensors under the names of PyTorch's native module."""

from __future__ import annotations

from .._host.native import load

_C = load()


def _push_saved_tensors_default_hooks(pack_hook, unpack_hook) -> None:
    """What is saved for backward from now on goes through ``pack_hook``; ``unpack_hook`` gives it back."""
    _C.push_saved_hooks(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks() -> None:
    """The hooks before the last push hold again."""
    _C.pop_saved_hooks()
