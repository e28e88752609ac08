"""The earlier form of `save` and `load`, with the storage as the second positional argument."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any


def storage_second(keyword: str) -> Callable[[Callable], Callable]:
    """A decorator that takes a second positional argument for ``keyword``, with PyTorch's warning."""

    def decorate(function: Callable) -> Callable:
        @functools.wraps(function)
        def called(*args: Any, **kwargs: Any) -> Any:
            if len(args) != 2:
                return function(*args, **kwargs)
            warnings.warn(
                f"The argument order of {function.__name__} has been changed. "
                "Please check the document to avoid future breakages.",
                stacklevel=2,
            )
            if keyword in kwargs:
                raise AssertionError(f"{keyword} in kwargs: {(args, kwargs)}")
            return function(args[0], **kwargs, **{keyword: args[1]})

        return called

    return decorate
