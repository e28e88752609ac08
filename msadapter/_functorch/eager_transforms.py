"""torch._functorch.eager_transforms: derivatives of functions."""

from ..func import functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ..func._derivatives import _chosen

__all__ = ["functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _slice_argnums(args, argnums, as_tuple=True):
    """Return the arguments at these positions: a tuple, or a single one if `argnums` is a number and not `as_tuple`."""
    found = tuple(args[n] for n in _chosen(args, argnums))
    return found if as_tuple or isinstance(argnums, tuple) else found[0]
