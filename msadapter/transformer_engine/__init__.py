"""The part of TransformerEngine's Python API that Megatron Core asks for, in torch operations.

It answers `import transformer_engine` when MSADAPTER_TRANSFORMER_ENGINE=1 (docs/distributed.md). Numbers are those of
the plain formulas in the tensors' own dtype; eight-bit floats are not supported, asking for them is an error.
"""

from . import common, pytorch

__version__ = "1.13.0"  # the last of the releases whose 16-bit API this is
__all__ = ["common", "pytorch"]
