"""torch_npu.npu._recovery: marks of tensors whose memory a device has lost.

On a CPU no memory is lost in this way, so every tensor counts as safe.
"""

from msadapter._host import accelerator

from .._errors import unsupported

__all__ = ["check_npu_tensor_is_safe", "mark_all_npu_tensor_unsafe", "update_npu_tensor_to_safe"]


def _on_host_only(name: str) -> None:
    if not accelerator.on_host():
        raise NotImplementedError(
            f"torch.npu._recovery.{name} is not supported on a device (docs/coverage.md)"
        )


def _require_tensor(tensor) -> None:
    if not hasattr(tensor, "untyped_storage"):
        raise RuntimeError(f"param type should be Tensor, could not be {type(tensor)}")


def check_npu_tensor_is_safe(tensor) -> bool:
    """Return whether the tensor's memory is whole."""
    _on_host_only("check_npu_tensor_is_safe")
    _require_tensor(tensor)
    return True


def update_npu_tensor_to_safe(tensor) -> None:
    """Say that the tensor has been written again."""
    _on_host_only("update_npu_tensor_to_safe")
    _require_tensor(tensor)


def mark_all_npu_tensor_unsafe(device: int) -> None:
    """Not supported: operators do not look at such marks."""
    raise unsupported("torch.npu._recovery.mark_all_npu_tensor_unsafe")
