"""torch.utils._foreach_utils: tensors in groups of one device and dtype, for functions that take lists."""

from __future__ import annotations

from ..autograd.grad_mode import no_grad
from ..tensor import Tensor, device

_foreach_supported_types = [Tensor]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """Return the types of the devices on which the forms of optimizers that take lists run."""
    return ["cuda", "xpu", "mtia", "npu"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """Return the types of the devices on which the fused forms of optimizers run."""
    return ["mps", "cuda", "xpu", "hpu", "cpu", "mtia", "npu"]


@no_grad()
def _group_tensors_by_device_and_dtype(tensorlistlist: list[list], with_indices: bool = False) -> dict:
    """Group the tensors of several lists by device and dtype of the first list's tensors.

    Args:
        tensorlistlist: lists of equal length. A list may be empty, and all but the first may contain None.
        with_indices: return the positions of the tensors too.

    Returns:
        (device, dtype) -> (lists of tensors, positions). The positions are empty without ``with_indices``.

    Raises:
        RuntimeError: the lists have different lengths.
    """
    first = tensorlistlist[0]
    if any(one and len(one) != len(first) for one in tensorlistlist):
        raise RuntimeError("all lists of tensors must have the length of the first one, or be empty")
    found: dict = {}
    for position, tensor in enumerate(first):
        groups, positions = found.setdefault(
            (tensor.device, tensor.dtype), ([[] for _ in tensorlistlist], [])
        )
        for group, one in zip(groups, tensorlistlist, strict=True):
            if one:
                group.append(one[position])
        if with_indices:
            positions.append(position)
    return found


def _device_has_foreach_support(device: device) -> bool:
    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu")


def _has_foreach_support(tensors: list, device: device) -> bool:
    """Return whether functions that take lists may be called with these tensors of a device."""
    return _device_has_foreach_support(device) and all(
        t is None or type(t) in _foreach_supported_types for t in tensors
    )
