"""torch._C._autograd: hooks on saved tensors, under the names of PyTorch's native module."""

from __future__ import annotations

from .._host.native import load
from ..autograd.grad_mode import set_versions
from ..autograd.graph import refusal_of_hooks

_C = load()
SavedTensor = _C.SavedTensor
_get_current_graph_task_keep_graph = _C.current_graph_task_keeps_graph
_unsafe_set_version_counter = set_versions


def _push_saved_tensors_default_hooks(pack_hook, unpack_hook) -> None:
    """From now on, save ``pack_hook(tensor)`` instead of each tensor; backward calls ``unpack_hook`` on it."""
    _C.push_saved_hooks(pack_hook, unpack_hook)


def _pop_saved_tensors_default_hooks() -> None:
    """Remove the hooks of the last push. The earlier ones apply again."""
    _C.pop_saved_hooks()


def _saved_tensors_hooks_is_enabled() -> bool:
    """Return whether ``saved_tensors_hooks`` may be used now."""
    return refusal_of_hooks() is None
