"""torch.func: transformations of functions (derivatives, batching), and modules as functions."""

from .._errors import unsupported
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
    """Not supported: raises NotImplementedError. Programs run with their in-place operations."""
    raise unsupported("torch.func.functionalize")
