"""torch.package.analyze: questions about objects of archives."""

from .is_from_package import is_from_package

__all__ = ["is_from_package"]
