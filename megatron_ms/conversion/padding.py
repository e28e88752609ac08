"""Vocabularies that tensor ranks divide only when rows are added: rows of zeros in the embedding and in the output layer.

The file names the larger size as `model.padded_vocab_size`, which a training needs too. On the way to Megatron the rows are added,
and on the way back they are left out; no text has their tokens.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..inference.engine import provide_torch
from . import weights

if TYPE_CHECKING:
    import torch

    from ..training.settings import Settings

_TENSORS = (
    "model.embed_tokens.weight", "transformer.wte.weight", "transformer.word_embeddings.weight", "word_embeddings.weight",
    "lm_head.weight",
)  # fmt: skip


def size(settings: Settings, vocabulary: int) -> int:
    """The rows that Megatron's embedding has: those of the vocabulary, or more.

    Raises:
        UserError: there are fewer than tokens, or the tensor ranks do not divide them.
    """
    given, tensor = settings.flag("padded_vocab_size"), settings.parallel.tensor
    rows = vocabulary if given is None else int(str(given))
    if rows < vocabulary or rows % tensor:
        wanted = -(-vocabulary // tensor) * tensor
        message = f"is {rows}, but must be at least {vocabulary} and divisible by tensor {tensor}: for example {wanted}"
        raise settings.document.error("model.padded_vocab_size", message)
    return rows


def add(folder: Path, rows: int) -> None:
    """Adds rows of zeros to the tensors in a folder, up to so many. A file that is a link is replaced, and its target stays."""

    def longer(tensor: torch.Tensor) -> torch.Tensor:
        from torch.nn.functional import pad

        return pad(tensor, (0, 0, 0, rows - tensor.shape[0]))

    _change(folder, longer)


def leave_out(folder: Path, rows: int) -> None:
    """Leaves out all rows but the first ones."""
    _change(folder, lambda tensor: tensor[:rows].clone())


def _change(folder: Path, change: Any) -> None:
    provide_torch()
    from safetensors.torch import load_file, save_file

    for file in weights.files(folder):
        held = load_file(file)
        if not any(name in held for name in _TENSORS):
            continue
        content = {name: change(tensor) if name in _TENSORS else tensor for name, tensor in held.items()}
        if file.is_symlink():
            file.unlink()
        save_file(content, file, {"format": "pt"})
