"""torch.onnx: export is not supported (use MindSpore's own exporter)."""

from __future__ import annotations

__all__ = ["ONNXProgram", "export", "is_in_onnx_export", "is_onnxrt_backend_supported"]


class ONNXProgram:
    """An exported program. There are no instances."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.onnx.ONNXProgram is not supported (docs/coverage.md)")


def export(*args, **kwargs) -> ONNXProgram:
    """Not supported: raises NotImplementedError."""
    raise NotImplementedError("torch.onnx.export is not supported (docs/coverage.md)")


def is_in_onnx_export() -> bool:
    """Return False, because nothing is being exported."""
    return False


def is_onnxrt_backend_supported() -> bool:
    """Return False."""
    return False
