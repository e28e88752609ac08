"""torch.onnx is refused: export with MindSpore's own exporter. Its questions are answered."""

from __future__ import annotations

__all__ = ["ONNXProgram", "export", "is_in_onnx_export", "is_onnxrt_backend_supported"]


class ONNXProgram:
    """An exported program; none can be made here."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.onnx.ONNXProgram is not supported (docs/coverage.md)")


def export(*args, **kwargs) -> ONNXProgram:
    """Refused."""
    raise NotImplementedError("torch.onnx.export is not supported (docs/coverage.md)")


def is_in_onnx_export() -> bool:
    """False: nothing is ever being exported."""
    return False


def is_onnxrt_backend_supported() -> bool:
    """False."""
    return False
