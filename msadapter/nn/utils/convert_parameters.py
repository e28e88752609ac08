"""Parameters as one vector and back."""

from ... import ops
from ...tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _checked_device(tensor, device):
    """The device of all parameters so far; TypeError when one is elsewhere."""
    if device is not None and tensor.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return tensor.device


def parameters_to_vector(parameters):
    """All parameters flattened into one vector."""
    device, parts = None, []
    for param in parameters:
        device = _checked_device(param, device)
        parts.append(param.view(-1))
    return ops.cat(parts)


def vector_to_parameters(vec, parameters):
    """Make consecutive pieces of ``vec`` the data of ``parameters``."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device, start = None, 0
    for param in parameters:
        device = _checked_device(param, device)
        n = param.numel()
        param.data = vec[start : start + n].view_as(param).data
        start += n
