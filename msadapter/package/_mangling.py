"""The names of modules that come from an archive: each open archive has a prefix, so they are not mixed up with installed ones."""

from __future__ import annotations

import itertools
import re

_numbers = itertools.count()
_PREFIX = re.compile(r"<torch_package_\d+>")


class PackageMangler:
    """The prefix of one open archive."""

    def __init__(self) -> None:
        self._prefix = f"<torch_package_{next(_numbers)}>"

    def mangle(self, name: str) -> str:
        """Return the name with the prefix."""
        return f"{self._prefix}.{name}"

    def demangle(self, name: str) -> str:
        """Return the name without the prefix of this archive. Other names stay as they are."""
        return name.removeprefix(f"{self._prefix}.")

    def parent_name(self) -> str:
        """Return the prefix."""
        return self._prefix


def is_mangled(name: str) -> bool:
    return _PREFIX.match(name) is not None


def demangle(name: str) -> str:
    """Return a name without the prefix of any archive."""
    return name.partition(".")[2] if is_mangled(name) else name


def get_mangle_prefix(name: str) -> str:
    """Return the prefix of an archive, or the name itself if it has none."""
    return name.partition(".")[0] if is_mangled(name) else name
