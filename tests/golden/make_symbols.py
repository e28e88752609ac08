"""The suite symbols: the names that training programs use and real PyTorch has, by the place before their last dot.

MSADAPTER_USAGE names a table that has a name in its first column: torch.x.y, Tensor.x (of torch.Tensor), torch_npu.x. Of
torch's names those are kept that real PyTorch resolves (others are spelling mistakes and locals of a static count); of
torch_npu's all, and of torch.npu's, which torch_npu adds.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path


def resolve(name: str) -> bool:
    """Whether a dotted name is a module, or an attribute of one."""
    first, *rest = name.split(".")
    found, path = importlib.import_module(first), first
    for part in rest:
        path += f".{part}"
        if hasattr(found, part):
            found = getattr(found, part)
            continue
        try:
            found = importlib.import_module(path)
        except ImportError:
            return False
    return True


def names(table: Path) -> list[str]:
    rows = [
        line.split("\t")[0]
        for line in table.read_text().splitlines()
        if line and not line.startswith(("#", "symbol"))
    ]
    return sorted(f"torch.{row}" if row.startswith("Tensor.") else row for row in rows)


def golden_answers(torch) -> dict:
    table = os.environ.get("MSADAPTER_USAGE")
    if not table:
        raise SystemExit("symbols: set MSADAPTER_USAGE to the path of the table of names")
    npu = ("torch_npu", "torch.npu.", "torch.npu_")
    found: dict[str, list[str]] = {}
    for name in names(Path(table)):
        if name.startswith(npu) or resolve(name):
            found.setdefault(name.rpartition(".")[0], []).append(name)
    return found
