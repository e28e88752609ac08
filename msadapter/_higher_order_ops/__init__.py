"""torch._higher_order_ops: control flow as functions. They run as they are called, like Python's own control flow.

Of the operators of PyTorch's compiler there are names, with which programs tell what a checkpoint keeps. They refuse to be called.

PyTorch compiles the functions that they are given, and refuses functions that write to their arguments or return them. Here such
functions run.
"""

from .._errors import unsupported_function
from .associative_scan import associative_scan
from .cond import cond
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = [
    "associative_scan",
    "cond",
    "flex_attention",
    "inductor_compiled_code",
    "map",
    "scan",
    "while_loop",
]


flex_attention, inductor_compiled_code = (
    unsupported_function(
        f"torch._higher_order_ops.{name}", "operators of PyTorch's compiler are not supported"
    )
    for name in ("flex_attention", "inductor_compiled_code")
)
