"""torch_npu: operators and tools of the NPU, under the names of the package torch_npu.

The operators are those of the package kernels_ascend. They are also `torch.ops.npu.*`, and `torch_npu.npu` is
`torch.npu`. kernels_ascend also provides MindSpeed's own C++ extensions, when MindSpeed loads them.
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

# `torch_npu.npu` and `torch.npu` are the same module.
sys.modules[f"{__name__}.npu"] = npu

from . import _C, _acl, contrib, dynamo, profiler, utils  # noqa: E402

__version__ = TORCH_VERSION

# torch_npu makes no methods for these dtypes. MindSpeed sends tensors of all other dtypes between models.
unsupported_dtype = [_OTHER_DTYPES[name] for name in ("quint8", "quint4x2", "quint2x4", "qint32", "qint8")]

_OPERATORS = {**_namespaces["torch_npu"], **{name: getattr(_kernels, name) for name in _kernels.__all__}}
globals().update(_OPERATORS)

for _name, _function in _OPERATORS.items():
    if not _name.startswith("_") and _library.find("npu", _name) is None:
        _library.define(f"npu::{_name}", "(...) -> Any")
        _library.impl(f"npu::{_name}", "default", _function)


def empty_with_swapped_memory(size, *, dtype=None, device=None):
    """Return an empty tensor in CPU memory that the device can access. On a CPU this is any tensor."""
    return _empty(size, dtype=dtype, device=device)


def npu_format_cast(tensor, acl_format):
    """Return the tensor itself, because there are no device-specific memory formats here."""
    return tensor


def get_npu_format(tensor) -> int:
    """Return 2, the number of the plain memory format (ND)."""
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
