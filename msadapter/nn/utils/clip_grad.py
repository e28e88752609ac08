"""Clipping of gradients by norm or by value."""

import warnings

from ... import ops
from ...autograd import no_grad
from ...tensor import Tensor
from ...tensor._tensor import tensor

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]


def _listed(parameters):
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def _together(tensors) -> bool:
    """Return whether one kernel call can process all tensors.

    They must be plain tensors with the same floating point dtype on the same device.
    """
    first = tensors[0]
    dtype, device = first.dtype, first.device
    return dtype.is_floating_point and all(
        type(t) is Tensor and t.dtype is dtype and t.device == device for t in tensors
    )


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Return the norm of all ``tensors`` together, as if they were one vector (a 0-dimensional tensor).

    An empty list gives zero. With ``error_if_nonfinite``, a norm of nan or inf raises RuntimeError.
    ``foreach`` has no effect.
    """
    tensors = _listed(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return tensor(0.0)
    with no_grad():
        device = tensors[0].device
        if _together(tensors):
            norms = ops._norms(tensors, norm_type)
        else:
            each = [ops.linalg_vector_norm(t, norm_type).to(device) for t in tensors]
            spread = [hasattr(norm, "full_tensor") for norm in each]
            if any(spread) and not all(spread):  # some are DTensors: their partial norms are combined first
                each = [norm.full_tensor() if own else norm for norm, own in zip(each, spread, strict=True)]
            norms = ops.stack(each)
        total = ops.linalg_vector_norm(norms, norm_type)
        if error_if_nonfinite and bool(ops.logical_or(total.isnan(), total.isinf())):
            raise RuntimeError(
                f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, "
                "so it cannot be clipped. To disable this error and scale the gradients by the "
                "non-finite norm anyway, set `error_if_nonfinite=False`"
            )
    return total


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scale the gradients in place by max_norm / total_norm, if this factor is below one."""
    grads = [p.grad for p in _listed(parameters) if p.grad is not None]
    if not grads:
        return
    with no_grad():
        # The product is computed even if nothing is clipped, because a test would have to wait for the
        # device.
        factor = ops.clamp(float(max_norm) / (total_norm + 1e-6), max=1.0)
        if _together([*grads, factor]):
            ops._scale_all_(grads, factor)
        else:
            for grad in grads:
                grad.mul_(factor.to(grad.device))


def clip_grad_norm_(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Scale the gradients of ``parameters`` in place so that their total norm is at most ``max_norm``.

    Returns the total norm before clipping, a 0-dimensional tensor.
    """
    if not isinstance(parameters, Tensor):
        single_use = not hasattr(parameters, "__len__")
        parameters = list(parameters)
        if single_use and not parameters:
            warnings.warn(
                "`parameters` is an empty generator, no gradient clipping will occur.", stacklevel=2
            )
    parameters = _listed(parameters)
    total = get_total_norm(
        [p.grad for p in parameters if p.grad is not None], norm_type, error_if_nonfinite, foreach
    )
    clip_grads_with_norm_(parameters, max_norm, total, foreach)
    return total


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """Deprecated name of :func:`clip_grad_norm_`."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Clamp the gradients of ``parameters`` to [-clip_value, clip_value], in place."""
    limit = float(clip_value)
    with no_grad():
        for param in _listed(parameters):
            if param.grad is not None:
                param.grad.clamp_(min=-limit, max=limit)
