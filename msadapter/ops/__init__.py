"""The op table. Importing it declares every operator; attributes are the functions by torch's name."""
from __future__ import annotations

import importlib

from . import _declare
from ._declare import composite, declarations, namespaces, op, raw, raw_empty, raw_view, t  # noqa: F401

FAMILIES = ("pointwise", "pointwise_binary", "compare", "complex", "special", "reduction", "scan", "sorting", "view", "shape",
            "indexing", "creation", "random", "matmul", "nn_activation", "nn_norm", "nn_loss", "nn_conv", "nn_pool", "nn_misc",
            "attention", "optim_fused", "linalg", "fft", "windows", "internal")


def _import_families() -> None:
    for name in FAMILIES:
        if importlib.util.find_spec(f"{__name__}.{name}") is not None:
            importlib.import_module(f".{name}", __name__)


_import_families()


def __getattr__(name: str):
    for space in ("torch", "nn.functional", "Tensor"):
        if name in namespaces[space]:
            return namespaces[space][name]
    table = vars(t)
    if name in table:
        return table[name]
    raise AttributeError(f"module {__name__!r} has no operator {name!r}")
