"""torch.backends.opt_einsum: the order of contractions in einsum. It is from left to right; the settings are stored."""

import importlib
import importlib.util

from . import _frozen


def is_available() -> bool:
    """Return whether the package opt_einsum is installed."""
    return importlib.util.find_spec("opt_einsum") is not None


def get_opt_einsum():
    """Return the package opt_einsum, or None."""
    return importlib.import_module("opt_einsum") if is_available() else None


enabled = is_available()
strategy = "auto" if enabled else None


def set_flags(_enabled=None, _strategy=None):
    """Set the given values and return the former ones.

    Raises:
        ValueError: opt_einsum is not installed, or not enabled for a strategy; or there is no such strategy.
    """
    global enabled, strategy
    before = enabled, strategy
    if _enabled is not None:
        if _enabled and not is_available():
            raise ValueError(
                f"opt_einsum is not available, so setting `enabled` to {_enabled} will not reap the benefits of "
                "calculating an optimal path for einsum. torch.einsum will fall back to contracting from left to right. "
                "To enable this optimal path calculation, please install opt-einsum."
            )
        enabled = bool(_enabled)
    if _strategy is not None:
        if not is_available():
            raise ValueError(
                f"opt_einsum is not available, so setting `strategy` to {_strategy} will not be meaningful. "
                "torch.einsum will bypass path calculation and simply contract from left to right. "
                "Please install opt_einsum or unset `strategy`."
            )
        if not enabled:
            raise ValueError(
                f"opt_einsum is not enabled, so setting a `strategy` to {_strategy} will not be meaningful. "
                "torch.einsum will bypass path calculation and simply contract from left to right. "
                "Please set `enabled` to `True` as well or unset `strategy`."
            )
        if _strategy not in ("auto", "greedy", "optimal"):
            raise ValueError(
                f"`strategy` must be one of the following: [auto, greedy, optimal] but is {_strategy}"
            )
        strategy = _strategy
    return before


def flags(enabled=None, strategy=None):
    """Set the values inside a block."""
    return _frozen.restored(set_flags, enabled, strategy)
