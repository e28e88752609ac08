"""The von Mises distribution."""

from __future__ import annotations

import math

from .. import ops
from .._values.dtype import bool as bool_
from .._values.dtype import float64
from ..autograd.grad_mode import no_grad
from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]

# Abramowitz and Stegun 9.8.1 - 9.8.4: modified Bessel functions below and above 3.75, ascending powers.
_SMALL = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.360768e-1, 0.45813e-2),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.2658733e-1, 0.301532e-2, 0.32411e-3),
)
_LARGE = (
    (0.39894228, 0.1328592e-1, 0.225319e-2, -0.157565e-2, 0.916281e-2, -0.2057706e-1, 0.2635537e-1, -0.1647633e-1,
     0.392377e-2),
    (0.39894228, -0.3988024e-1, -0.362018e-2, 0.163801e-2, -0.1031555e-1, 0.2282967e-1, -0.2895312e-1, 0.1787654e-1,
     -0.420059e-2),
)  # fmt: skip


def _polynomial(y, coefficients):
    result = ops.full_like(y, coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = c + y * result
    return result


def _log_bessel(x, order: int):
    """Logarithm of the modified Bessel function of order 0 or 1 at x > 0."""
    y = (x / 3.75) ** 2
    small = _polynomial(y, _SMALL[order])
    small = (x.abs() * small if order else small).log()
    large = x - 0.5 * x.log() + _polynomial(3.75 / x, _LARGE[order]).log()
    return ops.where(x < 3.75, small, large)


class VonMises(Distribution):
    """Angles around ``loc`` with ``concentration``."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, (), validate_args)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        found = self.concentration * ops.cos(value - self.loc)
        return found - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _loc(self):
        return self.loc.to(float64)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(float64)

    @lazy_property
    def _proposal_r(self):
        """Parameter of the wrapped Cauchy that Best and Fisher (1979) propose from."""
        k = self._concentration
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return ops.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape=()):
        shape = list(self._extended_shape(sample_shape))
        with no_grad():
            return self._rejection(self.loc.new_empty(shape, dtype=float64)).to(self.loc.dtype)

    def _rejection(self, x):
        r, k = self._proposal_r, self._concentration
        done = ops.zeros(x.shape, dtype=bool_, device=self.loc.device)
        while not bool(done.all()):
            u1, u2, u3 = ops.rand([3, *x.shape], dtype=float64, device=self.loc.device).unbind()
            z = ops.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = k * (r - f)
            accepted = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if bool(accepted.any()):
                x = ops.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accepted
        return (x + math.pi + self._loc) % (2 * math.pi) - math.pi

    def _expand_rest(self, new, batch_shape) -> None:
        for name in ("_loc", "_concentration", "_proposal_r"):
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(list(batch_shape))

    mean = mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self):
        """Circular variance."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()
