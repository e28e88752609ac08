"""The norm that weight normalisation takes: over every dimension but one."""

from ... import ops


def norm_except_dim(v, dim=0):
    """Norms with size one in every dimension but ``dim``; one norm of all for ``dim`` -1 or None."""
    if dim is None or dim == -1:
        return ops.linalg_vector_norm(v)
    rest = [d for d in range(v.dim()) if d != dim % v.dim()]
    if not rest:
        return v.abs()
    return ops.linalg_vector_norm(v, 2, rest, True)


def weight_from(v, g, dim=0):
    """v scaled to the norms g."""
    return v * (g / norm_except_dim(v, dim))
