"""torch.backends: settings of libraries. Settings without a meaning here are only stored."""

import sys

from . import (
    _fp32,
    _frozen,
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
    xeon,
    xnnpack,
)
from ._frozen import disable_global_flags, flags_frozen

__all__ = [
    "cpu",
    "cuda",
    "cudnn",
    "cusparselt",
    "disable_global_flags",
    "flags_frozen",
    "kleidiai",
    "mha",
    "miopen",
    "mkl",
    "mkldnn",
    "mps",
    "nnpack",
    "openmp",
    "opt_einsum",
    "quantized",
    "xeon",
    "xnnpack",
]
__allow_nonbracketed_mutation = _frozen.allowed
_fp32.settings_of(
    sys.modules[__name__],
    "generic",
    __allow_nonbracketed_mutation_flag=property(lambda module: not flags_frozen()),
)


def set_flags(_fp32_precision="none"):
    """Set the precision of all backends that have none of their own, and return the former one in a tuple."""
    return _frozen.exchange(sys.modules[__name__], {"fp32_precision": _fp32_precision})


def flags(fp32_precision="none"):
    """Set the precision of all backends that have none of their own, inside a block."""
    return _frozen.restored(set_flags, fp32_precision)
