"""Switches of warnings about old behaviour; the old behaviour does not exist here."""


class Warning:
    """One switch."""

    def __init__(self):
        self.enabled = False

    def set_enabled(self, value: bool) -> None:
        """Set it."""
        self.enabled = bool(value)

    def get_enabled(self) -> bool:
        """Its value."""
        return self.enabled


broadcast_warning = Warning()
keepdim_warning = Warning()
