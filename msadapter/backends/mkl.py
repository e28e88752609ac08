"""torch.backends.mkl: Intel MKL is not used."""


def is_available() -> bool:
    """Return False, because Intel MKL is not used."""
    return False


def is_built() -> bool:
    """Return False, because Intel MKL is not used."""
    return False
