"""The state that APIs without a wrapper class (`fully_shard`, `replicate`) store for a module."""

from __future__ import annotations

import weakref

_states: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class _State:
    """Base class of these states."""


def _insert_module_state(module, state: _State) -> None:
    """Stores the state of a module, which must not have a state yet."""
    if module in _states:
        raise AssertionError(f"Inserting {state} more than once.")
    _states[module] = state


def _get_module_state(module) -> _State | None:
    """The state of a module. A module that is itself a state is returned."""
    if isinstance(module, _State):
        return module
    return _states.get(module)
