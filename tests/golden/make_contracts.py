"""Answers of real PyTorch 2.13.0 to the cases of tests/autograd, tests/tensor and more, and to random programs.

<python with torch> -m tests.golden.make_contracts [folder ...]
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import torch

from tests.golden.contracts import HERE, cases_of, outcome

PROGRAMS = 300
DIGESTS, FIRST_SEED = 3000, 10000  # programs of which only hashes are kept
MODULES = {
    "autograd": ("graph_cases", "function_cases", "hook_cases"),
    "tensor": ("tensor_cases", "indexing_cases", "layout_cases"),
    "masked": ("masked_cases",),
    "func": ("functional_cases", "func_cases"),
    "distributions": ("distribution_cases", "transform_cases"),
    "fx": ("fx_cases",),
    "optim": ("schedule_cases", "rule_cases", "search_cases"),
}
FILES = {"optim": "optim_cases"}  # the other file of this name holds what make_optim.py writes


def main() -> None:
    wanted = sys.argv[1:] or [*MODULES, "programs"]
    for folder, modules in MODULES.items():
        if folder not in wanted:
            continue
        answers = {}
        for module in modules:
            if (HERE.parent / folder / f"{module}.py").exists():
                found = cases_of(importlib.import_module(f"tests.{folder}.{module}"))
                answers[module] = {name: outcome(case, torch) for name, case in found.items()}
        Path(HERE / f"{FILES.get(folder, folder)}.json").write_text(json.dumps(answers, indent=0) + "\n")
    if "programs" not in wanted:
        return
    from tests.golden import programs

    seeds = {str(seed): programs.run(torch, programs.from_seed(seed)) for seed in range(PROGRAMS)}
    (HERE / "programs.json").write_text(
        json.dumps(seeds, separators=(",", ":")).replace('},"', '},\n"') + "\n"
    )
    several = [
        programs.digest(json.loads(json.dumps(programs.run(torch, programs.from_seed(seed)))))
        for seed in range(FIRST_SEED, FIRST_SEED + DIGESTS)
    ]
    (HERE / "programs_digests.json").write_text(
        json.dumps({"first_seed": FIRST_SEED, "programs": several}, indent=0) + "\n"
    )


if __name__ == "__main__":
    main()
