"""Messages that are given once in a process."""

import warnings

_said: set = set()


def say_once(key: str, text: str) -> None:
    """A UserWarning the first time a key comes."""
    if key not in _said:
        _said.add(key)
        warnings.warn(text, UserWarning, stacklevel=4)
