"""torch.onnx: export is not supported (use MindSpore's own exporter)."""

from __future__ import annotations

import re

from .._errors import unsupported

__all__ = [
    "ONNXProgram",
    "OnnxExporterError",
    "export",
    "is_in_onnx_export",
    "is_onnxrt_backend_supported",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]

# (operator, opset version) -> the function that would export it
_symbolic: dict[tuple[str, int], object] = {}


class OnnxExporterError(RuntimeError):
    """Something about the export is wrong."""


class ONNXProgram:
    """An exported program. There are no instances."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.onnx.ONNXProgram")


def export(*args, **kwargs) -> ONNXProgram:
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.onnx.export")


def is_in_onnx_export() -> bool:
    """Return False, because nothing is being exported."""
    return False


def is_onnxrt_backend_supported() -> bool:
    """Return False."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn, opset_version: int) -> None:
    """Register the function that exports an operator 'ns::name' from an opset version on. Nothing calls it here."""
    _symbolic[_checked_name(symbolic_name), opset_version] = symbolic_fn


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Undo register_custom_op_symbolic. A name that was not registered is accepted, as in PyTorch."""
    _symbolic.pop((_checked_name(symbolic_name), opset_version), None)


def _checked_name(name: str) -> str:
    name = f"aten{name}" if name.startswith("::") else name
    if not re.fullmatch(r"[a-zA-Z0-9-_]+::[a-zA-Z-_]+[a-zA-Z0-9-_]*", name):
        raise OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format domain::name, and should start "
            "with a letter and contain only alphanumeric characters"
        )
    return name
