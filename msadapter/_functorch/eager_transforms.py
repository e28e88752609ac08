"""torch._functorch.eager_transforms: derivatives of functions."""

from ..func import functionalize, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = ["functionalize", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]
