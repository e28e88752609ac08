"""Recipes of 8-bit training. They can be created and compared, but training with one raises NotImplementedError."""

from dataclasses import dataclass
from enum import Enum


class Format(Enum):
    """The 8-bit formats, with their largest values in forward and backward."""

    E4M3 = (448, 448)
    E5M2 = (57344, 57344)
    HYBRID = (448, 57344)


@dataclass
class DelayedScaling:
    """A recipe that computes scales from the largest values of earlier steps."""

    margin: int = 0
    fp8_format: Format = Format.HYBRID
    amax_history_len: int = 1024
    amax_compute_algo: str = "max"
    scaling_factor_compute_algo: object = None
    override_linear_precision: tuple = (False, False, False)
    reduce_amax: bool = True
    fp8_dpa: bool = False
    fp8_mha: bool = False
    params_dtype: object = None
    device: object = None
    interval: int = -1
