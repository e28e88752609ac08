"""Quantised tensors: integers with a scale and a zero point, for each tensor or for each slice along a dim.

The integers are an ordinary tensor. Functions that only move elements work on them; all others are refused, because they would have
to be defined for integers. ``dequantize`` returns the numbers.
"""

from __future__ import annotations

import copy
import math

from . import ops
from ._errors import unsupported
from ._host.native import load
from ._values import determinism
from ._values.dtype import ALL, OTHERS
from ._values.layout import FORMATS
from .tensor import Size, Tensor

_C = load()
# quantised dtype: the dtype of the integers, and their range
KINDS = {
    OTHERS["qint8"]: (ALL["int8"], -128, 127),
    OTHERS["quint8"]: (ALL["uint8"], 0, 255),
    OTHERS["qint32"]: (ALL["int32"], -(2**31), 2**31 - 1),
}


class qscheme:
    """How a tensor is quantised: with one scale or with one for each slice."""

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


SCHEMES = {
    name: qscheme(name)
    for name in (
        "per_tensor_affine",
        "per_tensor_symmetric",
        "per_channel_affine",
        "per_channel_symmetric",
        "per_channel_affine_float_qparams",
    )
}
globals().update(SCHEMES)
_TENSOR, _CHANNEL = SCHEMES["per_tensor_affine"], SCHEMES["per_channel_affine"]
_FLOAT_CHANNEL = SCHEMES["per_channel_affine_float_qparams"]


def _refusal(name: str) -> NotImplementedError:
    return unsupported(f"torch.{name}", "quantised tensors are not supported")


def _integers_of(dtype) -> tuple:
    if dtype not in KINDS:
        if dtype in (OTHERS["quint4x2"], OTHERS["quint2x4"]):
            raise unsupported(f"{dtype}", "several numbers in a byte are not supported")
        raise RuntimeError(f"ScalarType {dtype.scalar_name} is not supported in new_qtensor.")
    return KINDS[dtype]


