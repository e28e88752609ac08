"""Copies a Megatron checkpoint with zeros in the rows of its embedding and output layer that belong to no token.

    padding_program.py ITERATION RESULT VOCABULARY

ITERATION is the folder of an iteration, RESULT a new folder, and VOCABULARY the number of tokens. Optimizer and random state are
left out. A training changes these rows of the output layer, and a model of Hugging Face does not have them. Run in the environment
of upstream's trees, because a checkpoint also has objects of upstream's classes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

_TENSORS = ("embedding.word_embeddings.weight", "output_layer.weight")


def without_padding(weights: dict[str, Any], tensor_rank: int, vocabulary: int) -> dict[str, Any]:
    """The weights of a part, whose rows follow those of the parts of the tensor ranks before it."""
    found = dict(weights)
    for name in _TENSORS:
        if name in found:
            tensor = found[name].clone()
            tensor[max(0, vocabulary - tensor_rank * tensor.shape[0]) :] = 0
            found[name] = tensor
    return found


def main() -> None:
    import torch

    source, result, vocabulary = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    for file in sorted(source.glob("*/*.pt")):
        if "optim" in file.name and not file.name.startswith("model"):
            continue
        state = torch.load(file, map_location="cpu", weights_only=False)
        kept = {name: value for name, value in state.items() if name not in ("optimizer", "rng_state")}
        rank = int(file.parent.name.removeprefix("mp_rank_").split("_")[0])
        for chunk in [name for name in kept if name.startswith("model")]:
            kept[chunk] = without_padding(kept[chunk], rank, vocabulary)
        place = result / file.parent.name
        place.mkdir(parents=True)
        torch.save(kept, place / file.name)


if __name__ == "__main__":
    main()
