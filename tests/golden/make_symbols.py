"""Writes symbols.json: the names that training programs use and real PyTorch has.

    <python with torch 2.13> -m tests.golden.make_symbols usage.tsv

usage.tsv has a name in its first column: torch.x.y, Tensor.x (of torch.Tensor), torch_npu.x. Of torch's names those are
kept that real PyTorch resolves (others are spelling mistakes and locals of a static count); of torch_npu's all, and of
torch.npu's, which torch_npu adds.
"""

from __future__ import annotations

import importlib
import json
import sys
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


if __name__ == "__main__":
    import torch  # noqa: F401

    npu = ("torch_npu", "torch.npu.", "torch.npu_")
    kept = [name for name in names(Path(sys.argv[1])) if name.startswith(npu) or resolve(name)]
    target = Path(__file__).with_name("symbols.json")
    target.write_text(json.dumps(kept, indent=0) + "\n")
    print(f"{len(kept)} names in {target}", file=sys.stderr)
