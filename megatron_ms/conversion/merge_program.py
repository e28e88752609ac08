"""Adds the matrices of LoRA to the weights of a Megatron checkpoint, part by part.

    merge_program.py ITERATION RESULT SCALE

ITERATION is the folder of an iteration whose parts have weights and matrices, RESULT a new folder for the same parts without
matrices, and SCALE is alpha / rank. A part has the rows of B, or the columns of A, that belong to its part of the weight, so
each part is merged by itself. MindSpeed-LLM's converter merges too, and loses the biases of the layers. Run in the environment of
upstream's trees, because a checkpoint also has objects of upstream's classes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

A, B = ".lora_A.default.weight", ".lora_B.default.weight"


def plain(weights: dict[str, Any]) -> dict[str, Any]:
    """The weights of a part under the names of a model without LoRA."""
    return {
        name.replace(".base_layer.", "."): value for name, value in weights.items() if ".lora_" not in name
    }


def merged(weights: dict[str, Any], scale: float) -> dict[str, Any]:
    """The weights of a part under the names of a model without LoRA. The sum is made in float32.

    Raises:
        ValueError: a matrix has no weight to which it can be added.
    """
    found = plain(weights)
    for name in sorted(name for name in weights if name.endswith(A)):
        layer = name.removesuffix(A)
        target = f"{layer}.weight"
        if f"{layer}{B}" not in weights or target not in found:
            raise ValueError(f"{name}: there is no {layer}{B} or no {target}")
        change = weights[f"{layer}{B}"].float() @ weights[name].float()
        found[target] = (found[target].float() + scale * change).to(found[target].dtype)
    known = (A, B, "_extra_state")
    if strange := sorted(name for name in weights if "lora_" in name and not name.endswith(known)):
        raise ValueError(f"{strange[0]}: matrices of this kind cannot be merged")
    return found


def main() -> None:
    import torch

    source, result, scale = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    for file in sorted(source.glob("*/*.pt")):
        state = torch.load(file, map_location="cpu", weights_only=False)
        for chunk in [name for name in state if name.startswith("model")]:
            state[chunk] = merged(state[chunk], scale)
        place = result / file.parent.name
        place.mkdir(parents=True)
        torch.save(state, place / file.name)


if __name__ == "__main__":
    main()
