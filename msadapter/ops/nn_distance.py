"""Distances, similarities and the bilinear form."""

from __future__ import annotations

from ._declare import _C, composite, t
from ._functional import without_grad


@composite(
    "nn.functional.pairwise_distance(Tensor x1, Tensor x2, float p=2.0, float eps=1e-06, "
    "bool keepdim=False) -> Tensor",
    forms="f",
    aliases=("pairwise_distance",),
)
def pairwise_distance(x1, x2, p, eps, keepdim):
    """Return the p-norm of x1 - x2 + eps along the last dimension."""
    return t.linalg_vector_norm(x1 - x2 + eps, p, -1, keepdim)


@composite(
    "nn.functional.cosine_similarity(Tensor x1, Tensor x2, any dim=1, float eps=1e-08) -> Tensor",
    forms="f",
    aliases=("cosine_similarity",),
    autocast={"accelerator": "float32"},
)
def cosine_similarity(x1, x2, dim, eps):
    """Return the cosine of the angle along ``dim``. Norms smaller than eps are replaced by eps."""
    if not (x1.is_floating_point() or x2.is_floating_point() or x1.is_complex() or x2.is_complex()):
        name = _C.promote_types(x1.dtype, x2.dtype).scalar_name
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {name}")
    common = _C.promote_types(x1.dtype, x2.dtype)
    x1, x2 = t.broadcast_tensors(x1.to(common), x2.to(common))
    return ((x1 / _floored_norm(x1, dim, eps)) * (x2 / _floored_norm(x2, dim, eps))).sum(dim)


def _floored_norm(x, dim, eps):
    norm = t.linalg_vector_norm(x, 2, dim, True)
    # The lower bound changes the value, but not the gradient.
    with without_grad():
        lift = norm.clamp_min(eps) - norm
    return norm + lift
