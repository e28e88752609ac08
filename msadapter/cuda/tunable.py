"""torch.cuda.tunable: the choice among matrix products of CUDA's libraries by measuring. There is nothing to choose from here."""

__all__ = ["enable", "is_enabled", "tuning_enable", "tuning_is_enabled"]


def is_enabled() -> bool:
    """Return False."""
    return False


def tuning_is_enabled() -> bool:
    """Return False."""
    return False


def enable(val: bool = True) -> None:
    """Turn the choice off, which it is. NotImplementedError if it is to be turned on."""
    if val:
        raise NotImplementedError("torch.cuda.tunable.enable: there is one matrix product (docs/coverage.md)")


def tuning_enable(val: bool = True) -> None:
    """Turn measuring off, which it is. NotImplementedError if it is to be turned on."""
    if val:
        raise NotImplementedError(
            "torch.cuda.tunable.tuning_enable: there is one matrix product (docs/coverage.md)"
        )
