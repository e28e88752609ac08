"""Modules and functions of transformer_engine.pytorch."""

from . import attention, cpp_extensions, distributed, float8_tensor, fp8, module, ops, optimizers
from .attention import DotProductAttention
from .distributed import CudaRNGStatesTracker, checkpoint
from .fp8 import fp8_autocast, fp8_model_init
from .module import (
    GroupedLinear,
    LayerNorm,
    LayerNormLinear,
    LayerNormMLP,
    Linear,
    RMSNorm,
    TransformerEngineBaseModule,
)
