"""Cholesky factors of random correlation matrices."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..tensor import Size
from . import constraints
from ._limits import tiny_of
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors of ``dim`` x ``dim`` correlation matrices with density det(M)^(concentration - 1)."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = ops.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        offset = ops.cat([offset.new_zeros([1]), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(self.concentration.shape, Size((dim, dim)), validate_args)

    def _expand_rest(self, new, batch_shape) -> None:
        new.dim = self.dim
        new._beta = self._beta.expand(Size([*batch_shape, self.dim]))

    def sample(self, sample_shape=()):
        with no_grad():
            # Onion method: a row is a random direction on the sphere, of a random length.
            length = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = list(self._extended_shape(sample_shape))
            kind = {"dtype": length.dtype, "device": length.device}
            direction = ops.randn(shape, **kind).tril(-1)
            direction = direction / direction.norm(dim=-1, keepdim=True)
            direction[..., 0, :].fill_(0.0)
            w = ops.sqrt(length) * direction
            rest = ops.clamp(1 - (w**2).sum(-1), min=tiny_of(w.dtype)).sqrt()
            return w + ops.diag_embed(rest)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = ops.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        density = (order * diagonal.log()).sum(-1)
        less = self.dim - 1
        alpha = self.concentration + 0.5 * less
        normalizer = (
            0.5 * less * math.log(math.pi) + ops.mvlgamma(alpha - 0.5, less) - ops.lgamma(alpha) * less
        )
        return density - normalizer
