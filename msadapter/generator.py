"""torch.Generator."""

from .ops._generator import Generator  # noqa: F401
