"""Layers of transformer_engine.pytorch."""

from .base import TransformerEngineBaseModule, initialize_ub
from .grouped_linear import GroupedLinear
from .layernorm_linear import LayerNormLinear
from .layernorm_mlp import LayerNormMLP
from .linear import Linear
from .norm import LayerNorm, RMSNorm
