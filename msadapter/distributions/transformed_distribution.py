"""Distributions of transformed values."""

from __future__ import annotations

from ..autograd.grad_mode import no_grad
from ..tensor import Size
from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import sum_rightmost

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """Values of ``base_distribution`` after ``transforms``, the first first."""

    arg_constraints: dict = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        if isinstance(transforms, Transform):
            transforms = [transforms]
        elif not isinstance(transforms, list) or not all(isinstance(t, Transform) for t in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        self.transforms = transforms
        shape = Size([*base_distribution.batch_shape, *base_distribution.event_shape])
        events = len(base_distribution.event_shape)
        whole = ComposeTransform(transforms)
        if len(shape) < whole.domain.event_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {whole.domain.event_dim}, but got {shape}."
            )
        outer = whole.forward_shape(shape)
        wide = whole.inverse_shape(outer)
        if wide != shape:
            base_distribution = base_distribution.expand(wide[: len(wide) - events])
        missing = whole.domain.event_dim - events
        if missing > 0:
            base_distribution = Independent(base_distribution, missing)
        self.base_dist = base_distribution
        grown = whole.codomain.event_dim - whole.domain.event_dim
        cut = len(outer) - max(whole.codomain.event_dim, events + grown)
        super().__init__(outer[:cut], outer[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(TransformedDistribution, _instance)
        new.transforms = self.transforms
        shape = Size([*batch_shape, *self.event_shape])
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        base = shape[: len(shape) - len(self.base_dist.event_shape)]
        new.base_dist = self.base_dist.expand(base)
        Distribution.__init__(new, Size(batch_shape), self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        missing = len(self.event_shape) - found.event_dim
        return constraints.independent(found, missing) if missing > 0 else found

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def sample(self, sample_shape=()):
        with no_grad():
            x = self.base_dist.sample(sample_shape)
            for t in self.transforms:
                x = t(x)
            return x

    def rsample(self, sample_shape=()):
        x = self.base_dist.rsample(sample_shape)
        for t in self.transforms:
            x = t(x)
        return x

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        dims, total, y = len(self.event_shape), 0.0, value
        for t in reversed(self.transforms):
            x = t.inv(y)
            dims += t.domain.event_dim - t.codomain.event_dim
            total = total - sum_rightmost(t.log_abs_det_jacobian(x, y), dims - t.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), dims - len(self.base_dist.event_shape))

    def _turned(self, value):
        """cdf values where the map falls: counted from the other end."""
        sign = 1
        for t in self.transforms:
            sign = sign * t.sign
        if isinstance(sign, int) and sign == 1:
            return value
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for t in reversed(self.transforms):
            value = t.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._turned(self.base_dist.cdf(value))

    def icdf(self, value):
        value = self.base_dist.icdf(self._turned(value))
        for t in self.transforms:
            value = t(value)
        return value
