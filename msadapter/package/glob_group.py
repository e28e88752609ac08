"""GlobGroup: patterns of names that consist of segments, such as modules and files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

GlobPattern: TypeAlias = str | Iterable[str]


class GlobGroup:
    """Names that match one of some patterns and none of others.

    In a pattern, ``*`` stands for any text inside of a segment, and ``**`` for any number of whole segments. So ``torch.**``
    matches torch and all its submodules, and ``torch.*`` matches torch.nn and not torch.nn.functional.

    Args:
        include: a pattern or several, of which one must match.
        exclude: a pattern or several, of which none may match.
        separator: what is between two segments.

    Raises:
        ValueError: ``**`` is a part of a segment.
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."):
        self._shown = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include = self._compiled(include)
        self.exclude = self._compiled(exclude)

    def __repr__(self) -> str:
        return self._shown

    def matches(self, candidate: str) -> bool:
        """Return whether a name belongs to the group."""
        whole = self.separator + candidate
        return any(p.fullmatch(whole) for p in self.include) and not any(
            p.fullmatch(whole) for p in self.exclude
        )

    def _compiled(self, patterns: GlobPattern) -> list[re.Pattern]:
        given = [patterns] if isinstance(patterns, str) else patterns
        return [re.compile("".join(map(self._segment, p.split(self.separator)))) for p in given]

    def _segment(self, text: str) -> str:
        """Return the regular expression of a segment and of the separator before it."""
        start, inside = re.escape(self.separator), f"[^{re.escape(self.separator)}]"
        if text == "**":
            return f"(?:{start}{inside}+)*"
        if "**" in text:
            raise ValueError("** can only appear as an entire path segment")
        return start + f"{inside}*".join(map(re.escape, text.split("*")))
