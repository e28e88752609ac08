"""Takes the matrices of LoRA out of a Megatron checkpoint, for an adapter of peft.

    coding_program.py ITERATION PLAIN CODED MATRICES EXPERT

ITERATION is the folder of an iteration whose parts have weights and matrices. PLAIN is a new folder for the weights alone, and
CODED one in which the weights carry one matrix each (coding.py). MATRICES is a safetensors file with the other ones, by number.
EXPERT is the expert parallel size. Run in the environment of upstream's trees, because a checkpoint also has objects of upstream's
classes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from megatron_ms.conversion.coding import DIVIDED_BY_ROWS, encode
from megatron_ms.conversion.merge_program import A, B, plain


class Coder:
    """Numbers the layers of all parts. Parts of one layer on several tensor or expert parallel ranks have the same number."""

    def __init__(self, expert: int = 1) -> None:
        self.expert = expert
        self.numbers: dict[tuple[str, ...], int] = {}
        self.matrices: dict[str, Any] = {}

    def coded(self, weights: dict[str, Any], part: str, chunk: str) -> dict[str, Any]:
        """The weights of a part, which carry the matrix that is divided among ranks.

        Raises:
            ValueError: a layer cannot be put into an adapter, or ranks have different copies of a matrix.
        """
        found = plain(weights)
        for name in sorted(name for name in weights if name.endswith(A)):
            layer = name.removesuffix(A)
            kind = layer.rpartition(".")[2]
            if kind not in DIVIDED_BY_ROWS or ".experts." in layer:
                raise ValueError(
                    f"{layer}: matrices of this layer cannot be put into an adapter of peft; "
                    "convert.to: huggingface adds them to the weights"
                )
            by_rows = DIVIDED_BY_ROWS[kind]
            # mp_rank_TENSOR[_PIPELINE][_EXPERT]; layers without experts are the same on all expert parallel ranks
            stage = re.sub(r"^mp_rank_\d\d", "", part)
            stage = stage.rpartition("_")[0] if self.expert > 1 else stage
            number = self.numbers.setdefault((stage, chunk, layer), len(self.numbers))
            a, b = weights[name], weights[f"{layer}{B}"]
            found[f"{layer}.weight"] = encode(found[f"{layer}.weight"], b if by_rows else a, number, by_rows)
            self._keep(f"{number}.{'A' if by_rows else 'B'}", a if by_rows else b, layer)
        return found

    def _keep(self, name: str, matrix: Any, layer: str) -> None:
        import torch

        if name in self.matrices and not torch.equal(self.matrices[name], matrix):
            raise ValueError(f"{layer}: ranks have different copies of a matrix")
        self.matrices[name] = matrix.clone().contiguous()


def main() -> None:
    import torch
    from safetensors.torch import save_file

    source, whole, carrying, matrices = (Path(word) for word in sys.argv[1:5])
    coder = Coder(int(sys.argv[5]))
    for file in sorted(source.glob("*/*.pt")):
        state = torch.load(file, map_location="cpu", weights_only=False)
        chunks = {name: state[name] for name in state if name.startswith("model")}
        for folder, change in (
            (whole, lambda chunk, weights: plain(weights)),
            (carrying, lambda chunk, weights: coder.coded(weights, file.parent.name, chunk)),  # noqa: B023
        ):
            place = folder / file.parent.name
            place.mkdir(parents=True)
            made = {chunk: change(chunk, weights) for chunk, weights in chunks.items()}
            torch.save({**state, **made}, place / file.name)
    if not coder.matrices:
        raise SystemExit(f"{source}: has no matrices of LoRA")
    save_file(coder.matrices, matrices)


if __name__ == "__main__":
    main()
