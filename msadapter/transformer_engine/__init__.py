"""The part of TransformerEngine's Python API that Megatron Core uses, implemented with torch operations.

With MSADAPTER_TRANSFORMER_ENGINE=1, `import transformer_engine` returns this package (docs/distributed.md). It computes the
plain formulas in the dtype of the tensors. 8-bit floats are not supported and raise NotImplementedError.
"""

from . import common, pytorch

__version__ = "1.13.0"  # the last of the releases whose 16-bit API this is
__all__ = ["common", "pytorch"]
