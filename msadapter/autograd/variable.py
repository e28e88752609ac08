"""torch.autograd.variable: the older name of Tensor."""
from __future__ import annotations

from . import Variable, _Engine  # noqa: F401
