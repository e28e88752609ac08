"""The protocol of objects with a state_dict."""

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """The protocol of objects with state_dict and load_state_dict."""

    def state_dict(self) -> dict[str, Any]:
        """Returns the state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Loads a state."""
