"""torch.autograd: backward, grad, and the modules of automatic differentiation."""

from __future__ import annotations

import importlib

from .._host.native import load
from ..tensor import Tensor
from . import _hooks, graph
from ._passes import _calculate_shape as _calculate_shape
from ._passes import _Engine, _is_checkpoint_valid, _make_grads, _pass, backward, grad
from .function import Function, FunctionCtx
from .grad_mode import (
    _unsafe_preserve_version_counter as _unsafe_preserve_version_counter,
)
from .grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)

# These two now: a later import of the submodule gradcheck would put the module in the function's place.
from .gradcheck import gradcheck, gradgradcheck  # isort: skip
from .variable import Variable  # isort: skip

_hooks.install(Tensor)
_ANOMALY = ("detect_anomaly", "set_detect_anomaly", "is_anomaly_enabled", "is_anomaly_check_nan_enabled")


def __getattr__(name: str):
    if name in ("kineto_available", "_profiler_enabled"):
        return getattr(importlib.import_module(".profiler", __name__), name)
    if name == "DeviceType":
        return importlib.import_module("..profiler", __name__).DeviceType
    if name == "SavedTensor":
        return load().SavedTensor
    if name in _ANOMALY:
        return getattr(importlib.import_module(".anomaly_mode", __name__), name)
    if name == "torch":  # PyTorch's module has imported it
        return importlib.import_module("torch")
    if name in ("functional", "profiler", "forward_ad", "anomaly_mode"):
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module 'torch.autograd' has no attribute {name!r}")
