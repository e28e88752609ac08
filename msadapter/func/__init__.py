"""torch.func: transformations of functions (derivatives, batching), and modules as functions."""

import functools

from .._errors import unsupported
from ..utils._pytree import tree_flatten
from . import _functions, _rules
from ._derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ._modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ._vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functionalize(func, *, remove="mutations"):
    """Return a function with the results of ``func``, whose in-place operations still change its arguments.

    In PyTorch a trace of this function has no in-place operations. Here it cannot be traced.

    Args:
        remove: "mutations" or "mutations_and_views", for a trace.

    Raises:
        RuntimeError: ``remove`` is something else.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "'mutations' and 'mutations_and_views'"
        )

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        leaves, _ = tree_flatten((args, kwargs))
        if any(hasattr(x, "tracer") and hasattr(x, "node") for x in leaves):
            raise unsupported("torch.func.functionalize", "a traced graph keeps in-place operations")
        return func(*args, **kwargs)

    return wrapped
