"""Operators by their names in torch._C's submodules, which are their names in ATen."""

from __future__ import annotations

from .. import ops
from ..nn import functional
from ..ops._declare import namespaces

# Functions that are the same object in torch.nn.functional and in torch._C._nn. Others differ in their arguments.
_OF_FUNCTIONAL = (
    "avg_pool2d",
    "avg_pool3d",
    "elu_",
    "gelu",
    "hardtanh_",
    "leaky_relu_",
    "linear",
    "one_hot",
    "scaled_dot_product_attention",
    "softplus",
    "softshrink",
)


def operator_of(module: str, name: str):
    """Return the operator ``torch.ops.aten.<name>``.

    Raises:
        AttributeError: there is no such operator. The message names ``torch._C.<module>``.
    """
    if module == "_nn" and name in _OF_FUNCTIONAL:
        return getattr(functional, name)
    family = module.removeprefix("_")  # torch._C._linalg.linalg_norm is torch.linalg.norm
    if family in ("linalg", "fft", "special") and name.startswith(f"{family}_"):
        found = namespaces[family].get(name.removeprefix(f"{family}_"))
        if found is not None:
            return found
    if not name.startswith("__"):
        aten = ops.aten
        found = getattr(aten, name, None)
        if found is not None:
            return found
    raise AttributeError(f"module 'torch._C.{module}' has no attribute {name!r} (docs/coverage.md)")
