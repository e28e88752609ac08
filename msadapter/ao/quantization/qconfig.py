"""QConfig: how the inputs and the weight of a module are quantised."""

from __future__ import annotations

from collections import namedtuple

from ..._values.dtype import OTHERS
from ...nn import Module
from .fake_quantize import (
    FakeQuantize,
    default_fake_quant,
    default_per_channel_weight_fake_quant,
    default_weight_fake_quant,
)
from .observer import (
    HistogramObserver,
    MovingAverageMinMaxObserver,
    default_observer,
    default_per_channel_weight_observer,
    default_weight_observer,
)

__all__ = [
    "QConfig",
    "default_per_channel_qconfig",
    "default_qat_qconfig",
    "default_qconfig",
    "get_default_qat_qconfig",
    "get_default_qconfig",
]
_BACKENDS = ["fbgemm", "x86", "qnnpack", "onednn"]


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """The classes, with their arguments, that observe or round the inputs and the weight of a module.

    Raises:
        ValueError: one of the two is a module, which several modules would share.
    """

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, Module) or isinstance(weight, Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


default_qconfig = QConfig(activation=default_observer, weight=default_weight_observer)
default_per_channel_qconfig = QConfig(activation=default_observer, weight=default_per_channel_weight_observer)
default_qat_qconfig = QConfig(activation=default_fake_quant, weight=default_weight_fake_quant)


def _checked(backend: str) -> None:
    if backend not in _BACKENDS:
        raise AssertionError(f"backend: {backend} not supported. backend must be one of {_BACKENDS}")


def get_default_qconfig(backend="x86", version=0):
    """Return the configuration of a quantisation after training. Its observer of inputs is a HistogramObserver."""
    _checked(backend)
    if version != 0:
        raise AssertionError(
            f"Version number: {version} in get_default_qconfig is not supported. Version number must be 0"
        )
    weight = default_weight_observer if backend == "qnnpack" else default_per_channel_weight_observer
    return QConfig(HistogramObserver.with_args(reduce_range=backend in ("fbgemm", "x86")), weight)


def get_default_qat_qconfig(backend="x86", version=1):
    """Return the configuration of a training for a quantisation.

    Version 1 has fused modules in PyTorch. Here both versions have the plain ones, which compute the same.
    """
    _checked(backend)
    if version not in (0, 1):
        raise AssertionError(
            f"Version number: {version} in get_default_qat_qconfig is not supported. Version number must be 0 or 1"
        )
    activation = FakeQuantize.with_args(
        observer=MovingAverageMinMaxObserver,
        quant_min=0,
        quant_max=255,
        dtype=OTHERS["quint8"],
        reduce_range=backend in ("fbgemm", "x86"),
    )
    weight = default_weight_fake_quant if backend == "qnnpack" else default_per_channel_weight_fake_quant
    return QConfig(activation, weight)
