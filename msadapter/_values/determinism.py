"""The settings of `torch.use_deterministic_algorithms`, and what depends on them.

The kernels of this package are deterministic. PyTorch refuses some operators on the CPU all the same, and fills
uninitialised memory with a known value; both are done here as well.
"""

from __future__ import annotations

import warnings

from .._host.native import load

_C = load()
_state = {"enabled": False, "warn_only": False, "fill": True}
_MODES = {"default": 0, "warn": 1, "error": 2}


def _check_flag(name: str, place: str, value) -> None:
    if not isinstance(value, bool):
        raise TypeError(
            f"_set_deterministic_algorithms(): argument '{name}'{place} must be bool, not {type(value).__name__}"
        )


def _update(**changes) -> None:
    _state.update(changes)
    _C.set_fills_empty(fills_memory())


def use_deterministic_algorithms(mode, *, warn_only=False) -> None:
    """Set whether operators for which PyTorch has no deterministic algorithm are refused, or give a warning."""
    _check_flag("mode", " (position 1)", mode)
    _check_flag("warn_only", "", warn_only)
    _update(enabled=mode, warn_only=warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Return the mode that `use_deterministic_algorithms` has set."""
    return _state["enabled"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return the argument ``warn_only`` of `use_deterministic_algorithms`."""
    return _state["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set the mode by a number or a word: 0 or "default", 1 or "warn", 2 or "error"."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _MODES[debug_mode]
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    _update(enabled=debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """Return 0, 1 or 2; see `set_deterministic_debug_mode`."""
    return (1 if _state["warn_only"] else 2) if _state["enabled"] else 0


def get_fill_uninitialized_memory() -> bool:
    """Return whether uninitialised memory is filled while deterministic algorithms are enabled."""
    return _state["fill"]


def set_fill_uninitialized_memory(fill: bool) -> None:
    """Set what `get_fill_uninitialized_memory` returns."""
    if not isinstance(fill, bool):
        raise RuntimeError(f"expected a bool, but got {type(fill).__name__}")
    _update(fill=fill)


def fills_memory() -> bool:
    """Return whether uninitialised memory is filled now."""
    return _state["enabled"] and _state["fill"]


def fill(tensor):
    """Fill a new tensor with NaN, or with the largest number of its type, and return it."""
    dtype = tensor.dtype
    if dtype.is_floating_point or dtype.is_complex:
        value: float | int | bool = float("nan")
    elif dtype.is_bool:
        value = True
    else:
        value = 2 ** (8 * dtype.itemsize - dtype.is_signed) - 1
    return tensor.fill_(value)


def alert(operator: str) -> None:
    """Refuse an operator for which PyTorch has no deterministic algorithm, or warn of it.

    Raises:
        RuntimeError: deterministic algorithms are enabled, and not as a warning alone.
    """
    if not _state["enabled"]:
        return
    message = (
        f"{operator} does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True{})'. "
    )
    if _state["warn_only"]:
        warnings.warn(message.format(", warn_only=True"), UserWarning, stacklevel=3)
        return
    raise RuntimeError(
        message.format("")
        + "You can turn off determinism just for this operation, or you can use the 'warn_only=True' option, if that's "
        "acceptable for your application."
    )
