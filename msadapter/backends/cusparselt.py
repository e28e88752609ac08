"""torch.backends.cusparselt: cuSPARSELt is not used."""


def is_available() -> bool:
    """Return False, because cuSPARSELt is not used."""
    return False


def version() -> int | None:
    """Return None, because there is no cuSPARSELt."""
    return None


def get_max_alg_id() -> int | None:
    """Return None, because there is no cuSPARSELt."""
    return None
