"""Directory: the files of an archive as a tree."""

from __future__ import annotations

from collections.abc import Iterable

from .glob_group import GlobGroup, GlobPattern

__all__ = ["Directory"]


class Directory:
    """A folder of an archive, or a file.

    Attributes:
        children: what is in it, by name.
    """

    def __init__(self, name: str, is_dir: bool):
        self.name = name
        self.is_dir = is_dir
        self.children: dict[str, Directory] = {}

    def _add(self, path: str) -> None:
        here = self
        *folders, file = path.split("/")
        for folder in folders:
            here = here.children.setdefault(folder, Directory(folder, True))
        here.children[file] = Directory(file, False)

    def has_file(self, filename: str) -> bool:
        """Return whether the tree has a file or a folder at this path."""
        here = self
        for part in filename.split("/"):
            if part not in here.children:
                return False
            here = here.children[part]
        return True

    def __str__(self) -> str:
        return f"─── {self.name}\n" + "".join(self._lines("    "))

    def _lines(self, before: str) -> Iterable[str]:
        """Yield the lines of what is inside: first the folders, then the files, both by name."""
        inside = sorted(self.children.items(), key=lambda item: (not item[1].is_dir, item[0]))
        for number, (name, child) in enumerate(inside, 1):
            last = number == len(inside)
            yield f"{before}{'└' if last else '├'}── {name}\n"
            yield from child._lines(before + ("    " if last else "│   "))


def directory_of(name: str, files: Iterable[str], include: GlobPattern, exclude: GlobPattern) -> Directory:
    """Return the tree of those files that match the patterns, whose segments are divided by slashes."""
    group, top = GlobGroup(include, exclude=exclude, separator="/"), Directory(name, True)
    for file in files:
        if group.matches(file):
            top._add(file)
    return top
