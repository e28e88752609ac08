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

from megatron_ms.conversion.parts import copy_weights

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
    vocabulary = int(sys.argv[3])

    def change(part: str, content: dict[str, Any]) -> None:
        rank = int(part.removeprefix("mp_rank_").split("_")[0])
        for chunk in [name for name in content if name.startswith("model")]:
            content[chunk] = without_padding(content[chunk], rank, vocabulary)

    copy_weights(Path(sys.argv[1]), Path(sys.argv[2]), change)


if __name__ == "__main__":
    main()
