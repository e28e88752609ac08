"""torch.torch_version: a version that is a string and compares as a version."""

from __future__ import annotations

from collections.abc import Iterable

from .alias import TORCH_VERSION

__all__ = ["TorchVersion"]


class TorchVersion(str):
    """A string that compares with strings, tuples of numbers and `packaging.version.Version` as versions do.

    Strings that are no versions are compared letter by letter.
    """

    __slots__ = ()

    def _compare(self, other: object, method: str) -> bool:
        from packaging.version import InvalidVersion, Version  # here: only comparisons need it

        try:
            return getattr(Version(self), method)(_version(other, Version, InvalidVersion))
        except InvalidVersion:
            return getattr(str, method)(self, other)

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __ne__(self, other):
        return not self == other

    def __hash__(self):
        return str.__hash__(self)


def _version(value: object, version: type, invalid: type[Exception]):
    if isinstance(value, version):
        return value
    if isinstance(value, str):
        return version(str(value))
    if isinstance(value, Iterable):
        return version(".".join(str(part) for part in value))
    raise invalid(value)


__version__ = TorchVersion(TORCH_VERSION)
