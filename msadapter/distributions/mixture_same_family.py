"""Mixtures of distributions of one class."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..tensor import Size
from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """The components are the last batch dimension of ``component_distribution``, chosen by a Categorical."""

    arg_constraints: dict = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical"
            )
        if not isinstance(component_distribution, Distribution):
            raise ValueError(
                "The Component distribution need to be an instance of torch.distributions.Distribution"
            )
        outer, inner = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for a, b in zip(reversed(outer), reversed(inner), strict=False):
            if a != 1 and b != 1 and a != b:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({outer}) is not compatible with "
                    f"`component_distribution.batch_shape`({inner})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._mixture_distribution, self._component_distribution = (
            mixture_distribution,
            component_distribution,
        )
        self._num_component = components
        event = component_distribution.event_shape
        self._event_ndims = len(event)
        super().__init__(inner, event, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand(
            Size([*batch_shape, self._num_component])
        )
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    mixture_distribution = property(lambda self: self._mixture_distribution)
    component_distribution = property(lambda self: self._component_distribution)

    def _weights(self):
        return self._beside(self._mixture_distribution.probs)

    def _beside(self, x):
        """With dims for an event at the right."""
        return x.reshape([*x.shape, *[1] * self._event_ndims])

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self):
        return (self._weights() * self._component_distribution.mean).sum(-1 - self._event_ndims)

    @property
    def variance(self):
        weights, dim = self._weights(), -1 - self._event_ndims
        within = (weights * self._component_distribution.variance).sum(dim)
        distance = self._component_distribution.mean - self._pad(self.mean)
        return within + (weights * distance.pow(2.0)).sum(dim)

    def cdf(self, x):
        each = self._component_distribution.cdf(self._pad(x))
        return (each * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        each = self._component_distribution.log_prob(self._pad(x))
        return ops.logsumexp(each + ops.log_softmax(self._mixture_distribution.logits, -1), -1)

    def sample(self, sample_shape=()):
        with no_grad():
            sample_shape = Size(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            values = self._component_distribution.sample(sample_shape)
            shape = [*chosen.shape, *[1] * (self._event_ndims + 1)]
            chosen = chosen.reshape(shape).repeat([1] * len(chosen.shape) + [1] + list(self.event_shape))
            return ops.gather(values, dim, chosen).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
