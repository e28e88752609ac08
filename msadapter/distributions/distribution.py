"""The base class of distributions."""

from __future__ import annotations

import warnings

from .. import ops
from ..autograd.grad_mode import no_grad
from ..tensor import Size, Tensor
from . import constraints
from .utils import lazy_property

__all__ = ["Distribution"]


def _text_of(tensor) -> str:
    return f"{tensor}"


class Distribution:
    """Probability distributions: ``batch_shape`` of them at once, each over events of ``event_shape``.

    A class names its parameters and their sets in ``arg_constraints`` and the set of its values in ``support``.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check their arguments if validate_args is not given."""
        if value not in (True, False):
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape=(), event_shape=(), validate_args=None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            known = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=4,
            )
            return
        for name, constraint in known.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(_static(type(self), name), lazy_property):
                continue  # an alternative parametrization, which the caller did not use
            value = getattr(self, name)
            if not bool(ops.all(constraint.check(value))):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    "distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{_text_of(value)}"
                )

    def expand(self, batch_shape, _instance=None):
        """Return this distribution with its batch expanded to ``batch_shape``."""
        batch_shape = Size(batch_shape)
        new = self._get_checked_instance(self._class_here(), _instance)
        for name, constraint in self._parameters_here().items():
            if name in self.__dict__:
                value = self.__dict__[name]
                events = value.shape[value.ndim - constraint.event_dim :]
                new.__dict__[name] = value.expand([*batch_shape, *events])
        self._expand_rest(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _class_here(self) -> type:
        """Return the class of this package of which this one is or derives."""
        return next(cls for cls in type(self).__mro__ if cls.__module__.startswith(f"{__package__}."))

    def _parameters_here(self) -> dict:
        """Return the constraints of the parameters of that class.

        A class of the user may name other parameters in ``arg_constraints``, and expands them itself, as in PyTorch.
        """
        known = _static(self._class_here(), "arg_constraints")
        return known.fget(self) if isinstance(known, property) else known

    def _expand_rest(self, new, batch_shape) -> None:
        """Expand the attributes that are not parameters."""

    @property
    def batch_shape(self):
        """Shape of the parameters, without events."""
        return self._batch_shape

    @property
    def event_shape(self):
        """Shape of one value."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict:
        """Constraint of each parameter by name."""
        raise NotImplementedError

    @property
    def support(self):
        """Constraint of the values."""
        raise NotImplementedError

    @property
    def mean(self):
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self):
        """The most probable value."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self):
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self):
        """Square root of the variance."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()):
        """Return random values of shape ``sample_shape + batch_shape + event_shape``, without gradient."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()):
        """Return random values that are differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int):
        """Return ``n`` random values."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample(Size((n,)))

    def log_prob(self, value):
        """Return the logarithm of the density, or of the probability, at ``value``."""
        raise NotImplementedError

    def cdf(self, value):
        """Return the probability of values up to ``value``."""
        raise NotImplementedError

    def icdf(self, value):
        """Return the value that ``cdf`` maps to ``value``."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True):
        """Return all values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self):
        """Return the entropy in nats."""
        raise NotImplementedError

    def perplexity(self):
        """Exponential of the entropy."""
        return ops.exp(self.entropy())

    def _extended_shape(self, sample_shape=()):
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        return Size([*sample_shape, *self._batch_shape, *self._event_shape])

    def _validate_sample(self, value) -> None:
        """Raise ValueError if ``value`` is not in the support of this distribution."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.ndim - len(self._event_shape)
        if value.shape[start:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        expected = Size([*self._batch_shape, *self._event_shape])
        for i, j in zip(reversed(value.shape), reversed(expected), strict=False):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {expected}."
                )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize "
                "the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if support is None:
            raise AssertionError("support is None")
        if not bool(ops.all(support.check(value))):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be "
                "within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{_text_of(value)}"
            )

    def _get_checked_instance(self, cls, _instance=None):
        """Return a new object for ``expand``. A subclass with another constructor must override ``expand``."""
        if _instance is None and type(self).__init__ is not cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a "
                "custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        shown = [(n, self.__dict__[n]) for n in names]
        texts = [f"{n}: {_number(x) if x.numel() == 1 else x.size()}" for n, x in shown]
        return f"{type(self).__name__}({', '.join(texts)})"


def _number(x) -> str:
    return f"{x}"


def _static(cls, name):
    """A class attribute as it is stored."""
    for base in cls.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return None
