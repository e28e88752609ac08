"""Which rule changes the outcome of a run: found by halves."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .manager import apply
from .rules import Patch, PatchError, Upstream


def search(patches: Sequence[Patch], good: Callable[[Sequence[Patch]], bool]) -> list[Patch]:
    """A smallest set of rules, in their order, with which `good` fails: one rule, or several that do it together.

    Raises:
        PatchError: it fails without any rule, or succeeds with all of them.
    """
    if not good([]):
        raise PatchError("the run is wrong without any rule: no rule is to blame")
    if good(patches):
        raise PatchError("the run is right with all rules: there is nothing to find")
    return _smallest(list(patches), [], lambda chosen: good([p for p in patches if p in chosen]))


def _smallest(suspects: list[Patch], beside: list[Patch], good: Callable[[list[Patch]], bool]) -> list[Patch]:
    """The needed ones of the suspects, where `beside` are applied too and all together fail."""
    if beside and not good(beside):
        return []
    if len(suspects) == 1:
        return suspects
    half = len(suspects) // 2
    first, second = suspects[:half], suspects[half:]
    if not good(beside + first):
        return _smallest(first, beside, good)
    if not good(beside + second):
        return _smallest(second, beside, good)
    right = _smallest(second, beside + first, good)
    left = _smallest(first, beside + right, good)
    return left + right


def bisect(
    upstream: Upstream,
    patches: Sequence[Patch],
    source: Path,
    command: Sequence[str],
    tell: Callable[[str], None] = print,
) -> list[Patch]:
    """`search` where a set of rules is good if `command` ends with 0; the word {tree} in it is the patched tree."""

    def good(chosen: Sequence[Patch]) -> bool:
        with tempfile.TemporaryDirectory(prefix="patches-") as folder:
            tree = Path(folder) / "tree"
            apply(upstream, chosen, source, tree)
            words = [word.replace("{tree}", str(tree)) for word in command]
            right = subprocess.run(words, check=False).returncode == 0
        tell(f"{'good' if right else 'bad '} with {', '.join(p.id for p in chosen) or 'no rule'}")
        return right

    return search(patches, good)
