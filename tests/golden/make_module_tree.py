"""The suite module_tree: the modules of PyTorch's package, read from its folder without importing them.

Those of private packages are recorded down to three levels, and those of torch.testing down to four.
"""

from __future__ import annotations

from pathlib import Path


def _depth(parts: tuple[str, ...]) -> int:
    """Return how many parts of a module's name are recorded."""
    top = parts[1] if len(parts) > 1 else ""
    return 3 if top.startswith("_") else 4 if top == "testing" else len(parts)


def golden_answers(torch) -> dict:
    root = Path(torch.__file__).parent
    names = set()
    for path in root.rglob("*.py"):
        parts = ("torch", *path.relative_to(root).with_suffix("").parts)
        if parts[-1] == "__init__":
            parts = parts[:-1]
        if all(part.isidentifier() for part in parts):
            names |= {".".join(parts[:depth]) for depth in range(2, min(len(parts), _depth(parts)) + 1)}
    found: dict[str, list[str]] = {}
    for name in sorted(names):
        found.setdefault(".".join(name.split(".")[:2]), []).append(name)
    return found
