"""torch.backends.nnpack: NNPACK is not used."""


def is_available() -> bool:
    """Return False, because NNPACK is not used."""
    return False


def is_built() -> bool:
    """Return False, because NNPACK is not used."""
    return False
