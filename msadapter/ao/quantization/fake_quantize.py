"""FakeQuantize: a module that rounds values as a quantisation would, so that a training gets used to it."""

from __future__ import annotations

from ... import ops
from ..._quantized import SCHEMES
from ..._values.dtype import ALL, OTHERS
from .observer import (
    _CHANNEL,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    _Configured,
)

__all__ = [
    "FakeQuantize",
    "default_fake_quant",
    "default_per_channel_weight_fake_quant",
    "default_weight_fake_quant",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
]


class FakeQuantize(_Configured):
    """Rounds values to those that integers with a scale and a zero point stand for. An observer chooses both.

    Args:
        observer: the class of the observer.
        quant_min, quant_max: the range of the integers.
        observer_kwargs: further arguments of the observer.
    """

    _by_slice = ("scale", "zero_point")

    def __init__(
        self,
        observer=MovingAverageMinMaxObserver,
        quant_min=None,
        quant_max=None,
        is_dynamic=False,
        **observer_kwargs,
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            if quant_min > quant_max:
                raise AssertionError("quant_min must be less than or equal to quant_max")
            observer_kwargs.update(quant_min=quant_min, quant_max=quant_max)
        self.register_buffer("fake_quant_enabled", ops.tensor([1], dtype=ALL["uint8"]))
        self.register_buffer("observer_enabled", ops.tensor([1], dtype=ALL["uint8"]))
        self.activation_post_process = observer(is_dynamic=is_dynamic, **observer_kwargs)
        seen = self.activation_post_process
        self.quant_min, self.quant_max, self.is_dynamic = seen.quant_min, seen.quant_max, seen.is_dynamic
        self.register_buffer("scale", ops.tensor([1.0]))
        self.register_buffer("zero_point", ops.tensor([0], dtype=ALL["int32"]))
        self.dtype, self.qscheme, self.ch_axis = seen.dtype, seen.qscheme, getattr(seen, "ch_axis", -1)
        self.is_per_channel = self.qscheme in _CHANNEL

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on, or not."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Round no more."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Choose the scale by what is seen from now on, or not."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Keep the scale."""
        self.enable_observer(False)

    def calculate_qparams(self):
        """Return (scale, zero point) of the observer."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero = self.calculate_qparams()
            self.scale.resize_(scale.shape).copy_(scale)
            self.zero_point.resize_(zero.shape).copy_(zero)
        if self.fake_quant_enabled[0] != 1:
            return X
        if self.is_per_channel:
            return ops.fake_quantize_per_channel_affine(
                X, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max
            )
        return ops.fake_quantize_per_tensor_affine(
            X, self.scale, self.zero_point, self.quant_min, self.quant_max
        )

    def extra_repr(self) -> str:
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, "
            f"ch_axis={self.ch_axis}, scale={self.scale}, zero_point={self.zero_point}"
        )


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=OTHERS["quint8"],
    qscheme=SCHEMES["per_tensor_affine"],
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=OTHERS["qint8"],
    qscheme=SCHEMES["per_tensor_symmetric"],
    reduce_range=False,
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=OTHERS["qint8"],
    qscheme=SCHEMES["per_channel_symmetric"],
    reduce_range=False,
    ch_axis=0,
)


def _switch(name: str):
    def apply(mod) -> None:
        if isinstance(mod, FakeQuantize):
            getattr(mod, name)()

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"{name} of a FakeQuantize; other modules stay as they are. For `Module.apply`."
    return apply


disable_fake_quant, enable_fake_quant = _switch("disable_fake_quant"), _switch("enable_fake_quant")
disable_observer, enable_observer = _switch("disable_observer"), _switch("enable_observer")
