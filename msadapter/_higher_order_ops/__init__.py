"""torch._higher_order_ops: control flow as functions. They run as they are called, like Python's own control flow.

PyTorch compiles the functions that they are given, and refuses functions that write to their arguments or return them. Here such
functions run.
"""

from .associative_scan import associative_scan
from .cond import cond
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]
