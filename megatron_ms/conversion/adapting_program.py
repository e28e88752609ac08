"""Puts matrices of LoRA beside the weights of a Megatron checkpoint.

    adapting_program.py PLAIN CODED RESULT MATRICES RANK

PLAIN is the folder of an iteration with the weights of a model, CODED one with weights that carry one matrix each (coding.py), and
RESULT a new folder. MATRICES is a safetensors file with the other ones, by number. Run in the environment of upstream's trees.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from megatron_ms.conversion.coding import DIVIDED_BY_ROWS, decode
from megatron_ms.conversion.merge_program import A, B


def adapted(
    weights: dict[str, Any], coded: Mapping[str, Any], others: Mapping[str, Any], rank: int
) -> dict[str, Any]:
    """The weights of a part under the names of a model with LoRA, and the matrices.

    Raises:
        ValueError: a weight that carries a matrix is not divided among ranks as its layer is.
    """
    found: dict[str, Any] = {}
    for name, value in weights.items():
        layer, _, last = name.rpartition(".")
        carrier = coded.get(f"{layer}.weight")
        kind = layer.rpartition(".")[2]
        carried = decode(carrier, rank) if kind in DIVIDED_BY_ROWS and carrier is not None else None
        if carried is None:
            found[name] = value
            continue
        found[f"{layer}.base_layer.{last}"] = value
        if last == "weight":
            number, by_rows, matrix = carried
            if by_rows != DIVIDED_BY_ROWS[kind]:
                raise ValueError(
                    f"{layer}: the converter has not split the matrices of LoRA as Megatron does"
                )
            second = others[f"{number}.{'A' if by_rows else 'B'}"]
            found[f"{layer}{A}"], found[f"{layer}{B}"] = (second, matrix) if by_rows else (matrix, second)
    return found


def main() -> None:
    import torch
    from safetensors.torch import load_file

    plain, coded, result, matrices, rank = (*(Path(word) for word in sys.argv[1:5]), int(sys.argv[5]))
    others = load_file(matrices)
    count = 0
    for file in sorted(plain.glob("*/*.pt")):
        part = file.relative_to(plain)
        state = torch.load(file, map_location="cpu", weights_only=False)
        carriers = torch.load(coded / part, map_location="cpu", weights_only=False)
        for chunk in [name for name in state if name.startswith("model")]:
            state[chunk] = adapted(state[chunk], carriers[chunk], others, rank)
            count += sum(name.endswith(A) for name in state[chunk])
        (result / part).parent.mkdir(parents=True)
        torch.save(state, result / part)
    if count < len(others):
        raise SystemExit(
            f"the converter lost matrices of LoRA: only {count} of {len(others)} layers have them"
        )


if __name__ == "__main__":
    main()
