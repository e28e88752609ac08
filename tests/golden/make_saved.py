"""Writes saved.json: which results and arguments of PyTorch's operators may be changed before the backward pass.

<python with torch 2.13.0> -m tests.golden.make_saved (after make_samples.py)
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import torch

from tests.golden import samples, saved, second_order


def main() -> None:
    assert torch.__version__.startswith("2.13."), torch.__version__
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cases, arrays = second_order.load(samples.FILE)
    found = {}
    for name in saved.names(cases):
        try:
            allowed = saved.changeable(torch, cases[name], arrays)
        except Exception as error:  # PyTorch refuses, for instance a result that is one number for many
            print(name, type(error).__name__, str(error)[:80], file=sys.stderr)
            continue
        if allowed:
            found[name] = "".join("01"[a] for a in allowed)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(allowed)}" for name, allowed in found.items())
    Path(__file__).with_name("saved.json").write_text("{\n" + lines + "\n}\n")
    print(len(found), "cases", file=sys.stderr)


if __name__ == "__main__":
    main()
