"""Autocast state of each thread, read by every operator call: cheap to ask when autocast is off.

`state.enabled` is False unless some device type has autocast on; then `state.cast_args(op, args, kwargs)`
gives the arguments in the dtypes that the operator's policy wants.
"""

import threading

from .._host.native import load
from ..ops.internal import clear_autocast_cache
from . import lists


class _Settings:
    """The autocast settings of one device type."""

    __slots__ = ("enabled", "dtype_name", "dtype_object")

    def __init__(self, dtype_name):
        self.enabled = False
        self.dtype_name = dtype_name
        self.dtype_object = None

    @property
    def dtype(self):
        if self.dtype_object is None:
            self.dtype_object = _dtype(self.dtype_name)
        return self.dtype_object


def _dtype(name):
    from .._serialization.names import root

    return getattr(root(), name)


class AutocastState(threading.local):
    """The autocast state of a thread."""

    def __init__(self):
        self.enabled = False
        self.cache_enabled = True
        self.nesting = 0
        self._devices = {"cpu": _Settings("bfloat16"), "accelerator": _Settings("float16")}
        self._cache = {}

    def settings(self, device_type: str) -> _Settings:
        """Return the settings of 'cpu' or of the accelerator (cuda and npu are the same device)."""
        if device_type not in lists.DEVICE_TYPES:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        return self._devices["cpu" if device_type == "cpu" else "accelerator"]

    def set_enabled(self, device_type: str, enabled: bool) -> None:
        self.settings(device_type).enabled = bool(enabled)
        self._tell()

    def set_dtype(self, device_type: str, dtype) -> None:
        self.settings(device_type).dtype_object = dtype
        self._tell()

    def _tell(self) -> None:
        # the C++ dispatcher has a single switch, and the settings of the accelerator take precedence
        active = next((s for s in reversed(self._devices.values()) if s.enabled), None)
        self.enabled = active is not None
        load().set_autocast(self.enabled, active.dtype if active is not None else None)

    def clear_cache(self) -> None:
        self._cache.clear()
        clear_autocast_cache()

    def cast_policy(self, op_name: str, device_type: str = "cuda"):
        """'lower', 'fp32', 'promote', 'banned' or None for an operator under autocast."""
        return (lists.CPU if device_type == "cpu" else lists.ACCELERATOR).get(op_name)

    def cast_args(self, op_name: str, args: tuple, kwargs: dict):
        """(args, kwargs) with floating tensors cast as the operator's policy says."""
        if op_name not in lists.KNOWN:
            return args, kwargs
        tensors = [t for t in _tensors((args, kwargs)) if t.is_floating_point()]
        if not tensors:
            return args, kwargs
        accelerated = any(t.device.type != "cpu" for t in tensors)
        device_type = "cuda" if accelerated else "cpu"
        settings = self.settings(device_type)
        policy = self.cast_policy(op_name, device_type) if settings.enabled else None
        if policy is None:
            return args, kwargs
        if policy == "banned":
            raise RuntimeError(lists.BANNED[op_name])
        target = self._target(policy, settings, tensors, kwargs)
        if target is None:
            return args, kwargs
        before = self.enabled
        self.enabled = False  # the casts themselves are operators
        try:
            return self._cast(args, target), self._cast(kwargs, target)
        finally:
            self.enabled = before

    @staticmethod
    def _target(policy, settings, tensors, kwargs):
        single = _dtype("float32")
        if policy == "lower":
            return settings.dtype
        if policy == "fp32":
            return None if kwargs.get("dtype") is not None else single
        return single if any(t.dtype == single for t in tensors) else settings.dtype

    def _cast(self, value, dtype):
        if isinstance(value, (list, tuple)) and not hasattr(value, "numel"):
            return type(value)(self._cast(item, dtype) for item in value)
        if isinstance(value, dict):
            return {key: self._cast(item, dtype) for key, item in value.items()}
        if not _is_tensor(value) or not value.is_floating_point() or value.dtype == dtype:
            return value
        if value.dtype == _dtype("float64"):
            return value
        # weights are cast once for all their uses in the outermost block
        keep = (
            self.cache_enabled and value.requires_grad and value.is_leaf and value.dtype == _dtype("float32")
        )
        if not keep:
            return value.to(dtype)
        key = (id(value), dtype)
        if key not in self._cache:
            self._cache[key] = (value, value.to(dtype))
        return self._cache[key][1]


def _is_tensor(value) -> bool:
    from ..tensor import Tensor

    return isinstance(value, Tensor)


def _tensors(value):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return [value] if _is_tensor(value) else []
    return [t for item in value for t in _tensors(item)]


state = AutocastState()
