"""What a message carries: an object, pickled, and the tensors in it, which travel beside it as their bytes."""

from __future__ import annotations

import io
import math
import pickle

from ... import ops
from ..._errors import unsupported
from ..._values.dtype import ALL
from ..._values.layout import LAYOUTS
from ...serialization import load as _load
from ...serialization import save as _save
from ...tensor import Tensor
from ...tensor._construct import frombuffer
from ..autograd import _contexts

_SMALL = 8 << 10  # bytes
_STRIDED, _BYTE = LAYOUTS["strided"], ALL["uint8"]


class _Pickler(pickle.Pickler):
    """Writes places in a table for tensors, and what the receiver needs to take part in counting for RRefs."""

    def __init__(self, stream, tensors: list, references, reducers: dict):
        super().__init__(stream, protocol=pickle.HIGHEST_PROTOCOL)
        self._tensors, self._references, self._reducers = tensors, references, reducers

    def persistent_id(self, obj):
        if type(obj) is Tensor:  # a subclass decides by itself how it is pickled
            self._tensors.append(obj)
            return "tensor", len(self._tensors) - 1
        if isinstance(obj, Tensor) and obj.layout is not _STRIDED and obj.requires_grad:
            _refuse_in_context()
        sent = self._references.sent(obj)
        return None if sent is None else ("rref", sent)

    def reducer_override(self, obj):
        reducer = self._reducers.get(type(obj))
        return NotImplemented if reducer is None else reducer(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, stream, tensors: list, references):
        super().__init__(stream)
        self._tensors, self._references = tensors, references

    def persistent_load(self, pid):
        kind, value = pid
        return self._tensors[value] if kind == "tensor" else self._references.received(value)


def _refuse_in_context() -> None:
    """Raise NotImplementedError within a context, where the gradient of a sparse tensor would be lost."""
    if _contexts.contexts().current() is not None:
        raise unsupported(
            "torch.distributed.autograd.context",
            "a sparse tensor that requires grad cannot be sent to another worker in it; send a dense one",
        )


def packed(obj, references, reducers: dict | None = None) -> tuple[bytes, list[Tensor]]:
    """Return the pickled object and the tensors in it.

    ``references.sent(obj)`` returns what is sent for an RRef, and None for everything else. ``reducers`` are functions as
    pickle's ``reducer_override``, by class.
    """
    stream, tensors = io.BytesIO(), []
    _Pickler(stream, tensors, references, reducers or {}).dump(obj)
    return stream.getvalue(), tensors


def unpacked(data, tensors: list[Tensor], references):
    """Return the object of ``packed``. ``references.received(sent)`` returns the RRef."""
    return _Unpickler(io.BytesIO(data), tensors, references).load()


# -- tensors -----------------------------------------------------------------------------------------------
def encoded(tensor: Tensor, device: str | None) -> tuple[tuple, object]:
    """Return a description of a tensor, which can be pickled, and an object with its bytes. ``device`` is where it goes."""
    values, needs = tensor.detach(), tensor.requires_grad
    if tensor.device.type != "cpu":
        values = values.cpu()
    plain = values.layout is _STRIDED and not values.dtype.is_complex and not values.is_quantized
    if not plain or values.is_neg() or values.is_nested:
        stream = io.BytesIO()
        _save(values, stream)
        return ("saved", needs, device), stream.getbuffer()
    name = str(values.dtype).removeprefix("torch.")
    shape, strides = tuple(values.shape), tuple(values.stride())
    if not values.is_contiguous():
        order, span = _dense_order(shape, strides), _span(shape, strides)
        if order is not None:
            values = values.permute(order)
        elif 0 not in strides and _worth_keeping(span, values):
            values = values.as_strided((span,), (1,))
        else:
            values, strides = values.contiguous(), None
    else:
        strides = None
    data = values.reshape(-1).view(_BYTE).numpy() if values.numel() else b""
    return (name, shape, strides, needs, device), data


def _worth_keeping(span: int, values: Tensor) -> bool:
    """Return whether the elements between those of a view are sent too, which keeps its strides. PyTorch has this rule."""
    size = values.element_size()
    return span * size < _SMALL or span < 2 * values.numel()


def _span(shape: tuple, strides: tuple) -> int:
    """Return how many elements lie between the first and the last one, both included."""
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def _dense_order(shape: tuple, strides: tuple) -> list[int] | None:
    """Return the order of dims in which the elements lie one after the other, or None if they do not."""
    order = sorted(range(len(shape)), key=lambda dim: (-strides[dim], dim))
    expected = 1
    for dim in reversed(order):
        if shape[dim] != 1 and strides[dim] != expected:
            return None
        expected *= shape[dim]
    return order


def decoded(description: tuple, data: bytearray) -> Tensor:
    """Return the tensor. It owns ``data``."""
    if description[0] == "saved":
        _, needs, device = description
        values = _load(io.BytesIO(data), weights_only=True)
    else:
        name, shape, strides, needs, device = description
        values = _from_bytes(data, ALL[name], shape, strides)
    if device is not None:
        values = values.to(device)
    return values.requires_grad_() if needs else values


def _from_bytes(data: bytearray, dtype, shape: tuple, strides: tuple | None) -> Tensor:
    if not math.prod(shape):
        return (
            ops.empty(shape, dtype=dtype)
            if strides is None
            else ops.empty_strided(shape, strides, dtype=dtype)
        )
    flat = frombuffer(data, dtype=_BYTE).view(dtype)
    return flat.reshape(shape) if strides is None else flat.as_strided(shape, strides)
