"""torch.amp: mixed precision."""

from .._host.native import load
from ..ops._declare import namespaces
from . import lists
from .autocast_mode import (
    autocast,
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    custom_bwd,
    custom_fwd,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_available,
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
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

# the names in torch itself (not in torch.amp)
TORCH_NAMES = {
    f.__name__: f
    for f in (
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


def _install_policies() -> None:
    """Set the autocast policy of each operator: the accelerator's list first, then the CPU's."""
    native = load()
    codes = {"lower": 1, "fp32": 2, "promote": 3}
    for table in (lists.CPU, lists.ACCELERATOR):
        for name, policy in table.items():
            for space in ("torch", "nn.functional", "linalg"):
                function = namespaces[space].get(name)
                if policy in codes and type(function).__name__ == "builtin_function_or_method":
                    native.set_autocast_policy(function, codes[policy])


_install_policies()