class QuantizedTensor(Tensor):
    """A quantised tensor. ``torch.quantize_per_tensor`` and ``torch.quantize_per_channel`` make them."""

    _source = None  # the quantised tensor of which this one is a view

    def __new__(cls, *args, **kwargs):
        raise TypeError(
            "quantised tensors are made by torch.quantize_per_tensor and torch.quantize_per_channel"
        )

    @classmethod
    def _made(cls, integers, dtype, scale, zero_point, axis=None) -> QuantizedTensor:
        seed = _C.raw_empty((1,), None, integers.dtype)
        made = _C.raw_view(_C.to_meta(seed), tuple(integers.shape), (0,) * integers.ndim, 0, integers.dtype)
        made.__class__ = cls
        made.__dict__.update(_integers=integers, _kind=dtype, _scale=scale, _zero=zero_point, _axis=axis)
        return made

    def _viewed(self, integers) -> QuantizedTensor:
        """Return a tensor of integers that may be a view of this one's."""
        made = self._with(integers)
        if integers._is_view():
            made.__dict__["_source"] = self if self._source is None else self._source
        return made

    def _with(self, integers) -> QuantizedTensor:
        return self._made(integers, self._kind, self._scale, self._zero, self._axis)

    dtype = property(lambda self: self._kind)
    shape = property(lambda self: Size(self._integers.shape))
    ndim = property(lambda self: self._integers.ndim)
    device = property(lambda self: self._integers.device)
    is_quantized = property(lambda self: True)
    is_meta = property(lambda self: False)
    is_cpu = property(lambda self: self._integers.is_cpu)
    is_cuda = property(lambda self: self._integers.is_cuda)
    is_npu = property(lambda self: self._integers.is_npu)
    requires_grad = property(lambda self: False)
    grad_fn = property(lambda self: None)
    is_leaf = property(lambda self: True)
    itemsize = property(lambda self: self._kind.itemsize)

    def requires_grad_(self, requires_grad=True):
        if requires_grad:
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        return self

    # ---- what the numbers are
    def int_repr(self):
        """Return the integers."""
        return self._integers.contiguous().clone()

    def dequantize(self):
        """Return the numbers in float32."""
        if self._axis is None:
            return (self._integers.to(ALL["float32"]) - float(self._zero)) * self._scale
        scale, zero = (self._along(x) for x in (self._scale, self._zero))
        return ((self._integers.to(ALL["float64"]) - zero) * scale).to(ALL["float32"])

    def _along(self, values):
        shape = [1] * self.ndim
        shape[self._axis] = -1
        return values.reshape(shape)

    def qscheme(self) -> qscheme:
        if self._axis is None:
            return _TENSOR
        return _FLOAT_CHANNEL if self._zero.is_floating_point() else _CHANNEL

    def _one_of_tensor(self, name: str):
        if self._axis is not None:
            raise RuntimeError(
                f"Expected quantizer->qscheme() == kPerTensorAffine to be true, but got false: {name}"
            )

    def q_scale(self) -> float:
        self._one_of_tensor("q_scale")
        return self._scale

    def q_zero_point(self) -> int:
        self._one_of_tensor("q_zero_point")
        return self._zero

    def _one_of_channels(self, name: str):
        if self._axis is None:
            raise RuntimeError(
                "Expected quantizer->qscheme() == kPerChannelAffine || quantizer->qscheme() == kPerChannelAffineFloatQParams "
                f"to be true, but got false: {name}"
            )

    def q_per_channel_scales(self):
        self._one_of_channels("q_per_channel_scales")
        return self._scale.clone()

    def q_per_channel_zero_points(self):
        self._one_of_channels("q_per_channel_zero_points")
        return self._zero.clone()

    def q_per_channel_axis(self) -> int:
        self._one_of_channels("q_per_channel_axis")
        return self._axis

    # ---- memory
    def stride(self, dim=None):
        return self._integers.stride() if dim is None else self._integers.stride(dim)

    def storage_offset(self) -> int:
        return self._integers.storage_offset()

    def is_contiguous(self, memory_format=None) -> bool:
        return (
            self._integers.is_contiguous()
            if memory_format is None
            else self._integers.is_contiguous(memory_format=memory_format)
        )

    def data_ptr(self) -> int:
        return self._integers.data_ptr()

    def element_size(self) -> int:
        return self._kind.itemsize

    def detach(self):
        return self._with(self._integers)

    def get_device(self) -> int:
        return self._integers.get_device()

    @property
    def data(self):
        return self.detach()

    def to(self, *args, **kwargs):
        found = self._integers.to(*args, **kwargs)
        if found.dtype is not self._integers.dtype:
            raise _refusal("Tensor.to of another dtype")
        return self if found is self._integers else self._with(found)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self._with(copy.deepcopy(self._integers, memo))
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        raise _refusal("save")

    def untyped_storage(self):
        raise _refusal("Tensor.untyped_storage")

    storage = _typed_storage = untyped_storage

    def numpy(self, *, force=False):
        raise TypeError(
            "can't convert a quantised tensor to numpy. Use Tensor.dequantize() or Tensor.int_repr() first."
        )

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    def tolist(self):
        return self.dequantize().tolist()

    def item(self):
        return self.dequantize().item()

    def __repr__(self, *, tensor_contents=None) -> str:
        values = repr(self.dequantize())
        inner = values[: values.rindex(")")]
        if self._axis is None:
            how = f"scale={self._scale}, zero_point={self._zero}"
        else:
            how = f"scale={self._scale}, zero_point={self._zero}, axis={self._axis}"
        return f"{inner}, size={tuple(self.shape)}, dtype={self._kind}, quantization_scheme={self.qscheme()}, {how})"

    def __getitem__(self, index):
        if self._axis is not None:
            raise _refusal("Tensor.__getitem__ with a scale for each channel")
        return self._viewed(self._integers[index])

    def __iter__(self):
        return iter([self[i] for i in range(self.shape[0])])

    def copy_(self, src, non_blocking=False):
        """Quantise ``src`` with this tensor's scale and write it here."""
        if isinstance(src, QuantizedTensor):
            self._integers.copy_(src._integers)
            self.__dict__.update(_scale=src._scale, _zero=src._zero, _axis=src._axis)
            return self
        if self._axis is None:
            self._integers.copy_(_rounded(src, self._scale, self._zero, self._kind))
        else:
            self._integers.copy_(_rounded(src, self._along(self._scale), self._along(self._zero), self._kind))
        return self

    def resize_(self, *size, memory_format=None):
        determinism.alert("quantized_resize_cpu_")
        if self._axis is not None:
            raise _refusal("Tensor.resize_ with a scale for each channel")
        options = {} if memory_format is None else {"memory_format": memory_format}
        self._integers.resize_(*size, **options)
        return self

    @property
    def _base(self):
        """The quantised tensor of which this one is a view, or None."""
        return self._source

    def _is_view(self) -> bool:
        return self._source is not None

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = function.__name__.rpartition(".")[2]
        if name not in _MOVING or not args or not isinstance(args[0], QuantizedTensor):
            if name == "equal":
                return _equal(*args)
            raise _refusal(name)
        own = args[0]
        if own._axis is not None and name not in _KEEPING:
            raise RuntimeError("Setting strides is possible only on uniformly quantized tensor")
        found = function(own._integers, *args[1:], **kwargs)
        if name in _ORDERING:
            return type(found)((own._with(found[0]), found[1]))
        if isinstance(found, (tuple, list)):
            return type(found)(own._viewed(x) for x in found)
        return own if found is own._integers else own._viewed(found)


