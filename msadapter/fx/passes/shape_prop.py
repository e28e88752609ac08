"""torch.fx.passes.shape_prop: runs a graph on examples, and notes the shape and the dtype of each value."""

from __future__ import annotations

import traceback
from typing import Any, NamedTuple

from ... import channels_last, channels_last_3d, contiguous_format
from ..._errors import unsupported
from ...tensor import Size, Tensor, dtype, memory_format
from ..interpreter import Interpreter
from ..node import Node, map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known about a tensor, without its values.

    Attributes:
        is_quantized, qparams: of a quantized tensor: its scheme and its scale and zero point.
    """

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """Return what is known about a tensor."""
    formats = (contiguous_format, channels_last, channels_last_3d) if include_contiguity else ()
    found = next((f for f in formats if result.is_contiguous(memory_format=f)), None)
    qparams: dict[str, Any] = {}
    if result.is_quantized:
        qparams["qscheme"] = result.qscheme()
        qparams["scale"], qparams["zero_point"] = result.q_scale(), result.q_zero_point()
    stride = result.stride() if not result.is_sparse else ()
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, stride, found, result.is_quantized, qparams
    )


class ShapeProp(Interpreter):
    """Runs a graph on examples. Each node gets `tensor_meta` and `type` in its metadata."""

    def __init__(self, gm, fake_mode=None):
        if fake_mode is not None:
            raise unsupported("torch.fx.passes.shape_prop.ShapeProp", "fake_mode is not supported")
        super().__init__(gm)

    def run_node(self, n: Node):
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        seen = []

        def note(value):
            if not isinstance(value, Tensor):
                return value
            seen.append(value)
            return _extract_tensor_metadata(value)

        meta = map_aggregate(result, note)
        if seen:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run the graph on these examples, and return its result."""
        return super().run(*args)
