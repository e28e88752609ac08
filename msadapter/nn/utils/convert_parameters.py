"""Conversion between parameters and one flat vector."""

from ... import ops
from ...tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _checked_device(tensor, device):
    """Return the device of ``tensor``.

    TypeError if it differs from ``device``, that of earlier parameters.
    """
    if device is not None and tensor.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return tensor.device


def parameters_to_vector(parameters):
    """Return all parameters, flattened and concatenated into one vector."""
    device, parts = None, []
    for param in parameters:
        device = _checked_device(param, device)
        parts.append(param.view(-1))
    return ops.cat(parts)


def vector_to_parameters(vec, parameters):
    """Assign consecutive pieces of the vector ``vec`` to the data of ``parameters``."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device, start = None, 0
    for param in parameters:
        device = _checked_device(param, device)
        n = param.numel()
        param.data = vec[start : start + n].view_as(param).data
        start += n
