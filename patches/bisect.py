"""Finds the rules that change the outcome of a run, by bisection."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from .manager import apply
from .rules import Patch, PatchError, Upstream


def search(patches: Sequence[Patch], good: Callable[[Sequence[Patch]], bool]) -> list[Patch]:
    """A minimal set of rules, in their order, with which `good` fails. Several rules may cause a failure together.

    Raises:
        PatchError: `good` fails without any rule, or succeeds with all rules.
    """
    if not good([]):
        raise PatchError("the command fails even without any rule, so no rule causes the failure")
    if good(patches):
        raise PatchError("the command succeeds with all rules, so there is nothing to find")
    return _smallest(list(patches), [], lambda chosen: good([p for p in patches if p in chosen]))


def _smallest(suspects: list[Patch], beside: list[Patch], good: Callable[[list[Patch]], bool]) -> list[Patch]:
    """The suspects that are needed for the failure. The rules `beside` are always applied as well."""
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
    """Runs `search` with a command: rules are good if it exits with 0. {tree} in it is replaced by the patched tree."""

    def good(chosen: Sequence[Patch]) -> bool:
        with tempfile.TemporaryDirectory(prefix="patches-") as folder:
            tree = Path(folder) / "tree"
            apply(upstream, chosen, source, tree)
            words = [word.replace("{tree}", str(tree)) for word in command]
            right = subprocess.run(words, check=False).returncode == 0
        tell(f"{'good' if right else 'bad '} with {', '.join(p.id for p in chosen) or 'no rule'}")
        return right

    return search(patches, good)
