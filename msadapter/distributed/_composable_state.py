"""What an API without wrapper (`fully_shard`, `replicate`) keeps about a module."""

from __future__ import annotations

import weakref

_states: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class _State:
    """Base of such states."""


def _insert_module_state(module, state: _State) -> None:
    """Remember a module's state; it may have one."""
    if module in _states:
        raise AssertionError(f"Inserting {state} more than once.")
    _states[module] = state


def _get_module_state(module) -> _State | None:
    """The state of a module; a module that is a state is its own."""
    if isinstance(module, _State):
        return module
    return _states.get(module)