_KEEPING = {"clone", "contiguous", "detach", "alias", "_contiguous_copy"}
_ORDERING = {"topk", "sort"}  # a larger integer is a larger number
_MOVING = _KEEPING | _ORDERING | {
    "as_strided", "chunk", "expand", "expand_as", "flatten", "flip", "index_select", "masked_select", "movedim", "moveaxis",
    "narrow", "permute", "ravel", "repeat", "reshape", "reshape_as", "select", "split", "squeeze", "swapaxes", "swapdims", "t",
    "tensor_split", "transpose", "unbind", "unflatten", "unfold", "unsqueeze", "view", "view_as", "T", "mT",
}  # fmt: skip


def _equal(a, b) -> bool:
    if not isinstance(a, QuantizedTensor) or not isinstance(b, QuantizedTensor):
        raise _refusal("equal of a quantised tensor and another one")
    same = a._kind is b._kind and a._axis == b._axis and bool(ops.equal(a._integers, b._integers))
    if a._axis is None:
        return same and a._scale == b._scale and a._zero == b._zero
    return same and bool(ops.equal(a._scale, b._scale)) and bool(ops.equal(a._zero, b._zero))


def _rounded(x, scale, zero_point, dtype):
    """Return the integers of numbers: rounded, ties to even, and limited to the range."""
    kind, low, high = _integers_of(dtype)
    if isinstance(scale, Tensor):
        inverse = 1.0 / scale.to(ALL["float32"])
        zero_point = zero_point.to(ALL["float32"])
    else:
        inverse = float(ops.reciprocal(ops.tensor(scale, dtype=ALL["float32"])))
    # The zero point is added before the rounding, so that ties depend on it, as in PyTorch.
    steps = ops.round(x.to(ALL["float32"]) * inverse + zero_point).to(ALL["float64"])
    found = ops.clamp(ops.nan_to_num(steps, nan=float(low)), low, high).to(kind)
    last = FORMATS["channels_last"]
    return found if x.ndim == 4 and x.is_contiguous(memory_format=last) else found.contiguous()


def _check_numbers(x) -> None:
    if x.dtype is not ALL["float32"]:
        raise RuntimeError(f"Quantize only works on Float Tensor, got {x.dtype.scalar_name}")


def _check_point(zero_point: int, dtype) -> None:
    _, low, high = _integers_of(dtype)
    if not low <= zero_point <= high:
        side = "below lower" if zero_point < low else "above upper"
        raise RuntimeError(f"quantize_tensor_per_tensor_affine zero_point {zero_point} is {side} bound.")


