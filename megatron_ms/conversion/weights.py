"""The tensors of a Hugging Face model on disk: names, types, shapes and hashes, without loading them into a model."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError, deserialize

from .. import whole
from ..errors import UserError
from ..inference.engine import provide_torch

INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Tensor:
    """A tensor of a file: its type, its shape, and the hash of its bytes."""

    dtype: str
    shape: tuple[int, ...]
    sha256: str


def files(folder: Path) -> list[Path]:
    """The files of weights.

    Raises:
        UserError: there is none, the index names one that is absent, or one is a pointer of Git LFS.
    """
    index = folder / INDEX
    if index.is_file():
        try:
            names = sorted(set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UserError(f"{index}: is not an index of weights: {error!r}") from None
        for name in names:
            if Path(str(name)).name != name or not (folder / name).is_file():
                raise UserError(f"{index}: names {name}, which {folder} does not have")
        whole.refuse_pointers(folder / name for name in names)
        return [folder / name for name in names]
    found = sorted(folder.glob("*.safetensors"))
    whole.refuse_pointers(found)
    if not found:
        hint = (
            ", only pickled ones: save it with transformers' save_pretrained"
            if any(folder.glob("*.bin"))
            else ""
        )
        raise UserError(f"{folder}: has no safetensors files{hint}")
    return found


def tensors(folder: Path) -> dict[str, Tensor]:
    """Name -> tensor, of all files.

    Raises:
        UserError: a file is damaged.
    """
    found: dict[str, Tensor] = {}
    for file in files(folder):
        try:
            parts = deserialize(file.read_bytes())
        except SafetensorError as error:
            raise UserError(f"{file}: is not a complete safetensors file: {error}") from None
        for name, part in parts:
            if name in found:
                raise UserError(f"{file}: has {name}, which another file has too")
            sha256 = hashlib.sha256(part["data"]).hexdigest()
            found[name] = Tensor(str(part["dtype"]), tuple(part["shape"]), sha256)
    return found


def remove(folder: Path, name: str) -> None:
    """Writes the file that has a tensor again without it."""
    provide_torch()
    from safetensors.torch import load_file, save_file

    for file in files(folder):
        held = load_file(file)
        if held.pop(name, None) is not None:
            save_file(held, file, {"format": "pt"})
    index = folder / INDEX
    if index.is_file():
        content = json.loads(index.read_text(encoding="utf-8"))
        content["weight_map"].pop(name, None)
        index.write_text(json.dumps(content, indent=1), encoding="utf-8")


def difference(before: dict[str, Tensor], after: dict[str, Tensor]) -> str:
    """What is different in two sets of tensors, by their names; "" if nothing is."""
    for name in sorted({*before, *after}):
        if name not in after:
            return f"{name} is missing"
        if name not in before:
            return f"{name} is new"
        one, other = before[name], after[name]
        if (one.dtype, one.shape) != (other.dtype, other.shape):
            return f"{name} was {one.dtype} {list(one.shape)} and is {other.dtype} {list(other.shape)}"
        if one.sha256 != other.sha256:
            return f"{name} has other values"
    return ""
