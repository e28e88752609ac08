"""Initialisers. Each one fills a tensor in place, outside of autograd, and returns it.

The random initialisers draw the same numbers from the generator as PyTorch, in the same order.
"""

from __future__ import annotations

import math
import warnings

from .. import ops
from ..autograd import no_grad
from ..tensor._tensor import tensor as make_tensor

_UNIT_GAIN = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def calculate_gain(nonlinearity, param=None):
    """Return the gain that keeps the variance of activations constant through ``nonlinearity``.

    ``param`` is the negative slope of leaky_relu (default 0.01).
    """
    if nonlinearity in _UNIT_GAIN:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _no_grad_uniform_(tensor, a, b, generator=None):
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor, mean, std, generator=None):
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_fill_(tensor, val):
    with no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    with no_grad():
        return tensor.zero_()


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    """Fill ``tensor`` with a normal distribution cut to [a, b], by rejection sampling.

    The generator is used exactly as PyTorch uses it, so that equal seeds give equal values.
    """
    if tensor.is_meta:
        return tensor

    def cdf(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values "
            "may be incorrect.",
            stacklevel=2,
        )
    with no_grad():
        if cdf((b - mean) / std) - cdf((a - mean) / std) > 0.3:
            _reject_from_normal(tensor, mean, std, a, b, generator)
        else:
            _reject_from_uniform(tensor, mean, std, a, b, generator)
    return tensor


def _reject_from_normal(tensor, mean, std, a, b, generator):
    """Draw normal values for the whole tensor again and again, until every element has had one inside [a, b]."""
    # The bounds are rounded to the tensor's dtype, because the values are compared in this dtype.
    low, high = make_tensor([a, b], dtype=tensor.dtype, device="cpu").tolist()
    result = tensor.normal_(mean, std, generator=generator)
    outside = (result < low) | (result > high)
    while bool(outside.any()):
        fresh = ops.empty_like(result).normal_(mean, std, generator=generator)
        result = ops.where(outside, fresh, result)
        outside = (result < low) | (result > high)
    if result is not tensor:
        tensor.copy_(result)


def _reject_from_uniform(tensor, mean, std, a, b, generator):
    """Draw uniform values in [a, b] and accept each with the probability density / highest density."""
    peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2

    def refused(candidates):
        log_density = candidates.sub(mean).div_(std).pow_(2).mul_(-0.5).sub_(peak)
        return ops.empty_like(tensor).uniform_(generator=generator).log_().gt(log_density)

    tensor.uniform_(a, b, generator=generator)
    pending = refused(tensor)
    result = tensor
    while bool(pending.any()):
        candidates = ops.empty_like(tensor).uniform_(a, b, generator=generator)
        result = ops.where(pending, candidates, result)
        pending = pending & refused(candidates)
    if result is not tensor:
        tensor.copy_(result)


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Fill the tensor with uniform values from [a, b)."""
    return _no_grad_uniform_(tensor, a, b, generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Fill the tensor with normal values."""
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill the tensor with normal values, restricted to the interval [a, b]."""
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=generator)


def constant_(tensor, val):
    """Fill the tensor with ``val``."""
    return _no_grad_fill_(tensor, val)


def ones_(tensor):
    """Fill the tensor with ones."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor):
    """Fill the tensor with zeros."""
    return _no_grad_zero_(tensor)


def eye_(tensor):
    """Fill a 2-dimensional tensor with the identity matrix. Other shapes raise ValueError."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with no_grad():
        ops.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor, groups=1):
    """Fill the weight of a convolution so that the convolution returns its input.

    The weight has 3, 4 or 5 dimensions. With ``groups`` > 1 each group of channels is preserved on its own.
    """
    dimensions = tensor.ndimension()
    if dimensions not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    centre = tuple(n // 2 for n in sizes[2:])
    with no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *centre)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor):
    """Return (fan_in, fan_out) of a weight: the number of features times the size of the receptive field."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    shape = tensor.shape
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    valid = ["fan_in", "fan_out"]
    if mode not in valid:
        raise ValueError(f"Mode {mode} not supported, please use one of {valid}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Fill with uniform values in +-gain * sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Fill with normal values of standard deviation gain * sqrt(2 / (fan_in + fan_out)) (Glorot and Bengio)."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return _no_grad_normal_(tensor, 0.0, std, generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill with uniform values in +-gain * sqrt(3 / fan) (He et al.). ``mode`` selects fan_in or fan_out."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    with no_grad():
        return tensor.uniform_(-bound, bound, generator=generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Fill with normal values of standard deviation gain / sqrt(fan) (He et al.).

    ``mode`` selects the fan.
    """
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    with no_grad():
        return tensor.normal_(0, std, generator=generator)


def orthogonal_(tensor, gain=1, generator=None):
    """Fill with a (semi-)orthogonal matrix. The dimensions after the first count as one dimension."""
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        flat.t_()
    q, r = ops.linalg_qr(flat)
    # The signs of R's diagonal are arbitrary. Fixing them makes the distribution of Q uniform.
    q *= ops.diag(r, 0).sign()
    if rows < cols:
        q.t_()
    with no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Fill a 2-dimensional tensor with normal values, and set a fraction ``sparsity`` of each column to zero."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            order = ops.randperm(rows)
            tensor[order[:zeros], col] = 0
    return tensor


def _deprecated_alias(function):
    new_name = function.__name__
    old_name = new_name[:-1]

    def alias(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    alias.__name__ = old_name
    alias.__doc__ = f"Old name of :func:`{new_name}`."
    return alias


uniform = _deprecated_alias(uniform_)
normal = _deprecated_alias(normal_)
constant = _deprecated_alias(constant_)
eye = _deprecated_alias(eye_)
dirac = _deprecated_alias(dirac_)
xavier_uniform = _deprecated_alias(xavier_uniform_)
xavier_normal = _deprecated_alias(xavier_normal_)
kaiming_uniform = _deprecated_alias(kaiming_uniform_)
kaiming_normal = _deprecated_alias(kaiming_normal_)
orthogonal = _deprecated_alias(orthogonal_)
sparse = _deprecated_alias(sparse_)
