"""Observers: modules that see values and choose a scale and a zero point for them. They return what they are given."""

from __future__ import annotations

import functools
import warnings

from ... import ops
from ..._errors import unsupported
from ..._quantized import SCHEMES
from ..._values.dtype import ALL, OTHERS
from ..._values.limits import finfo
from ...nn import Module

__all__ = [
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "NoopObserver",
    "ObserverBase",
    "PerChannelMinMaxObserver",
    "default_histogram_observer",
    "default_observer",
    "default_per_channel_weight_observer",
    "default_weight_observer",
]

_EPS = finfo(ALL["float32"]).eps
_QUINT8, _QINT8 = OTHERS["quint8"], OTHERS["qint8"]
_TENSOR = (SCHEMES["per_tensor_affine"], SCHEMES["per_tensor_symmetric"])
_CHANNEL = (SCHEMES["per_channel_affine"], SCHEMES["per_channel_symmetric"])
# dtype: the range of its integers, and that of one bit less, which keeps sums of products of older processors from overflowing
_RANGES = {
    _QINT8: ((-128, 127), (-64, 63)),
    ALL["int8"]: ((-128, 127), (-64, 63)),
    _QUINT8: ((0, 255), (0, 127)),
    ALL["uint8"]: ((0, 255), (0, 127)),
    OTHERS["qint32"]: ((-(2**31), 2**31 - 1), (-(2**31), 2**31 - 1)),
    ALL["int32"]: ((-(2**31), 2**31 - 1), (-(2**31), 2**31 - 1)),
    ALL["int16"]: ((-(2**15), 2**15 - 1), (-(2**15), 2**15 - 1)),
}


class _Partial:
    """A class with some of its arguments. Called, it makes an object of the class."""

    def __init__(self, p):
        self.p = p

    def __call__(self, *args, **kwargs):
        return self.p(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self.p)

    def with_args(self, **kwargs):
        """Return the class with further arguments."""
        return _Partial(functools.partial(self.p, **kwargs))


class _Configured(Module):
    """A module whose class a `QConfig` names, and whose tensors get as many elements as a file has for them.

    _by_slice: the names of buffers with an element for each slice that has been seen.
    """

    _by_slice: tuple[str, ...] = ()

    @classmethod
    def with_args(cls, **kwargs):
        """Return the class with these arguments, for a `QConfig`."""
        return _Partial(functools.partial(cls, **kwargs))

    def _load_from_state_dict(self, state_dict, prefix, *rest):
        for name in self._by_slice:
            if f"{prefix}{name}" in state_dict:
                getattr(self, name).resize_(state_dict[f"{prefix}{name}"].shape)
        super()._load_from_state_dict(state_dict, prefix, *rest)


