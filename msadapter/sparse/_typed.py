"""The old constructors torch.sparse.FloatTensor, torch.sparse.DoubleTensor and so on.

They give coo tensors of the CPU: from indices and values with or without a size, or of a size without elements. The dtype is that
of the values, as in PyTorch; only a tensor without elements takes the dtype of the name.
"""

from __future__ import annotations

import numpy as np

from .._values.base import Base
from .._values.device import device as Device
from .._values.layout import LAYOUTS
from .._values.size import Size
from ..tensor._legacy import no_signature
from ._construct import sparse_coo_tensor

_SIGNATURES = """* (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""


def _is_size(value) -> bool:
    return isinstance(value, tuple | list) and all(_is_index(n) for n in value)


def _is_index(value) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _new(args, kwargs, dtype):
    """Return the tensor of a constructor for `dtype`.

    Raises:
        TypeError: no signature fits, or the elements are a sequence.
        RuntimeError: the argument device names another kind of device than the CPU.
    """
    kwargs = dict(kwargs)
    device = kwargs.pop("device", None)
    if device is not None and Device(device).type != "cpu":
        raise RuntimeError(
            f"legacy constructor expects device type: cpu but device type: {Device(device).type} was passed"
        )
    if not kwargs and all(map(_is_index, args)):
        return sparse_coo_tensor(tuple(map(int, args)) or (0,), dtype=dtype)
    names = ("size",) if len(args) + len(kwargs) == 1 else ("indices", "values", "size")
    if len(args) > len(names) or set(kwargs) - set(names[len(args) :]):
        raise no_signature(args, kwargs, _SIGNATURES)
    found = dict(zip(names, args, strict=False)) | kwargs
    if len(names) == 1 and args and isinstance(args[0], tuple | list) and not isinstance(args[0], Size):
        raise TypeError(
            "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a "
            "strided tensor and convert it to sparse via to_sparse."
        )
    tensors = [found.get(name) for name in names if name != "size"]
    size = [found["size"]] if "size" in found else []
    if not all(isinstance(one, Base) for one in tensors) or not all(map(_is_size, size)):
        raise no_signature(args, kwargs, _SIGNATURES)
    if not tensors:
        return sparse_coo_tensor(tuple(size[0]), dtype=dtype)
    return sparse_coo_tensor(*tensors, *map(tuple, size))


def typed(name: str, dtype) -> type:
    """Return the constructor `name`, such as FloatTensor. isinstance tells coo tensors of its dtype on the CPU."""
    coo = LAYOUTS["sparse_coo"]

    class _Meta(type):
        def __instancecheck__(cls, instance):
            return (
                isinstance(instance, Base)
                and instance.layout is coo
                and instance.dtype is dtype
                and instance.device.type == "cpu"
            )

        def __call__(cls, *args, **kwargs):
            return _new(args, kwargs, dtype)

    values = {
        "__module__": "torch.sparse",
        "dtype": dtype,
        "layout": coo,
        "is_sparse": True,
        "is_cuda": False,
    }
    return _Meta(name, (), values)
