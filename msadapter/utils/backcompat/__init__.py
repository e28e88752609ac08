"""Switches of warnings about old behaviour of PyTorch. That behaviour does not exist here, so they have no effect."""


class Warning:
    """A switch, which is only stored."""

    def __init__(self):
        self.enabled = False

    def set_enabled(self, value: bool) -> None:
        """Switch the warning on or off."""
        self.enabled = bool(value)

    def get_enabled(self) -> bool:
        """Return whether the warning is on."""
        return self.enabled


broadcast_warning = Warning()
keepdim_warning = Warning()
