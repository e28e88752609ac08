"""Functions that create the edit of a rule.

An edit is a function from source text to source text that raises PatchError if it finds nothing to change. Its attribute
`fragments` has the pieces of source that it looks for, which are shown when upstream has changed them.
"""

from __future__ import annotations

from collections.abc import Callable

from .rules import PatchError

Edit = Callable[[str], str]


def replace(old: str, new: str, count: int = 1) -> Edit:
    """Replaces the fragment old, which must occur exactly count times, by new."""

    def edit(source: str) -> str:
        found = source.count(old)
        if found != count:
            raise PatchError(
                f"the fragment to replace must occur {count} times, but occurs {found} times: {_first_line(old)!r}"
            )
        return source.replace(old, new)

    edit.fragments = (old,)  # type: ignore[attr-defined]
    return edit


def insert_after(anchor: str, text: str) -> Edit:
    """Inserts text directly after anchor, which must occur exactly once."""
    return replace(anchor, anchor + text)


def chain(*edits: Edit) -> Edit:
    """Applies several edits, one after the other."""

    def edit(source: str) -> str:
        for step in edits:
            source = step(source)
        return source

    edit.fragments = tuple(part for step in edits for part in getattr(step, "fragments", ()))  # type: ignore[attr-defined]
    return edit


def codemod(transformer_class: type) -> Edit:
    """Runs a libcst transformer on the whole module. It is an error if it changes nothing."""

    def edit(source: str) -> str:
        import libcst  # imported here, because only rules of this kind need it

        changed = libcst.MetadataWrapper(libcst.parse_module(source)).visit(transformer_class()).code
        if changed == source:
            raise PatchError(f"the transformer {transformer_class.__name__} found nothing to change")
        return changed

    return edit


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else text
