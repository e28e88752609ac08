"""torch.cuda.FloatTensor and the other legacy types, as constructors and for isinstance."""

from .._values.dtype import ALL
from ..tensor import Tensor
from ..tensor._legacy import legacy_new

_DTYPES = {
    "DoubleTensor": "float64",
    "FloatTensor": "float32",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
    "ComplexDoubleTensor": "complex128",
    "ComplexFloatTensor": "complex64",
}


class TensorType(type):
    """The metaclass of these types. A call makes a tensor, and isinstance compares dtype and device."""

    def __call__(cls, *args, **kwargs):
        return legacy_new(args, kwargs, ALL[cls.dtype_name], cls.device_name)

    def __instancecheck__(cls, obj):
        return (
            isinstance(obj, Tensor)
            and obj.dtype == ALL[cls.dtype_name]
            and obj.device.type == cls.device_name
        )


def make_types(device_name: str) -> dict:
    """Return {name: class} for one device."""
    module = f"torch.{device_name}"
    return {
        name: TensorType(name, (), {"dtype_name": dtype, "device_name": device_name, "__module__": module})
        for name, dtype in _DTYPES.items()
    }
