"""A norm followed by two linear layers, as one module: a name for the programs that ask whether a layer is of this class."""

from ...._errors import unsupported
from .base import TransformerEngineBaseModule


class LayerNormMLP(TransformerEngineBaseModule):
    """Cannot be made: raises NotImplementedError."""

    def __init__(self, *arguments, **options):
        raise unsupported("transformer_engine.pytorch.LayerNormMLP")
