"""Prints what a Megatron checkpoint has, as JSON: the layout that it was trained in, and a hash of each part of its state.

    states_program.py ITERATION [states]

ITERATION is the folder of an iteration. Without the second word only the layout is read. States are those of weights, optimizer and
schedule, of a checkpoint in the format torch; random states and arguments are left out. Run in the environment of upstream's trees,
because a checkpoint also has objects of upstream's classes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from megatron_ms.conversion.parts import fact

MARK = "checkpoint: "
LAYOUT = (
    "tensor_model_parallel_size",
    "pipeline_model_parallel_size",
    "expert_model_parallel_size",
    "expert_tensor_parallel_size",
    "num_layers_per_virtual_pipeline_stage",
    "num_layer_list",
    "use_distributed_optimizer",
    "ckpt_fully_parallel_save",
    "no_save_optim",
    "bf16",
    "fp16",
)
# What differs though the states are equal: random states, arguments, and what belongs to a moment of a run.
_LEFT_OUT = ("args", "rng_state", "rerun_state_machine", "num_floating_point_operations_so_far")


def _parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors and numbers in nested dictionaries and lists, by their path."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            yield from _parts(f"{name}/{key}", one)
    elif isinstance(value, list | tuple):
        for place, one in enumerate(value):
            yield from _parts(f"{name}/{place}", one)
    else:
        yield name, value


def _states(folder: Path) -> dict[str, Any]:
    import torch

    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*/*.pt")):
        state = torch.load(file, map_location="cpu", weights_only=False)
        for key, value in state.items():
            if key not in _LEFT_OUT:
                parts = _parts(f"{file.parent.name}/{file.stem}/{key}", value)
                found |= {
                    name: fact(one) if isinstance(one, torch.Tensor) else repr(one) for name, one in parts
                }
    return found


def main() -> None:
    import torch

    folder = Path(sys.argv[1])
    common = folder / "common.pt"
    file = common if common.is_file() else sorted(folder.glob("*/model_optim_rng.pt"))[0]
    state = torch.load(file, map_location="cpu", weights_only=False)
    layout = {name: getattr(state["args"], name, None) for name in LAYOUT}
    states = _states(folder) if sys.argv[2:] else {}
    print("\n" + MARK + json.dumps({"layout": layout, "states": states}), flush=True)


if __name__ == "__main__":
    main()
