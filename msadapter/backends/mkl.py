"""torch.backends.mkl: Intel MKL is not used."""


def is_available() -> bool:
    """False: Intel MKL is not used."""
    return False


def is_built() -> bool:
    """False: Intel MKL is not used."""
    return False
