"""Helpers of modes."""


def all_same_mode(modes) -> bool:
    """Whether all are the same object."""
    return all(mode is modes[0] for mode in modes)
