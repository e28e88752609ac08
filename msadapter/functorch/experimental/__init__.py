"""functorch.experimental."""

import functools

from ...func import functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_, vmap
from ...func._vmap import _checked_inputs

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """Like `torch.vmap`, in this number of parts, one after the other, so that less memory is needed.

    The parts have the sizes that `torch.chunk` gives.
    """
    if chunks == 1:
        return vmap(func, in_dims=in_dims, out_dims=out_dims, randomness=randomness)

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        *_, size = _checked_inputs(func, in_dims, args)
        largest = max(1, -(-size // chunks))
        return vmap(func, in_dims, out_dims, randomness, chunk_size=largest)(*args, **kwargs)

    return mapped
