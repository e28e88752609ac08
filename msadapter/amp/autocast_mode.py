"""torch.autocast: the context manager, the decorator, and the functions that read and set its state."""

import functools
import warnings

from .._host import accelerator as _accelerator
from .._values.device import device as Device
from ..tensor import Tensor
from .state import state

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

_LOWER = {"cpu": ("bfloat16", "float16"), "accelerator": ("float16", "bfloat16")}


def autocast_decorator(autocast_instance, func):
    """Return `func` such that it runs inside the autocast block."""

    @functools.wraps(func)
    def decorated(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    decorated.__script_unsupported = "@autocast() decorator is not supported in script mode"
    return decorated


def is_autocast_available(device_type: str) -> bool:
    """Return whether autocast is available for this device type.

    Raises:
        RuntimeError: it is no type of devices.
    """
    return Device(device_type).type in ("cpu", "cuda", "npu")


class autocast:
    """Runs operators in the precision that their policy asks for. Context manager and decorator.

    device_type: 'cpu', 'cuda' or 'npu'. dtype: the lower precision, by default that of get_autocast_dtype.
    cache_enabled: whether a parameter is cast only once inside the block.
    """

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._cache_enabled = state.cache_enabled if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and self._possible()
        self._entered = []

    def _possible(self) -> bool:
        if self.device != "cpu" and not _accelerator.is_available():
            warnings.warn(
                f"{self.device.upper()} is not available or torch_xla is imported. Disabling autocast.",
                UserWarning,
                stacklevel=4,
            )
            return False
        name = str(self.fast_dtype).rpartition(".")[2]
        allowed = _LOWER["cpu" if self.device == "cpu" else "accelerator"]
        if name not in allowed:
            warnings.warn(
                f"In {self.device} autocast, but the target dtype is not supported. Disabling "
                "autocast.\n"
                f"{self.device} Autocast only supports dtypes of torch.{', torch.'.join(allowed)} "
                "currently.",
                UserWarning,
                stacklevel=4,
            )
            return False
        return True

    def __enter__(self):
        settings = state.settings(self.device)
        self._entered.append((settings.enabled, settings.dtype, state.cache_enabled))
        state.set_enabled(self.device, self._enabled)
        state.set_dtype(self.device, self.fast_dtype)
        state.cache_enabled = self._cache_enabled
        state.nesting += 1
        return self

    def __exit__(self, *exc):
        enabled, dtype, cache = self._entered.pop()
        state.nesting -= 1
        if state.nesting == 0:
            state.clear_cache()
        state.set_enabled(self.device, enabled)
        state.set_dtype(self.device, dtype)
        state.cache_enabled = cache
        return False

    def __call__(self, func):
        return autocast_decorator(self, func)


# -- the state, as torch's functions name it ---------------------------------------------------------------
def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Return whether autocast is on for a device type."""
    return state.settings(device_type).enabled


def set_autocast_enabled(*args) -> None:
    """Switch autocast on or off: (device_type, enabled), or (enabled) for the accelerator."""
    device_type, enabled = args if len(args) == 2 else ("cuda", args[0])
    state.set_enabled(device_type, enabled)


def get_autocast_dtype(device_type: str):
    """Return the lower precision of autocast for a device type."""
    return state.settings(device_type).dtype


def set_autocast_dtype(device_type: str, dtype) -> None:
    """Set the lower precision of autocast for a device type."""
    state.set_dtype(device_type, dtype)


def _warn_of_old_name(call: str, instead: str) -> None:
    warnings.warn(
        f"torch.{call} is deprecated. Please use torch.{instead} instead.", DeprecationWarning, stacklevel=3
    )


def get_autocast_gpu_dtype():
    """Same as get_autocast_dtype('cuda')."""
    _warn_of_old_name("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype) -> None:
    """Same as set_autocast_dtype('cuda', dtype)."""
    _warn_of_old_name("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def is_autocast_cpu_enabled() -> bool:
    """Same as is_autocast_enabled('cpu')."""
    _warn_of_old_name("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Same as set_autocast_enabled('cpu', enabled)."""
    _warn_of_old_name("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    state.set_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    """Same as get_autocast_dtype('cpu')."""
    _warn_of_old_name("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype) -> None:
    """Same as set_autocast_dtype('cpu', dtype)."""
    _warn_of_old_name("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)


def is_autocast_cache_enabled() -> bool:
    """Return whether casts of parameters are cached inside a block."""
    return state.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Set whether casts of parameters are cached inside a block."""
    state.cache_enabled = bool(enabled)


def clear_autocast_cache() -> None:
    """Discard the cached casts."""
    state.clear_cache()


def autocast_increment_nesting() -> int:
    """Enter one more autocast block and return the depth."""
    state.nesting += 1
    return state.nesting


def autocast_decrement_nesting() -> int:
    """Leave an autocast block and return the depth."""
    state.nesting -= 1
    return state.nesting


# The functions above are also names of torch itself.
TORCH_NAMES = {
    function.__name__: function
    for function in (
        autocast_decrement_nesting,
        autocast_increment_nesting,
        clear_autocast_cache,
        get_autocast_cpu_dtype,
        get_autocast_dtype,
        get_autocast_gpu_dtype,
        is_autocast_cache_enabled,
        is_autocast_cpu_enabled,
        is_autocast_enabled,
        set_autocast_cache_enabled,
        set_autocast_cpu_dtype,
        set_autocast_cpu_enabled,
        set_autocast_dtype,
        set_autocast_enabled,
        set_autocast_gpu_dtype,
    )
}


# -- autograd.Function -------------------------------------------------------------------------------------
def _cast(value, device_type, dtype):
    if isinstance(value, Tensor):
        wanted = value.is_floating_point() and value.device.type == device_type and value.dtype.itemsize != 8
        return value.to(dtype) if wanted else value
    if isinstance(value, dict):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        items = [_cast(v, device_type, dtype) for v in value]
        return type(value)(items)
    return value


def custom_fwd(fwd=None, *, device_type: str, cast_inputs=None):
    """Decorate the forward of an autograd.Function.

    With ``cast_inputs``, floating point inputs on the device are cast to this dtype and forward runs without
    autocast. Without it, forward runs under the present autocast, and custom_bwd uses the same settings in
    backward.
    """
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        ctx = args[0]
        ctx._dtype = get_autocast_dtype(device_type)
        if cast_inputs is None:
            ctx._fwd_used_autocast = is_autocast_enabled(device_type)
            return fwd(*args, **kwargs)
        under_autocast = is_autocast_enabled(device_type)
        ctx._fwd_used_autocast = False
        if not under_autocast:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type: str):
    """Decorate the backward of an autograd.Function, so that it uses the autocast settings of its forward."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorated
