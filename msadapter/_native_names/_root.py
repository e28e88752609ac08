"""Functions of torch._C that programs call directly."""

from __future__ import annotations

import os
import sys
import warnings
import weakref

import msadapter

from .._host.native import load
from .._values import determinism
from ..accelerator import current_accelerator
from ..autograd import _tangents
from ..autograd.grad_mode import is_multithreading_enabled
from ..backends import _fp32, mkldnn
from ..func._derivatives import active
from ..func._looped import Fallback
from ..jit import is_tracing
from ..ops._declare import namespaces
from ..tensor import device
from ..utils.weak import WeakIdKeyDictionary

_C = load()
_logged: set[str] = set()
_current_graph_task_id = _C.current_graph_task_id


def _current_graph_task_execution_order() -> list:
    """Return the nodes that the running backward pass will run, in their order."""
    order = _C.current_graph_task_execution_order()
    if is_multithreading_enabled():
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading disabled, e.g. "
            "by running:\n\nwith torch.autograd.set_multithreading_enabled(False):\n    ...\n"
        )
    return order


def _get_privateuse1_backend_name() -> str:
    """Return "npu", the name of the device type that is not built into PyTorch."""
    return "npu"


def _log_api_usage_once(event: str) -> None:
    """If PYTORCH_API_USAGE_STDERR=1 is set, print a line to stderr at the first use of ``event``."""
    if os.environ.get("PYTORCH_API_USAGE_STDERR") == "1" and event not in _logged:
        _logged.add(event)
        print(f"PYTORCH_API_USAGE {event}", file=sys.stderr)


def _get_accelerator(check: bool | None = None):
    """Return the torch.device of the accelerator, or of the CPU if there is none."""
    return current_accelerator() or device("cpu")


def _will_engine_execute_node(node) -> bool:
    """Return whether the running backward pass will run this graph node."""
    if not isinstance(node, _C.Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    return node._will_execute()


class _WeakTensorRef:
    """A reference that does not keep a tensor alive."""

    def __init__(self, tensor):
        self._reference = weakref.ref(tensor)

    def expired(self) -> bool:
        """Return whether the tensor does not exist any more."""
        return self._reference() is None


def _set_fwd_grad_enabled(enabled: bool) -> None:
    """Set whether forward-mode differentiation records tangents in this thread."""
    _tangents.enable(enabled)


def _are_functorch_transforms_active() -> bool:
    """Return whether the function of a transform of torch.func runs: vmap, or a derivative."""
    return active()


def _debug_only_display_vmap_fallback_warnings(shown: bool) -> None:
    """Set whether operators warn when they run once for each element of a batch."""
    Fallback.warns = bool(shown)


def _debug_only_are_vmap_fallback_warnings_enabled() -> bool:
    """Return whether operators warn when they run once for each element of a batch."""
    return Fallback.warns


def _get_tracing_state():
    """Return None, or while torch.jit.trace runs a program, something that is true."""
    return True if is_tracing() else None


def _get_mkldnn_enabled() -> bool:
    """Return what ``torch.backends.mkldnn.enabled`` says."""
    return mkldnn.enabled


def _set_mkldnn_enabled(enabled: bool) -> None:
    """Set ``torch.backends.mkldnn.enabled``."""
    mkldnn.set_flags(_enabled=bool(enabled))


def _warn() -> None:
    """Show the warning with which PyTorch tests its own warnings."""
    warnings.warn("Test message for TORCH_WARN", UserWarning, stacklevel=2)


def _warn_deprecation() -> None:
    """The same with a DeprecationWarning."""
    warnings.warn("Test message for TORCH_WARN_DEPRECATION", DeprecationWarning, stacklevel=2)


_cached = WeakIdKeyDictionary()
_cache = {"enabled": False}


def _set_cached_tensors_enabled(enabled: bool) -> None:
    """Set whether tensors are remembered as those of a cache."""
    _cache["enabled"] = bool(enabled)


def _add_cached_tensor(tensor) -> None:
    _cached[tensor] = True


def _remove_cached_tensor(tensor) -> None:
    _cached.pop(tensor, None)


def _is_cached_tensor(tensor) -> bool:
    """Return whether a tensor has been added to the cache, and not removed. False while the cache is disabled."""
    return _cache["enabled"] and tensor in _cached


class _FunctionsOfTorch(type):
    def __getattr__(cls, name: str):
        found = namespaces["torch"].get(name) or getattr(msadapter, name, None)
        if not callable(found):
            raise AttributeError(f"type object 'torch._C._VariableFunctionsClass' has no attribute {name!r}")
        return found


class _VariableFunctionsClass(metaclass=_FunctionsOfTorch):
    """The functions of torch as attributes. Pickles that PyTorch writes name torch.relu and others through it."""


_written = (
    _VariableFunctionsClass,
    _are_functorch_transforms_active,
    _debug_only_display_vmap_fallback_warnings,
    _debug_only_are_vmap_fallback_warnings_enabled,
    _get_tracing_state,
    _WeakTensorRef,
    _get_mkldnn_enabled,
    _set_mkldnn_enabled,
    _set_cached_tensors_enabled,
    _add_cached_tensor,
    _remove_cached_tensor,
    _is_cached_tensor,
    _warn,
    _warn_deprecation,
    _set_fwd_grad_enabled,
    _get_accelerator,
    _get_privateuse1_backend_name,
    _log_api_usage_once,
    _will_engine_execute_node,
)
FUNCTIONS = {f.__name__: f for f in _written} | {
    "_current_graph_task_id": _current_graph_task_id,
    "_current_graph_task_execution_order": _current_graph_task_execution_order,
    "_get_fp32_precision_getter": _fp32.read,
    "_set_fp32_precision_setter": _fp32.write,
    "_get_deterministic_algorithms": determinism.are_deterministic_algorithms_enabled,
    "_get_deterministic_algorithms_warn_only": determinism.is_deterministic_algorithms_warn_only_enabled,
    "_set_deterministic_algorithms": determinism.use_deterministic_algorithms,
    "_get_deterministic_fill_uninitialized_memory": determinism.get_fill_uninitialized_memory,
    "_set_deterministic_fill_uninitialized_memory": determinism.set_fill_uninitialized_memory,
}
