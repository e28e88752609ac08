"""Shows how upstream's source differs from the source for which a rule was written."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Sequence


def difference(expected: str, found: str, names: tuple[str, str] = ("expected", "found")) -> str:
    """A unified diff of two sources that ignores their indentation and line endings."""
    old, new = (
        textwrap.dedent(text.replace("\r\n", "\n")).strip().splitlines() for text in (expected, found)
    )
    return "\n".join(difflib.unified_diff(old, new, names[0], names[1], lineterm=""))


def fragments_beside(fragments: Sequence[str], found: str) -> str:
    """For each fragment that an edit looks for, the most similar lines of the changed source.

    If all fragments are present, the text says so, because then only the code around them has changed.
    """
    missing = [fragment for fragment in fragments if fragment not in found]
    if not missing:
        return "the lines that the rule edits are as they were; what is around them changed"
    return "\n".join(difference(fragment, _most_like(fragment, found)) for fragment in missing)


def _most_like(fragment: str, source: str) -> str:
    """The passage of the source, with as many lines as the fragment, that is most similar to it."""
    wanted, lines = fragment.splitlines(), source.splitlines()

    def likeness(first: int, measure: str) -> float:
        part = "\n".join(line.strip() for line in lines[first : first + len(wanted)])
        text = "\n".join(line.strip() for line in wanted)
        return getattr(difflib.SequenceMatcher(None, part, text, autojunk=False), measure)()

    places = range(max(1, len(lines) - len(wanted) + 1))
    # quick_ratio is an upper bound, so the slow ratio is computed only where it can be better
    likely = sorted(places, key=lambda first: likeness(first, "quick_ratio"), reverse=True)[:20]
    best = max(likely, key=lambda first: likeness(first, "ratio"))
    return "\n".join(lines[best : best + len(wanted)])
