"""Write the golden data of the nn tests with real PyTorch.

Run in an environment with torch: ``python -m tests.golden.make_nn``. Makes ``nn_cases.npz`` (digests of the
tensors of each case) and ``nn_scenarios.json`` (what each scenario tells, and torch.nn's names).
"""

import json
import warnings
from pathlib import Path

import numpy as np
import torch

from tests.nn import (
    cases,
    scenarios,
    scenarios_parts,  # noqa: F401  adds its stories
)

HERE = Path(__file__).resolve().parent

# Names of torch.nn that came after the surface we claim (2.7), or are no part of it.
NOT_CLAIMED = {
    "LinearCrossEntropyLoss",
    "LinearCrossEntropyOptions",
    "intrinsic",
    "qat",
    "quantizable",
    "quantized",
}
NOT_CLAIMED_FUNCTIONS = {"grouped_mm", "linear_cross_entropy", "scaled_grouped_mm", "scaled_mm"}


def public(module, unwanted=()):
    return sorted(n for n in dir(module) if not n.startswith("_") and n not in unwanted)


def functions():
    """Public functions of torch.nn.functional that work on tensors."""
    f = torch.nn.functional
    helpers = {
        "assert_int_or_pair",
        "boolean_dispatch",
        "handle_torch_function",
        "has_torch_function",
        "has_torch_function_unary",
        "has_torch_function_variadic",
        "Callable",
        "Optional",
        "Tensor",
        "DType",
        "ScalingType",
        "SwizzleType",
        "BroadcastingList1",
        "BroadcastingList2",
        "BroadcastingList3",
    }
    return [n for n in public(f, helpers | NOT_CLAIMED_FUNCTIONS) if callable(getattr(f, n))]


def main():
    if not hasattr(torch, "_C") or not torch.__file__ or "msadapter" in torch.__file__:
        raise SystemExit("the golden data must come from real PyTorch")
    torch.set_num_threads(1)
    arrays, reprs = {}, {}
    for name in cases.CASES:
        seen = cases.run(torch, name)
        reprs[name] = seen.pop("repr")
        for key, tensor in seen.items():
            arrays[f"{name}|{key}"] = cases.digest(tensor).astype(np.float32)
    # One flat array and an index: an npz of many small members is mostly headers.
    index, flat = {}, []
    for key, value in arrays.items():
        index[key] = [len(flat), len(value)]
        flat.extend(value.tolist())
    np.savez_compressed(
        HERE / "nn_cases.npz",
        values=np.array(flat, dtype=np.float32),
        index=np.frombuffer(json.dumps(index, separators=(",", ":")).encode(), dtype=np.uint8),
    )
    told = {name: story(torch) for name, story in scenarios.SCENARIOS.items()}
    data = {
        "torch": torch.__version__,
        "seed": 11,
        "reprs": reprs,
        "scenarios": told,
        "nn": public(torch.nn, NOT_CLAIMED),
        "nn.functional": functions(),
        "nn.init": [
            n for n in public(torch.nn.init) if n.islower() and n not in ("math", "torch", "warnings")
        ],
        "nn.utils": public(torch.nn.utils),
    }
    (HERE / "nn_scenarios.json").write_text(json.dumps(data, indent=0, sort_keys=True) + "\n")
    print(f"{len(arrays)} tensors, {len(told)} scenarios from torch {torch.__version__}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
