"""Transforms of numbers."""

from __future__ import annotations

import math

import msadapter

from .. import ops
from ..nn import functional as F
from ..tensor import Tensor
from . import constraints
from ._limits import eps_of, tiny_of
from ._transform_base import Transform, _raised


class _Monotonic(Transform):
    """A bijection of numbers that grows."""

    bijective = True
    domain = constraints.real
    sign = 1

    def __eq__(self, other):
        return isinstance(other, type(self))

    __hash__ = Transform.__hash__


class ExpTransform(_Monotonic):
    """y = exp(x)."""

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(_Monotonic):
    """y = x ** exponent, of positive numbers."""

    domain = codomain = constraints.positive

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.exponent = exponent

    @property
    def sign(self):
        return self.exponent.sign()

    def with_cache(self, cache_size=1):
        return (
            self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size=cache_size)
        )

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and bool(ops.all(ops.eq(self.exponent, other.exponent)))

    __hash__ = Transform.__hash__

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape):
        return _broadcast(shape, getattr(self.exponent, "shape", ()))

    inverse_shape = forward_shape


def _broadcast(*shapes):
    return msadapter.broadcast_shapes(*shapes)


class SigmoidTransform(_Monotonic):
    """y = 1 / (1 + exp(-x)), kept away from 0 and 1 by the type's precision."""

    codomain = constraints.unit_interval

    def _call(self, x):
        return ops.clamp(ops.sigmoid(x), min=tiny_of(x.dtype), max=1.0 - eps_of(x.dtype))

    def _inverse(self, y):
        y = y.clamp(min=tiny_of(y.dtype), max=1.0 - eps_of(y.dtype))
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Monotonic):
    """y = log(1 + exp(x)), and x above 20."""

    codomain = constraints.positive

    def _call(self, x):
        return F.softplus(x)

    def _inverse(self, y):
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x, y):
        return -F.softplus(-x)


class TanhTransform(_Monotonic):
    """y = tanh(x)."""

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return ops.atanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(Transform):
    """y = |x|; its inverse takes the positive root."""

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other):
        return isinstance(other, AbsTransform)

    __hash__ = Transform.__hash__

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """y = loc + scale * x, events of ``event_dim`` dimensions."""

    bijective = True

    def __init__(self, loc, scale, event_dim=0, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return _raised(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return _raised(constraints.real, self.event_dim)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size=cache_size)

    def __eq__(self, other):
        return (
            isinstance(other, AffineTransform)
            and _same(self.loc, other.loc)
            and _same(self.scale, other.scale)
        )

    __hash__ = Transform.__hash__

    @property
    def sign(self):
        return self.scale.sign() if isinstance(self.scale, Tensor) else (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, Tensor):
            size = self.scale.abs().log()
        else:
            size = ops.full_like(x, math.log(abs(self.scale)))
        shape = x.shape
        if self.event_dim:
            size = size.reshape([*size.shape[: max(size.ndim - self.event_dim, 0)], -1]).sum(-1)
            shape = shape[: len(shape) - self.event_dim]
        return size.expand(list(shape))

    def forward_shape(self, shape):
        return _broadcast(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


def _same(a, b) -> bool:
    if not isinstance(a, Tensor) and not isinstance(b, Tensor):
        return a == b
    return bool((a == b).all())


def _share(x):
    return ops.clamp(ops.sigmoid(x), min=tiny_of(x.dtype), max=1.0 - eps_of(x.dtype))


class CumulativeDistributionTransform(Transform):
    """Values of a distribution to the unit interval by its ``cdf``."""

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size=0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)

    def with_cache(self, cache_size=1):
        if self._cache_size == cache_size:
            return self
        return CumulativeDistributionTransform(self.distribution, cache_size=cache_size)
