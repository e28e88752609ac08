"""torch.backends.nnpack: NNPACK is not used."""


def is_available() -> bool:
    """False: NNPACK is not used."""
    return False


def is_built() -> bool:
    """False: NNPACK is not used."""
    return False
