"""Distances, similarities and the bilinear form."""

from ... import ops
from ...autograd import no_grad

__all__ = ["bilinear", "cosine_similarity", "pairwise_distance", "pdist"]


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """p-norm of x1 - x2 + eps along the last dimension."""
    return ops.linalg_vector_norm(x1 - x2 + eps, p, -1, keepdim)


def pdist(input, p=2):
    """p-norm distances of every pair of rows i < j of (N, M), as one vector."""
    if input.dim() != 2:
        raise RuntimeError("pdist only supports 2D tensors, got: " + f"{input.dim()}D")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    n = input.size(0)
    if n < 2:
        return input.new_empty(0)
    first, second = ops.triu_indices(n, n, 1, device=input.device)
    return ops.linalg_vector_norm(input.index_select(0, first) - input.index_select(0, second), p, 1)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    """Cosine of the angle along ``dim``, norms not below eps."""
    if not (x1.is_floating_point() or x2.is_floating_point() or x1.is_complex() or x2.is_complex()):
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {x1.dtype}")
    x1, x2 = ops.broadcast_tensors(x1, x2)
    return ((x1 / _floored_norm(x1, dim, eps)) * (x2 / _floored_norm(x2, dim, eps))).sum(dim)


def _floored_norm(x, dim, eps):
    norm = ops.linalg_vector_norm(x, 2, dim, True)
    # The floor changes the value, not the gradient.
    with no_grad():
        lift = norm.clamp_min(eps) - norm
    return norm + lift


def bilinear(input1, input2, weight, bias=None):
    """x1 @ weight[k] @ x2 (+ bias[k]) for every output k; weight (out, in1, in2)."""
    if input1.dim() != input2.dim():
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.dim()} and {input2.dim()}"
        )
    for i in range(input1.dim() - 1):
        if input1.size(i) != input2.size(i):
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {i}: got {input1.size(i)} and "
                f"{input2.size(i)}"
            )
    out, size1, size2 = weight.shape
    for n, (x, size) in enumerate(((input1, size1), (input2, size2)), 1):
        if x.size(-1) != size:
            raise RuntimeError(
                f"bilinear(): input{n} size does not match weight size: got {x.size(-1)} but expected {size}"
            )
    if bias is not None and bias.size(0) != out:
        raise RuntimeError(
            f"bilinear(): bias size does not match weight size: got {bias.size(0)} but expected {out}"
        )
    batch = list(input1.shape[:-1])
    left = input1.reshape(-1, size1) @ weight.permute(1, 0, 2).reshape(size1, out * size2)
    result = (left.view(-1, out, size2) * input2.reshape(-1, 1, size2)).sum(-1).view([*batch, out])
    return result if bias is None else result + bias