def quantize_per_tensor(input, scale, zero_point, dtype):
    """Return the tensor in integers ``round(input / scale) + zero_point`` of the quantised dtype."""
    if not isinstance(input, Tensor):
        raise unsupported("torch.quantize_per_tensor of a list of tensors")
    _check_numbers(input)
    scale, zero_point = float(scale), int(zero_point)
    _check_point(zero_point, dtype)
    return QuantizedTensor._made(_rounded(input.detach(), scale, zero_point, dtype), dtype, scale, zero_point)


def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    """Quantise with the scale and zero point that the values of ``input`` need."""
    _check_numbers(input)
    _, low, high = _integers_of(dtype)
    if reduce_range:
        low, high = (low // 2, high // 2)
    return quantize_per_tensor(input, *chosen(input, low, high), dtype)


def quantize_per_channel(input, scales, zero_points, axis, dtype):
    """Quantise with a scale and a zero point for each slice along ``axis``. Floating point zero points are not rounded."""
    _check_numbers(input)
    if not 0 <= axis < input.ndim:
        raise RuntimeError(
            f"Channel axis out of range in per channel affine quantization. Got: {axis}Expected: [0, {input.ndim})"
        )
    if scales.numel() != zero_points.numel() or scales.numel() != input.shape[axis]:
        raise RuntimeError(
            f"length of scales must equal to channel: {scales.numel()} scales and {zero_points.numel()} zero points for "
            f"{input.shape[axis]} slices"
        )
    if zero_points.is_floating_point():  # another scheme, whose zero points need not be integers of the dtype
        scales, zero_points = scales.detach().to(ALL["float32"]), zero_points.detach().to(ALL["float32"])
    else:
        scales, zero_points = scales.detach().to(ALL["float64"]), zero_points.detach().to(ALL["int64"])
        for point in zero_points.tolist():
            _check_point(point, dtype)
    shape = [1] * input.ndim
    shape[axis] = -1
    integers = _rounded(input.detach(), scales.reshape(shape), zero_points.reshape(shape), dtype)
    return QuantizedTensor._made(integers, dtype, scales, zero_points, axis)


def dequantize(tensors):
    """Return the numbers of a quantised tensor, or of each of several, in float32."""
    if isinstance(tensors, (tuple, list)):
        return tuple(x.dequantize() for x in tensors)
    return tensors.dequantize()


def _empty_affine_quantized(
    size,
    *,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=None,
    scale=1.0,
    zero_point=0,
    memory_format=None,
):
    """Return a quantised tensor whose integers are not set."""
    kind, _, _ = _integers_of(dtype)
    options = {} if memory_format is None else {"memory_format": memory_format}
    integers = ops.empty(tuple(size), dtype=kind, device=device, **options)
    return QuantizedTensor._made(integers, dtype, float(scale), int(zero_point))


_SMALLEST = 6.0999998822808266e-05  # 6.1e-5 in float32; smaller scales are not used, because products of integers would lose them


def chosen(x, low: int, high: int) -> tuple[float, int]:
    """Return the scale and the zero point with which integers from ``low`` to ``high`` hold the values of a tensor, and zero."""
    if x.numel():
        least, most = (min(float(x.min()), 0.0), max(float(x.max()), 0.0))
    else:
        least = most = 0.0
    scale = (most - least) / (high - low)
    if scale == 0.0 or math.isinf(_single(1.0 / _single(scale)) if _single(scale) else math.inf):
        scale = 0.1
    if scale < _SMALLEST:
        if least == 0.0:
            most = _SMALLEST * (high - low)
        elif most == 0.0:
            least = -_SMALLEST * (high - low)
        else:
            least, most = (v * (_SMALLEST / _single(scale)) for v in (least, most))
        scale = _SMALLEST
    from_least, from_most = low - least / scale, high - most / scale
    nearer_least = abs(low) + abs(least / scale) < abs(high) + abs(most / scale)
    start = from_least if nearer_least else from_most
    point = low if start < low else high if start > high else round(start)
    return scale, point


def _single(x: float) -> float:
    return float(ops.tensor(x, dtype=ALL["float32"])) if math.isfinite(x) else x
