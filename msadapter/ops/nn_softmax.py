"""Activations that have no kernel of their own, and in-place forms."""

from __future__ import annotations

from ._declare import composite, t
from ._functional import functional
from .nn_norm import default_dim


@composite(
    "nn.functional.softmin(Tensor input, any dim=None, int _stacklevel=3, any dtype=None) -> Tensor",
    forms="f",
)
def softmin(input, dim, _stacklevel, dtype):
    """softmax of -x along ``dim``."""
    return functional.softmax(
        -input, default_dim("softmin", input, _stacklevel) if dim is None else dim, dtype=dtype
    )


@composite(
    "nn.functional.gumbel_softmax(Tensor logits, float tau=1, any hard=False, float eps=1e-10, "
    "any dim=-1) -> Tensor",
    forms="f",
    random="other",
)
def gumbel_softmax(logits, tau, hard, eps, dim):
    """Return a sample of the Gumbel-softmax distribution.

    ``hard`` gives one-hot values with soft gradients.
    """
    noise = -t.empty_like(logits.detach()).exponential_().log()
    soft = functional.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = t.zeros_like(logits).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


@composite(
    "nn.functional.rrelu_(Tensor input, float lower=0.125, float upper=0.3333333333333333, "
    "bool training=False) -> Tensor",
    forms="f",
)
def rrelu_(input, lower, upper, training):
    """In-place randomized leaky ReLU."""
    return functional.rrelu(input, lower, upper, training, inplace=True)
