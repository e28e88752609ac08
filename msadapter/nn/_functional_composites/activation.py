"""Activations without a kernel of their own, and the in-place forms."""

from ... import ops
from ..._values.dtype import float64
from ...autograd import no_grad
from ._table import table

__all__ = [
    "celu_",
    "elu_",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardtanh_",
    "leaky_relu_",
    "prelu",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu_",
    "sigmoid",
    "softmin",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold_",
]


def sigmoid(input):
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def tanh(input):
    """Hyperbolic tangent."""
    return input.tanh()


def tanhshrink(input):
    """x - tanh(x)."""
    return input - input.tanh()


def softsign(input):
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -x along ``dim``."""
    return table.softmax(-input, dim, _stacklevel + 1, dtype)


def hardshrink(input, lambd=0.5):
    """x where |x| > lambd, else 0."""
    # NaN compares false: written so that it stays.
    inside = (input >= -lambd) & (input <= lambd)
    return ops.where(inside, ops.zeros_like(input), input)


def softshrink(input, lambd=0.5):
    """x - lambd above lambd, x + lambd below -lambd, else 0; lambd must not be negative."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    moved = ops.where(input > lambd, input - lambd, input + lambd)
    inside = (input >= -lambd) & (input <= lambd)
    return ops.where(inside, input * 0, moved)


def glu(input, dim=-1):
    """First half times sigmoid of the second half, along ``dim``."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % input.dim()} is size {size}"
        )
    first, second = input.chunk(2, dim)
    return first * ops.sigmoid(second)


def prelu(input, weight):
    """x for x > 0, else weight * x; one weight, or one a channel (dimension 1)."""
    if weight.dim() > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.dim()}"
        )
    if weight.dim() == 1 and weight.numel() != 1:
        if input.dim() == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.size(1) if input.dim() > 1 else 1
        if channels != weight.numel():
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.numel()} and channel size = {channels}."
            )
    if input.dim() > 1:
        weight = weight.reshape([1, -1] + [1] * (input.dim() - 2))
    elif weight.dim() == 1 and input.dim() == 0:
        weight = weight.reshape([])
    return ops.where(input > 0, input, weight * input)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """Leaky ReLU; in training each x <= 0 has its own slope drawn from [lower, upper]."""
    if not training:
        return table.leaky_relu(input, (lower + upper) / 2, inplace)
    with no_grad():
        # Slopes are drawn for the elements that need one, in memory order, in double precision.
        negative = (input <= 0).reshape(-1)
        count = int(negative.sum())
        drawn = ops.empty(count, dtype=float64, device=input.device).uniform_(lower, upper)
        slope = ops.ones(input.numel(), dtype=input.dtype, device=input.device)
        slope[negative] = drawn.to(input.dtype)
        slope = slope.reshape(input.shape)
    return input.mul_(slope) if inplace else input * slope


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; ``hard`` gives one-hot values with soft gradients."""
    noise = -ops.empty_like(logits.detach()).exponential_().log()
    soft = table.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = ops.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def relu_(input):
    """In-place ReLU."""
    return table.relu(input, inplace=True)


def threshold_(input, threshold, value):
    """In-place threshold."""
    return table.threshold(input, threshold, value, inplace=True)


def hardtanh_(input, min_val=-1.0, max_val=1.0):
    """In-place hardtanh."""
    return table.hardtanh(input, min_val, max_val, inplace=True)


def elu_(input, alpha=1.0):
    """In-place ELU."""
    return table.elu(input, alpha, inplace=True)


def selu_(input):
    """In-place SELU."""
    return table.selu(input, inplace=True)


def celu_(input, alpha=1.0):
    """In-place CELU."""
    return table.celu(input, alpha, inplace=True)


def leaky_relu_(input, negative_slope=0.01):
    """In-place leaky ReLU."""
    return table.leaky_relu(input, negative_slope, inplace=True)


def rrelu_(input, lower=1.0 / 8, upper=1.0 / 3, training=False):
    """In-place randomized leaky ReLU."""
    return rrelu(input, lower, upper, training, inplace=True)
