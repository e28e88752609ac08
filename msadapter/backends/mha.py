"""torch.backends.mha: the fast path of attention modules."""

_fastpath = [True]


def get_fastpath_enabled() -> bool:
    """Return whether attention modules may use their fast path."""
    return _fastpath[0]


def set_fastpath_enabled(value: bool) -> None:
    """Allow or forbid the fast path."""
    _fastpath[0] = bool(value)
