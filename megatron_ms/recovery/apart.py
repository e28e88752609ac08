"""Checkpoints whose tensors are in safetensors: upstream saves in its format torch, and what it gives to torch.save is divided.

NAME.pt keeps upstream's structure, with a place instead of each tensor. NAME.safetensors beside it has the tensors, under names
made of the keys that lead to them, such as `model.decoder.layers.0.mlp.linear_fc1.weight`. Both are in the manifest.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ENDING = ".safetensors"
_MARK = "tensors apart"  # the key by which a divided file is known
# The key under which the description of a tensor is stored: its name, and whether it requires gradients and is a parameter.
# These are plain objects, so that torch.load(weights_only=True) reads them.
_PLACE = "tensor apart"
_VERSION = 1


def beside(file: Path) -> Path:
    """The file with the tensors of a divided file."""
    return file.with_suffix(ENDING)


class _Divider:
    """Takes the tensors out of a structure."""

    def __init__(self) -> None:
        self.tensors: dict[str, Any] = {}
        self._known: dict[tuple[Any, ...], str] = {}  # what is shared is written once

    def divided(self, value: Any, path: tuple[str, ...]) -> Any:
        """The structure with places instead of tensors."""
        import torch

        if isinstance(value, torch.Tensor):
            return self._placed(value, path)
        if isinstance(value, dict):
            made = {key: self.divided(one, (*path, str(key))) for key, one in value.items()}
            return made if type(value) is dict else _like(value, made)
        if isinstance(value, (list, tuple)):
            parts = [self.divided(one, (*path, str(i))) for i, one in enumerate(value)]
            if hasattr(value, "_fields"):
                return type(value)(*parts)
            return parts if type(value) is list else type(value)(parts)
        return value

    def _placed(self, tensor: Any, path: tuple[str, ...]) -> Any:
        import torch

        if tensor.layout != torch.strided or tensor.is_complex() or tensor.is_quantized or tensor.is_meta:
            return tensor  # the format has no such tensors
        key = (tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device)
        name = self._known.get(key) if tensor.numel() else None
        if name is None:
            name = self._free(".".join(path))
            self.tensors[name] = tensor.detach().cpu().contiguous()
            self._known[key] = name
        return {_PLACE: [name, tensor.requires_grad, isinstance(tensor, torch.nn.Parameter)]}

    def _free(self, wanted: str) -> str:
        """A name that is not taken. Keys that differ may give the same name, such as 1 and "1"."""
        name, number = wanted or "tensor", 1
        while name in self.tensors or name == "__metadata__":
            number += 1
            name = f"{wanted}#{number}"
        return name


def _like(value: Any, made: dict[Any, Any]) -> Any:
    """A mapping of the same class, such as an OrderedDict, with other values."""
    import copy

    found = copy.copy(value)
    found.update(made)
    return found


def _joined(value: Any, tensors: Callable[[str], Any]) -> Any:
    """The structure with its tensors."""
    import torch

    if isinstance(value, dict) and _PLACE in value:
        name, requires_grad, parameter = value[_PLACE]
        tensor = tensors(name)
        if parameter:
            return torch.nn.Parameter(tensor, requires_grad=requires_grad)
        return tensor.requires_grad_() if requires_grad else tensor
    if isinstance(value, dict):
        made = {key: _joined(one, tensors) for key, one in value.items()}
        return made if type(value) is dict else _like(value, made)
    if isinstance(value, (list, tuple)):
        parts = [_joined(one, tensors) for one in value]
        if hasattr(value, "_fields"):
            return type(value)(*parts)
        return parts if type(value) is list else type(value)(parts)
    return value


def save(structure: Any, file: Path, write: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Divides a structure into the two files. write(structure, file, ...): torch.save."""
    from safetensors.torch import save_file

    divider = _Divider()
    rest = divider.divided(structure, ())
    save_file(divider.tensors, beside(file), metadata={"format": "pt"})
    return write({_MARK: _VERSION, "structure": rest}, file, *arguments, **named)


def load(found: Any, file: Path) -> Any:
    """What torch.load has read from a file, with its tensors if it is a divided one.

    Raises:
        ValueError: it was written by another version.
        OSError, safetensors.SafetensorError: the tensors' file is absent or damaged.
    """
    if not (isinstance(found, dict) and _MARK in found):
        return found
    if found[_MARK] != _VERSION:
        raise ValueError(f"{file} is divided in the way {found[_MARK]}, and {_VERSION} is known here")
    from safetensors.torch import load_file

    tensors = load_file(beside(file))
    return _joined(found["structure"], functools.cache(tensors.__getitem__))


@contextmanager
def writing() -> Iterator[None]:
    """While it is open, torch.save divides files with the ending .pt, in this thread."""
    with _instead("save", _save):
        yield


@contextmanager
def reading() -> Iterator[None]:
    """While it is open, torch.load gives the tensors of divided files, in this thread."""
    with _instead("load", _load):
        yield


@contextmanager
def _instead(name: str, function: Callable[..., Any]) -> Iterator[None]:
    import torch

    original, thread = getattr(torch, name), threading.get_ident()

    @functools.wraps(original)
    def around(*arguments: Any, **named: Any) -> Any:
        if threading.get_ident() != thread:
            return original(*arguments, **named)
        return function(original, *arguments, **named)

    setattr(torch, name, around)
    try:
        yield
    finally:
        setattr(torch, name, original)


def _save(original: Callable[..., Any], obj: Any, f: Any, *arguments: Any, **named: Any) -> Any:
    if isinstance(f, (str, os.PathLike)) and Path(f).suffix == ".pt":
        return save(obj, Path(f), original, *arguments, **named)
    return original(obj, f, *arguments, **named)


def _load(original: Callable[..., Any], f: Any, *arguments: Any, **named: Any) -> Any:
    found = original(f, *arguments, **named)
    return load(found, Path(f)) if isinstance(f, (str, os.PathLike)) else found
