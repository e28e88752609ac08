"""functorch.experimental.control_flow: the operators whose branches and bodies are functions."""

from ..._higher_order_ops.cond import cond
from ..._higher_order_ops.map import map

__all__ = ["cond", "map"]
