"""The operator table. Importing this package declares every operator.

The operators are attributes of the package, under PyTorch's names.
"""

from __future__ import annotations

import importlib

from .._host import accelerator as _accelerator
from .._host import extensions
from . import _declare
from ._declare import composite, declarations, namespaces, op, raw, raw_empty, raw_view, t  # noqa: F401
from .nn_norm import gradients_of, recording  # noqa: F401  (for operators that save what a fused kernel returns)

FAMILIES = (
    "pointwise",
    "copying",
    "pointwise_binary",
    "compare",
    "complex",
    "special",
    "reduction",
    "reduction_moment",
    "reduction_norm",
    "scan",
    "calculus",
    "hashing",
    "sorting",
    "histograms",
    "view",
    "shape",
    "joining",
    "indexing",
    "creation",
    "random",
    "matmul",
    "nn_activation",
    "nn_activation_smooth",
    "nn_norm",
    "nn_loss",
    "nn_loss_classes",
    "nn_conv",
    "nn_pool",
    "nn_misc",
    "attention",
    "dropout",
    "optim_fused",
    "linalg",
    "linalg_misc",
    "linalg_spectral",
    "linalg_rank",
    "fft",
    "windows",
    "view_window",
    "internal",
    "nn_distance",
    "nn_dropout",
    "nn_softmax",
    "private_forms",
    "quantizing",
    "nn_normalize",
    "nn_loss_pairs",
    "nn_loss_margins",
    "nn_ctc",
    "nn_recurrent",
    "nn_bags",
    "nn_unpool",
    "nn_antialias",
    "nn_resize",
    "nn_grouped",
    "nn_scaled",
    "nn_multihead",
    "linalg_lobpcg",
    "torch_forms",
)


for _name in FAMILIES:
    importlib.import_module(f".{_name}", __name__)
_declare.check_native()
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
    namespace = extensions.operator_namespaces.value
    if namespace is not None and not name.startswith("__"):
        return globals().setdefault(name, namespace(name))  # a program may delete it
    raise AttributeError(f"module {__name__!r} has no operator {name!r}")


def add_factories(**factories) -> None:
    """Makes functions of the tensor package callable as ``ops.name`` and ``t.name``. They are not operators of the table:
    what they take is Python data."""
    for name, factory in factories.items():
        setattr(t, name, factory)


def on_ascend(tensor) -> bool:
    """Return whether a tensor is on an Ascend device. On a machine without one, cuda and npu name the host's memory."""
    return not _accelerator.on_host() and tensor.device.type != "cpu"
