"""torch._functorch.deprecated: the functions of the package functorch, which warn that torch.func has them now."""

import functools
import warnings

from .. import func
from . import make_functional as _older

__all__ = [
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "make_functional",
    "make_functional_with_buffers",
    "vjp",
    "vmap",
]


def _deprecated(function, instead: str | None = None):
    name = function.__name__
    instead = instead or f"torch.func.{name}"

    @functools.wraps(function)
    def warned(*args, **kwargs):
        warnings.warn(
            f"functorch is a part of PyTorch since 2.0, and `functorch.{name}` is deprecated. Please use `{instead}` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return warned


vmap = _deprecated(func.vmap, "torch.vmap")
grad = _deprecated(func.grad)
grad_and_value = _deprecated(func.grad_and_value)
vjp = _deprecated(func.vjp)
jvp = _deprecated(func.jvp)
jacrev = _deprecated(func.jacrev)
jacfwd = _deprecated(func.jacfwd)
hessian = _deprecated(func.hessian)
functionalize = _deprecated(func.functionalize)
make_functional = _deprecated(_older.make_functional, "torch.func.functional_call")
make_functional_with_buffers = _deprecated(_older.make_functional_with_buffers, "torch.func.functional_call")
combine_state_for_ensemble = _deprecated(_older.combine_state_for_ensemble, "torch.func.stack_module_state")
