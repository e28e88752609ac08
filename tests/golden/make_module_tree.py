"""The suite module_tree: the modules of PyTorch's package down to three levels, read from its folder without importing them."""

from __future__ import annotations

from pathlib import Path


def golden_answers(torch) -> dict:
    root = Path(torch.__file__).parent
    names = set()
    for path in root.rglob("*.py"):
        parts = ("torch", *path.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if all(part.isidentifier() for part in parts):
            names |= {".".join(parts[:depth]) for depth in range(2, min(len(parts), 3) + 1)}
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(".".join(name.split(".")[:2]), []).append(name)
    return found
