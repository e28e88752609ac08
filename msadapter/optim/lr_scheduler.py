"""torch.optim.lr_scheduler: learning rate schedules."""

from ._cycles import CyclicLR, OneCycleLR, ReduceLROnPlateau
from ._schedule_base import EPOCH_DEPRECATION_WARNING, LRScheduler, _LRScheduler  # noqa: F401  (a name of PyTorch's module)
from ._schedule_chains import ChainedScheduler, SequentialLR
from ._schedule_plain import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)

__all__ = [
    "_LRScheduler",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]
