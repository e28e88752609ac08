"""The norm that weight normalisation uses: over all dimensions except one."""

from ... import ops


def norm_except_dim(v, dim=0):
    """Return the norms of v over all dimensions except ``dim``, whose sizes become one.

    For ``dim`` -1 or None, return the norm of the whole tensor.
    """
    if dim is None or dim == -1:
        return ops.linalg_vector_norm(v)
    rest = [d for d in range(v.dim()) if d != dim % v.dim()]
    if not rest:
        return v.abs()
    return ops.linalg_vector_norm(v, 2, rest, True)


def weight_from(v, g, dim=0):
    """Return v, scaled so that its norms are g."""
    return v * (g / norm_except_dim(v, dim))
