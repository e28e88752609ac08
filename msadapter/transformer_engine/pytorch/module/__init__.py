"""Layers of transformer_engine.pytorch."""

from .base import TransformerEngineBaseModule, initialize_ub
from .grouped_linear import GroupedLinear
from .layernorm_linear import LayerNormLinear
from .linear import Linear
from .norm import LayerNorm, RMSNorm
