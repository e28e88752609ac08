"""torch.__future__: how Module.to and its kin replace parameters."""

from __future__ import annotations

_overwrite_module_params_on_conversion: bool = False
_swap_module_params_on_conversion: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Set whether a conversion of a module assigns new Parameter objects. By default the objects stay the same."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Return whether a conversion of a module assigns new Parameter objects."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Set whether a conversion, and load_state_dict, exchange the contents of parameters by swap_tensors."""
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """Return whether a conversion of a module exchanges the contents of its parameters."""
    return _swap_module_params_on_conversion
