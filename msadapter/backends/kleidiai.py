"""torch.backends.kleidiai: KleidiAI is not used."""


def is_available() -> bool:
    """Return False, because KleidiAI is not used."""
    return False
