"""Whether something comes from an archive."""

from types import ModuleType
from typing import Any

from .._mangling import is_mangled


def is_from_package(obj: Any) -> bool:
    """Return whether a module, or the class of an object, comes from an archive."""
    return is_mangled(obj.__name__ if type(obj) is ModuleType else type(obj).__module__)
