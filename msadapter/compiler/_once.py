"""Messages that appear once in a process."""

import warnings

_said: set = set()


def say_once(key: str, text: str) -> None:
    """Give a UserWarning at the first call with this key."""
    if key not in _said:
        _said.add(key)
        warnings.warn(text, UserWarning, stacklevel=4)
