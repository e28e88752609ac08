"""The operator table. Importing this package declares every operator.

The operators are attributes of the package, under PyTorch's names.
"""

from __future__ import annotations

import functools
import importlib

from . import _declare
from ._declare import composite, declarations, namespaces, op, raw, raw_empty, raw_view, t  # noqa: F401

FAMILIES = (
    "pointwise",
    "pointwise_binary",
    "compare",
    "complex",
    "special",
    "reduction",
    "scan",
    "calculus",
    "hashing",
    "sorting",
    "view",
    "shape",
    "indexing",
    "creation",
    "random",
    "matmul",
    "nn_activation",
    "nn_norm",
    "nn_loss",
    "nn_conv",
    "nn_pool",
    "nn_misc",
    "attention",
    "dropout",
    "optim_fused",
    "linalg",
    "fft",
    "windows",
    "view_window",
    "internal",
)


for _name in FAMILIES:
    importlib.import_module(f".{_name}", __name__)
# Some files have the name of an operator (matmul, dropout). The attribute must be the operator, not the file.
globals().update(
    {
        name: namespaces[space][name]
        for space in ("nn.functional", "torch")
        for name in FAMILIES
        if name in namespaces[space]
    }
)


def __getattr__(name: str):
    for space in ("torch", "nn.functional", "Tensor"):
        if name in namespaces[space]:
            return namespaces[space][name]
    table = vars(t)
    if name in table:
        return table[name]
    if name == "aten" and _user_namespace is not None:
        return _aten_namespace()
    if _user_namespace is not None and not name.startswith("_"):
        return _user_namespace(name)
    raise AttributeError(f"module {__name__!r} has no operator {name!r}")


@functools.cache
def _aten_namespace():
    from . import _aten

    programs = _user_namespace("aten")
    return _aten.namespace(lambda operator: getattr(programs, operator, None))


_user_namespace = None  # torch.ops.<namespace>: installed by torch.library


def install_user_namespaces(finder) -> None:
    """Let ``finder(name)`` provide torch.ops.<name>, where the table has no operator of this name."""
    global _user_namespace
    _user_namespace = finder