class ObserverBase(_Configured):
    """The base class of observers."""

    def __init__(self, dtype, is_dynamic: bool = False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic


class NoopObserver(ObserverBase):
    """Sees nothing, for values that are not quantised."""

    def __init__(self, dtype=ALL["float16"], custom_op_name: str = ""):
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    def calculate_qparams(self):
        raise Exception("calculate_qparams should not be called for NoopObserver")  # noqa: TRY002  # the class that PyTorch raises


class _RangeObserver(ObserverBase):
    """An observer of the smallest and the largest value.

    Args:
        dtype: of the quantised values.
        qscheme: whether the range is symmetric, and whether each slice has a scale of its own.
        reduce_range: use one bit less.
        quant_min, quant_max: the range of the integers; by default all that ``dtype`` has.
        eps: the smallest scale.
    """

    _schemes: tuple = ()
    _by_slice = ("min_val", "max_val")

    def __init__(self, dtype=_QUINT8, qscheme=_TENSOR[0], reduce_range=False, quant_min=None, quant_max=None,
                 factory_kwargs=None, eps=_EPS, is_dynamic=False, **kwargs):  # fmt: skip
        name = type(self).__name__
        if qscheme not in self._schemes:
            raise NotImplementedError(f"{name}'s qscheme only supports {self._schemes}, but got {qscheme}")
        if dtype not in _RANGES:
            raise unsupported(f"torch.ao.quantization.{name}(dtype={dtype})")
        super().__init__(dtype, is_dynamic, **kwargs)
        if reduce_range:
            warnings.warn(
                "Please use quant_min and quant_max to specify the range for observers. reduce_range will be deprecated in a "
                "future release of PyTorch.",
                stacklevel=2,
            )
        self.qscheme, self.reduce_range = qscheme, reduce_range
        place = dict(factory_kwargs or {})
        self.register_buffer("eps", ops.tensor([eps], **place))
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if not quant_min <= 0 <= quant_max:
                raise AssertionError("Used-specified quantization range must include 0.")
            if quant_min >= quant_max:
                raise AssertionError(
                    "qmin must be strictly less than qmax for user-specified quantization range."
                )
            self.quant_min, self.quant_max = self._reduced(quant_min, quant_max)
        else:
            self.quant_min, self.quant_max = _RANGES[dtype][bool(reduce_range)]
        self.register_buffer("min_val", self._start(float("inf"), place))
        self.register_buffer("max_val", self._start(float("-inf"), place))

    def _reduced(self, low: int, high: int) -> tuple[int, int]:
        if not self.reduce_range or self.dtype in (ALL["int16"], ALL["int32"], OTHERS["qint32"]):
            return low, high
        return low // 2, high // 2

    def _start(self, value: float, place: dict):
        return ops.tensor(value, **place)

    def reset_min_max_vals(self) -> None:
        """Forget what has been seen."""
        self.min_val.copy_(ops.tensor(float("inf")))
        self.max_val.copy_(ops.tensor(float("-inf")))

    def _seen(self, low, high) -> None:
        self.min_val.resize_(low.shape).copy_(low)
        self.max_val.resize_(high.shape).copy_(high)

    def calculate_qparams(self):
        """Return (scale, zero point), each with one element, or one for each slice."""
        low, high = self.min_val, self.max_val
        if (
            not low.numel()
            or not high.numel()
            or bool((low == float("inf")).all() & (high == float("-inf")).all())
        ):
            warnings.warn(
                "must run observer before calling calculate_qparams. Returning default values.", stacklevel=2
            )
            return ops.tensor([1.0], device=low.device), ops.tensor([0], device=low.device)
        if bool((low > high).any()):
            raise AssertionError(f"min {low} should be less than max {high}")
        low, high = ops.minimum(low, ops.zeros_like(low)), ops.maximum(high, ops.zeros_like(high))
        steps = float(self.quant_max - self.quant_min)
        if self.qscheme in (_TENSOR[1], _CHANNEL[1]):
            scale = ops.maximum(ops.maximum(-low, high) / (steps / 2), self.eps)
            zero = ops.full_like(scale, self._middle(), dtype=ALL["int64"])
        else:
            scale = ops.maximum((high - low) / steps, self.eps)
            zero = self.quant_min - ops.round(low / scale).to(ALL["int32"])
            zero = ops.clamp(zero, self.quant_min, self.quant_max)
        return scale.reshape(-1), zero.reshape(-1)

    def _middle(self) -> int:
        if self.dtype not in (_QUINT8, ALL["uint8"]):
            return 0
        return (self.quant_min + self.quant_max) // 2 if self.has_customized_qrange else 128

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


def _averaged(observer, low, high):
    """Return the range that an observer has seen, moved towards a new one by its averaging constant."""
    share = observer.averaging_constant
    return observer.min_val + share * (low - observer.min_val), observer.max_val + share * (
        high - observer.max_val
    )


class MinMaxObserver(_RangeObserver):
    """Sees the smallest and the largest of all values."""

    _schemes = _TENSOR

    def forward(self, x_orig):
        if x_orig.numel():
            low, high = ops.aminmax(x_orig.detach().to(self.min_val.dtype))
            self._seen(ops.minimum(low, self.min_val), ops.maximum(high, self.max_val))
        return x_orig


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Sees the moving averages of the smallest and of the largest value of each call.

    averaging_constant: how much of them a call replaces.
    """

    def __init__(self, averaging_constant=0.01, **kwargs):
        self.averaging_constant = averaging_constant
        super().__init__(**kwargs)
        if self.is_dynamic and averaging_constant != 1:
            raise NotImplementedError(
                f"MovingAverageMinMaxObserver doesn't support dynamic quantization for averaging constant of {averaging_constant}"
            )

    def forward(self, x_orig):
        if x_orig.numel():
            low, high = ops.aminmax(x_orig.detach().to(self.min_val.dtype))
            first = bool(self.min_val == float("inf"))
            self._seen(*((low, high) if first else _averaged(self, low, high)))
        return x_orig


class PerChannelMinMaxObserver(_RangeObserver):
    """Sees the smallest and the largest value of each slice of dim ``ch_axis``."""

    _schemes = _CHANNEL

    def __init__(self, ch_axis=0, dtype=_QUINT8, qscheme=_CHANNEL[0], **kwargs):
        super().__init__(dtype=dtype, qscheme=qscheme, **kwargs)
        self.ch_axis = ch_axis
        if self.is_dynamic:
            raise NotImplementedError("PerChannelMinMaxObserver doesn't support dynamic quantization")

    def _start(self, value: float, place: dict):
        return ops.tensor([], **place)

    def reset_min_max_vals(self) -> None:
        """Forget what has been seen."""
        self.min_val, self.max_val = ops.rand(0), ops.rand(0)

    def forward(self, x_orig):
        if x_orig.numel():
            rows = x_orig.detach().transpose(0, self.ch_axis).to(self.min_val.dtype).flatten(1)
            self._seen(*self._joined(*ops.aminmax(rows, dim=1)))
        return x_orig

    def _joined(self, low, high):
        if not self.min_val.numel():
            return low, high
        return ops.minimum(low, self.min_val), ops.maximum(high, self.max_val)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Sees the moving averages of the smallest and of the largest value of each slice of dim ``ch_axis``."""

    def __init__(self, averaging_constant=0.01, **kwargs):
        super().__init__(**kwargs)
        self.averaging_constant = averaging_constant

    def _joined(self, low, high):
        return _averaged(self, low, high) if self.min_val.numel() else (low, high)


class HistogramObserver(ObserverBase):
    """Not supported: raises NotImplementedError when it is made. A `QConfig` may name it.

    In PyTorch it chooses the range by a histogram of the values, for quantisation after the training.
    """

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.ao.quantization.HistogramObserver")


default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer = MinMaxObserver.with_args(dtype=_QINT8, qscheme=_TENSOR[1])
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(dtype=_QINT8, qscheme=_CHANNEL[1])
