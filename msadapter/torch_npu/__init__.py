"""torch_npu: the NPU's operators and tools under the names that programs for torch_npu use.

The operators are those of the package kernels_ascend; `torch_npu.npu` is `torch.npu`. `torch.ops.npu.*` are the
same operators. MindSpeed's own extensions are answered by kernels_ascend too, when MindSpeed loads them.
"""

from __future__ import annotations

import importlib
import sys

import kernels_ascend as _kernels
from kernels_ascend import loader as _loader

from .. import library as _library
from .. import npu
from .._values.dtype import OTHERS as _OTHER_DTYPES
from ..alias.finder import TORCH_VERSION
from ..ops import empty as _empty
from ..ops import namespaces as _namespaces

# `torch_npu.npu` is one module under two names.
sys.modules[f"{__name__}.npu"] = npu

from . import _C, _acl, contrib, dynamo, profiler, utils  # noqa: E402

__version__ = TORCH_VERSION

# Types for which torch_npu makes no methods: MindSpeed sends tensors of every other one between its models.
unsupported_dtype = [_OTHER_DTYPES[name] for name in ("quint8", "quint4x2", "quint2x4", "qint32", "qint8")]

_OPERATORS = {**_namespaces["torch_npu"], **{name: getattr(_kernels, name) for name in _kernels.__all__}}
globals().update(_OPERATORS)

for _name, _function in _OPERATORS.items():
    if not _name.startswith("_") and _library.find("npu", _name) is None:
        _library.define(f"npu::{_name}", "(...) -> Any")
        _library.impl(f"npu::{_name}", "default", _function)


def empty_with_swapped_memory(size, *, dtype=None, device=None):
    """An empty tensor in the host's memory that the device can reach: on the host, any tensor is."""
    return _empty(size, dtype=dtype, device=device)


def npu_format_cast(tensor, acl_format):
    """The tensor itself: layouts private to the device do not exist here."""
    return tensor


def get_npu_format(tensor) -> int:
    """2, the plain layout (ND)."""
    return 2


_loader.install()
_acl.provide()


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return importlib.import_module(f".{name}", __name__)
    except ModuleNotFoundError:
        raise AttributeError(f"module 'torch_npu' has no attribute {name!r} (docs/coverage.md)") from None
