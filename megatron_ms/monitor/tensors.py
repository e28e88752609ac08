"""Reads a model and its optimizer: norms of chosen parameters, and the first tensor that is not finite.

This module runs in upstream's processes, where `torch` is the adapter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

EMBEDDING = re.compile("embedding")


class Named:
    """The parameters of a model's chunks by name. Chunks of an interleaved pipeline get their number in front."""

    def __init__(self, model: Sequence[Any]) -> None:
        self.parameters: list[tuple[str, Any]] = []
        self.modules: list[tuple[str, Any]] = []
        for number, chunk in enumerate(model):
            front = f"chunk {number}: " if len(model) > 1 else ""
            for name, parameter in chunk.named_parameters():
                self.parameters.append((front + _short(name), parameter))
            for name, module in chunk.named_modules():
                if not any(True for _ in module.children()):
                    self.modules.append((front + _short(name), module))

    def chosen(self, patterns: Sequence[re.Pattern[str]]) -> list[tuple[str, Any]]:
        """The parameters whose names match one of the patterns."""
        return [pair for pair in self.parameters if any(pattern.search(pair[0]) for pattern in patterns)]


def _short(name: str) -> str:
    while name.startswith("module."):
        name = name.removeprefix("module.")
    return name


def parts_of(optimizer: Any) -> dict[int, Any] | None:
    """For the distributed optimizer: the part that this rank has of each float32 parameter, by the parameter's id. Else None."""
    found: dict[int, Any] | None = None
    for one in getattr(optimizer, "chained_optimizers", [optimizer]):
        if hasattr(one, "shard_fp32_groups"):
            pairs = zip(_all(one.model_fp32_groups), _all(one.shard_fp32_groups), strict=True)
            found = (found or {}) | {id(whole): part for whole, part in pairs}
    return found


def _all(groups: Sequence[Sequence[Any]]) -> list[Any]:
    return [parameter for group in groups for parameter in group]


def gradient(parameter: Any, parts: dict[int, Any] | None = None) -> Any:
    """A parameter's gradient as the optimizer has it, unscaled and not clipped; None if another rank has it.

    With the distributed optimizer it is the part of this rank. parts: those of `parts_of`.
    """
    if getattr(parameter, "main_param_sharded", False):
        return None if parameter.main_param is None else parameter.main_param.grad
    if getattr(parameter, "main_param", None) is not None:
        return parameter.main_param.grad
    if parts is not None:
        return parts[id(parameter)].grad if id(parameter) in parts else None
    return _reduced(parameter)


def _reduced(parameter: Any) -> Any:
    """A parameter's gradient in the memory that is reduced over the replicas."""
    found = getattr(parameter, "main_grad", None)
    return parameter.grad if found is None else found


def gradient_norms(parameters: Sequence[tuple[str, Any]], parts: dict[int, Any] | None) -> dict[str, float]:
    """The norms of the gradients that this rank has."""
    found = ((name, gradient(parameter, parts)) for name, parameter in parameters)
    return {name: _norm(tensor) for name, tensor in found if tensor is not None}


def embedding_square(
    parameters: Sequence[tuple[str, Any]], parts: dict[int, Any] | None, replicas: int
) -> float | None:
    """What this rank adds to the square of the norm of the embedding's gradient: the sum over all ranks is the square.

    As in upstream's own norm, copies on other pipeline stages and tensor parallel ranks do not count. replicas: the ranks that have
    the same gradients, without the distributed optimizer. None if this rank has no part.
    """
    from megatron.core.tensor_parallel import param_is_not_tensor_parallel_duplicate
    from megatron.core.transformer.module import param_is_not_shared

    own = [
        gradient(parameter, parts)
        for _, parameter in parameters
        if param_is_not_shared(parameter) and param_is_not_tensor_parallel_duplicate(parameter)
    ]
    squares = [_norm(one) ** 2 for one in own if one is not None]
    return sum(squares) / (replicas if parts is None else 1) if squares else None


def weight_norms(parameters: Sequence[tuple[str, Any]]) -> dict[str, float]:
    """The norms of the parameters themselves."""
    return {name: _norm(parameter.detach()) for name, parameter in parameters}


def state_norms(optimizer: Any) -> dict[str, float]:
    """The norm of each kind of state, such as exp_avg, over all that this rank's optimizer has."""
    squares: dict[str, float] = {}
    for one in getattr(optimizer, "chained_optimizers", [optimizer]):
        inner = getattr(one, "optimizer", None)
        for state in () if inner is None else inner.state.values():
            for kind, value in state.items():
                if getattr(value, "ndim", 0):
                    squares[kind] = squares.get(kind, 0.0) + _norm(value) ** 2
    return {kind: square**0.5 for kind, square in squares.items()}


def _norm(tensor: Any) -> float:
    return float(tensor.float().norm())


class Trace:
    """Remembers for each layer of a forward pass whether its output was finite, by one number that is read only after a failure."""

    def __init__(self, named: Named) -> None:
        self._named = named
        self._sums: list[tuple[str, Any]] = []
        for name, module in named.modules:
            module.register_forward_hook(self._hook(name))

    def clear(self) -> None:
        """Forgets the last forward pass."""
        self._sums.clear()

    def _hook(self, name: str) -> Any:
        def after(module: Any, inputs: Any, output: Any) -> None:
            for number, tensor in enumerate(tensors(inputs)):
                self._sums.append((f"input {number} of {name}", _sum(tensor)))
            for tensor in tensors(output):
                self._sums.append((f"output of {name}", _sum(tensor)))

        return after

    def first(self) -> str:
        """The first tensor of this rank that is not finite: a weight, else one of the forward pass, else a gradient; "" if none."""
        for name, parameter in self._named.parameters:
            if not finite(parameter.detach()):
                return f"weight {name}"
        for name, total in self._sums:
            if not finite(total):
                return name
        for name, parameter in reversed(self._named.parameters):
            found = _reduced(parameter)
            if found is not None and not finite(found):
                return f"gradient of {name}"
        return ""


def passed_on(name: str) -> int:
    """How far from its origin NaN was seen, for a name that `Trace.first` gives: gradients are reduced over all ranks, and inputs
    come from another stage. 0 is nearest."""
    return 2 if name.startswith("gradient of ") else int(name.startswith("input "))


def tensors(value: Any) -> Iterator[Any]:
    """The floating tensors in a value of a layer."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from tensors(one)
    elif hasattr(value, "is_floating_point") and value.is_floating_point():
        yield value


def _sum(tensor: Any) -> Any:
    import torch

    with torch.no_grad():
        return tensor.detach().sum(dtype=torch.float32)


def finite(tensor: Any) -> bool:
    """True if a tensor has neither NaN nor infinity."""
    return bool(tensor.detach().isfinite().all())
