"""Recipes of eight-bit training: they can be made and compared; running with one is an error."""

from dataclasses import dataclass
from enum import Enum


class Format(Enum):
    """Eight-bit formats, by the largest value forward and backward."""

    E4M3 = (448, 448)
    E5M2 = (57344, 57344)
    HYBRID = (448, 57344)


@dataclass
class DelayedScaling:
    """Scales from the largest values of the steps before."""

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
