"""functorch: the package from which torch.func comes. PyTorch still brings it along."""

from .._functorch import deprecated
from .._functorch.deprecated import *
from .._functorch.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from ..fx.experimental.proxy_tensor import make_fx
from ..version import __version__

__all__ = [*deprecated.__all__, "FunctionalModule", "FunctionalModuleWithBuffers", "__version__", "make_fx"]
