"""Functions that create tensors from sizes and numbers."""

from __future__ import annotations

import warnings

from .._errors import unsupported
from .._host import extensions
from .._values import determinism
from .._values.base import place
from .._values.device import ACCELERATORS, META_TAG, default_device, resolve
from .._values.dtype import ALL, STORED, STORED_WIDE, cpp_name
from .._values.layout import format_strides, permuted_strides
from .._values.layout import layout as Layout
from ._declare import _C, op, raw, raw_empty
from ._geometry import contiguous_strides, is_dense

# the options that every such function takes after its own arguments
OPTIONS = (
    "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? requires_grad=False, "
    "bool? pin_memory=False"
)
LIKE = OPTIONS + ", MemoryFormat? memory_format=None"


def dtype_of(name: str):
    """Return the dtype with this name."""
    return ALL[name]


def number_type(*values):
    """Return the dtype that PyTorch infers from Python numbers: int64, the default float dtype or its complex
    dtype.
    """
    if any(isinstance(v, complex) for v in values):
        return _C.default_dtype().to_complex()
    return _C.default_dtype() if any(isinstance(v, float) for v in values) else dtype_of("int64")


def _checked_layout(layout) -> None:
    if _is_sparse(layout):
        raise unsupported(f"{layout}", "only strided tensors are supported")


def _is_sparse(layout) -> bool:
    """Return whether this is another layout than the strided one. They store only some elements: no zeros, for example."""
    if layout is None:
        return False
    if not isinstance(layout, Layout):
        raise TypeError(f"argument 'layout' must be torch.layout, not {type(layout).__name__}")
    return layout._name != "strided"


def _sparse_zeros(size, layout, dtype, device, requires_grad, like=None, name="empty"):
    """Return a tensor of a sparse layout that stores nothing, for the function ``name``.

    The dtype and the device are those of ``like`` by default.
    """
    if like is not None:
        dtype, device = dtype or like.dtype, device or like.device
    make = extensions.sparse_conversion.value["zeros"]
    return make(checked_sizes(size), layout, dtype, device, bool(requires_grad), name)


def finish(result, layout, device, requires_grad: bool, like=None, pin_memory: bool | None = False):
    """Finish the creation of a tensor: check the layout, set the device and ``requires_grad``.

    Without ``device`` the result is on the device of ``like``.
    """
    _checked_layout(layout)
    if device is None and like is not None:
        result = _C.placed(result, _C.device_tag(like))
    elif device is not None or default_device().type != "cpu":
        result = place(result, device)
    if pin_memory and _C.has_own_memory():
        result = _C.pinned(result)
    if requires_grad:
        check_differentiable(result.dtype)
        result.requires_grad = True
    return result


def check_differentiable(dtype) -> None:
    """RuntimeError if a new tensor of this dtype cannot require grad."""
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")


def finish_empty(result, layout, device, requires_grad: bool, like=None, pin_memory: bool | None = False):
    """Finish the creation of a tensor without values, as `finish` does, and fill it if the program asked for that."""
    if determinism.fills_memory():
        determinism.fill(result)
    return finish(result, layout, device, requires_grad, like, pin_memory)


def device_tag(device, like=None) -> int:
    """Return the tag of the device on which the new tensor will be."""
    if device is None and like is not None:
        return _C.device_tag(like)
    d = resolve(device)
    if d.type == "meta":
        return META_TAG
    return d.index + 1 if d.type in ACCELERATORS else 0


def checked_geometry(size, stride):
    """Return ``size``. RuntimeError if a new tensor cannot have these strides."""
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: {len(stride)} and {len(size)}")
    checked_sizes(size)
    reach = 0 if 0 in size else sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1
    if min(stride, default=0) < 0 or reach >= 2**60:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}"
        )
    return size


def checked_sizes(size) -> list[int]:
    """Return ``size``. RuntimeError if it contains a negative number."""
    for s in size:
        if s < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {s}: {list(size)}")
    return size


def _format_strides(size, memory_format):
    return format_strides(size, memory_format._name if memory_format is not None else "contiguous_format")


def _kept_strides(tensor):
    """Return the strides of an empty_like: those of a dense tensor, else dense strides in the same order of dims."""
    if tensor.numel() == 0 and _C.device_tag(tensor) not in (0, META_TAG):
        return None  # on an NPU, MindSpore refuses to write an empty tensor with strides of 0
    if tensor.numel() == 0 or is_dense(tensor.shape, tensor.stride()):
        return tensor.stride()
    shape, strides = tensor.shape, tensor.stride()
    order = list(reversed(range(tensor.ndim)))  # from the innermost dim to the outermost
    # An insertion sort, as in PyTorch: a stride of 0 compares with no other, so the order of the sort shows.
    for end in range(1, tensor.ndim):
        moved = end
        for k in reversed(range(end)):
            inner, outer = order[k], order[moved]
            if 0 in (strides[inner], strides[outer]):
                continue
            if (strides[inner], shape[inner]) > (strides[outer], shape[outer]):
                order[k], order[moved], moved = outer, inner, k
            elif strides[inner] < strides[outer]:
                break
    return permuted_strides(shape, order[::-1])


def empty_as(tensor, dtype, memory_format):
    """Return an uninitialised tensor with the shape and strides of ``tensor``, or with the memory format."""
    preserve = memory_format is None or memory_format._name == "preserve_format"
    strides = _kept_strides(tensor) if preserve else _format_strides(tensor.shape, memory_format)
    return raw_empty(tensor.shape, strides, dtype or tensor.dtype)


def filled(tensor, value):
    """Set every element of ``tensor`` to ``value`` and return it."""
    _C.copy_into(tensor, raw.FillScalar([], value, tensor.dtype))
    return tensor


# ---- from sizes
@op(
    f"empty(int[] size, *, {LIKE}) -> Tensor",
    forms="fo",
    native="body",
)
def empty(size, *, dtype, layout, device, requires_grad, pin_memory, memory_format):
    """Return an uninitialised tensor of shape ``size``."""
    if _is_sparse(layout):
        return _sparse_zeros(size, layout, dtype, device, requires_grad)
    size = checked_sizes(size)
    return finish_empty(
        raw_empty(size, _format_strides(size, memory_format), dtype or _C.default_dtype()),
        layout,
        device,
        requires_grad,
        pin_memory=pin_memory,
    )


@op(
    f"zeros(int[] size, *, {OPTIONS}) -> Tensor",
    forms="fo",
    native="body",
)
def zeros(size, *, dtype, layout, device, requires_grad, pin_memory):
    if min(size, default=0) < 0:
        raise RuntimeError("zeros: Dimension size must be non-negative.")
    if _is_sparse(layout):
        return _sparse_zeros(size, layout, dtype, device, requires_grad, name="zeros")
    made = raw.Zeros(size, dtype or _C.default_dtype())
    return finish(made, layout, device, requires_grad, pin_memory=pin_memory)


@op(
    f"ones(int[] size, *, {OPTIONS}) -> Tensor",
    forms="fo",
    native="body",
)
def ones(size, *, dtype, layout, device, requires_grad, pin_memory):
    made = raw.Ones(checked_sizes(size), dtype or _C.default_dtype())
    return finish(made, layout, device, requires_grad, pin_memory=pin_memory)


def _fill_type(value):
    return dtype_of("bool") if isinstance(value, bool) else number_type(value)


_C_NAMES = {
    "int32": "int",
    "float32": "float",
    "float64": "double",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
}


def _real(number: complex, dtype):
    """Return a complex number as one that a real dtype holds. RuntimeError if it has an imaginary part."""
    if dtype.is_bool:
        return number != 0
    if number.imag:
        name = _C_NAMES.get(dtype.name, f"{dtype.name}_t")
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    return number.real


def _filled(size, number, dtype):
    """Return a tensor of one number, which the dtype must hold. MindSpore's operator takes real numbers only."""
    size = checked_sizes(size)
    if dtype is STORED["complex32"]:  # where a part that is too large becomes infinite
        return raw.Cast(_filled(size, number, STORED_WIDE[dtype]), dtype)
    if not isinstance(number, complex):
        return raw.FillScalar(size, number, dtype)
    if not dtype.is_complex:
        return raw.FillScalar(size, _real(number, dtype), dtype)
    for part in (number.real, number.imag):
        raw.FillScalar([], part, dtype.to_real())  # refuses a part that the type does not hold
    return raw.AddExt(raw.FillScalar(size, 0, dtype), number, 1)


@op(
    f"full(int[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor",
    forms="fo",
    native="body",
)
def full(size, fill_value, *, dtype, layout, device, requires_grad, pin_memory):
    """Return a tensor filled with one value. The dtype is inferred from the value by default."""
    made = _filled(size, fill_value, dtype or _fill_type(fill_value))
    return finish(made, layout, device, requires_grad, pin_memory=pin_memory)


@op(f"scalar_tensor(Scalar s, *, {OPTIONS}) -> Tensor", forms="f")
def scalar_tensor(s, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(_filled([], s, dtype or _C.default_dtype()), layout, device, requires_grad)


@op(f"empty_strided(int[] size, int[] stride, *, {OPTIONS}) -> Tensor", forms="f")
def empty_strided(size, stride, *, dtype, layout, device, requires_grad, pin_memory):
    """Return an uninitialised tensor with these sizes and strides (in elements)."""
    return finish_empty(
        raw_empty(checked_geometry(size, stride), stride, dtype or _C.default_dtype()),
        layout,
        device,
        requires_grad,
    )


@op(f"empty_permuted(int[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor", forms="f")
def empty_permuted(size, physical_layout, *, dtype, layout, device, requires_grad, pin_memory):
    """Return an uninitialised tensor whose dims lie in memory in the order ``physical_layout``."""
    if len(size) != len(physical_layout):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(physical_layout)}"
        )
    if sorted(physical_layout) != list(range(len(size))):
        raise RuntimeError(
            "Duplicate dim not allowed" if len(set(physical_layout)) < len(size) else "Dimension out of range"
        )
    return finish_empty(
        raw_empty(checked_sizes(size), permuted_strides(size, physical_layout), dtype or _C.default_dtype()),
        layout,
        device,
        requires_grad,
    )


@op(f"eye(int n, int? m=None, *, {OPTIONS}) -> Tensor", forms="fo")
def eye(n, m, *, dtype, layout, device, requires_grad, pin_memory):
    """Return an n x m (or n x n) matrix with ones on the diagonal."""
    return finish(
        raw.Eye(n, n if m is None else m, dtype or _C.default_dtype()), layout, device, requires_grad
    )


# ---- like another tensor
@op(
    f"empty_like(Tensor self, *, {LIKE}) -> Tensor",
    forms="f",
    pointwise=True,
    native="body",
)
def empty_like(self, *, dtype, layout, device, requires_grad, pin_memory, memory_format):
    if _is_sparse(layout):  # zeros_like and empty have them
        raise NotImplementedError(
            "Could not run 'aten::empty_strided' with arguments from the 'SparseCPU' backend. This could be because the operator "
            "doesn't exist for this backend."
        )
    made = empty_as(self, dtype, memory_format)
    return finish_empty(made, layout, device, requires_grad, self, pin_memory)


def _shape_tells_strides(tensor) -> bool:
    """Return whether MindSpore's operators give the result the strides of `tensor`.

    They choose other strides for dims with at most one element.
    """
    return min(tensor.shape, default=2) > 1 or list(tensor.stride()) == list(contiguous_strides(tensor.shape))


def _like(self, value, layout, device, requires_grad, memory_format, dtype):
    return finish(filled(empty_as(self, dtype, memory_format), value), layout, device, requires_grad, self)


@op(
    f"zeros_like(Tensor self, *, {LIKE}) -> Tensor",
    forms="f",
    pointwise=True,
    native="body",
)
def zeros_like(self, *, dtype, layout, device, requires_grad, pin_memory, memory_format):
    if _is_sparse(layout):
        return _sparse_zeros(self.shape, layout, dtype, device, requires_grad, self)
    if memory_format is None and _shape_tells_strides(self):
        return finish(raw.ZerosLikeExt(self, dtype), layout, device, requires_grad, self)
    return _like(self, 0, layout, device, requires_grad, memory_format, dtype)


@op(
    f"ones_like(Tensor self, *, {LIKE}) -> Tensor",
    forms="f",
    pointwise=True,
    native="body",
)
def ones_like(self, *, dtype, layout, device, requires_grad, pin_memory, memory_format):
    if memory_format is None and _shape_tells_strides(self):
        return finish(raw.OnesLikeExt(self, dtype), layout, device, requires_grad, self)
    return _like(self, 1, layout, device, requires_grad, memory_format, dtype)


@op(
    f"full_like(Tensor self, Scalar fill_value, *, {LIKE}) -> Tensor",
    forms="f",
    pointwise=True,
)
def full_like(self, fill_value, *, dtype, layout, device, requires_grad, pin_memory, memory_format):
    dtype = dtype or self.dtype
    if isinstance(fill_value, complex) and not dtype.is_complex:
        fill_value = _real(fill_value, dtype)
    if memory_format is None and _shape_tells_strides(self):
        return finish(raw.FullLike(self, fill_value, dtype), layout, device, requires_grad, self)
    return _like(self, fill_value, layout, device, requires_grad, memory_format, dtype)


@op(
    f"Tensor.new_empty(Tensor self, int[] size, *, {OPTIONS}) -> Tensor",
    forms="m",
    native="body",
)
def new_empty(self, size, *, dtype, layout, device, requires_grad, pin_memory):
    if _is_sparse(layout):
        return _sparse_zeros(size, layout, dtype, device, requires_grad, self)
    return finish_empty(
        raw_empty(checked_sizes(size), None, dtype or self.dtype), layout, device, requires_grad, self
    )


@op(f"Tensor.new_empty_strided(Tensor self, int[] size, int[] stride, *, {OPTIONS}) -> Tensor", forms="m")
def new_empty_strided(self, size, stride, *, dtype, layout, device, requires_grad, pin_memory):
    return finish_empty(
        raw_empty(checked_geometry(size, stride), stride, dtype or self.dtype),
        layout,
        device,
        requires_grad,
        self,
    )


@op(
    f"Tensor.new_zeros(Tensor self, int[] size, *, {OPTIONS}) -> Tensor",
    forms="m",
    native="body",
)
def new_zeros(self, size, *, dtype, layout, device, requires_grad, pin_memory):
    if _is_sparse(layout):
        return _sparse_zeros(size, layout, dtype, device, requires_grad, self)
    return finish(raw.Zeros(checked_sizes(size), dtype or self.dtype), layout, device, requires_grad, self)


@op(f"Tensor.new_ones(Tensor self, int[] size, *, {OPTIONS}) -> Tensor", forms="m")
def new_ones(self, size, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(raw.Ones(checked_sizes(size), dtype or self.dtype), layout, device, requires_grad, self)


@op(f"Tensor.new_full(Tensor self, int[] size, Scalar fill_value, *, {OPTIONS}) -> Tensor", forms="m")
def new_full(self, size, fill_value, *, dtype, layout, device, requires_grad, pin_memory):
    return finish(_filled(size, fill_value, dtype or self.dtype), layout, device, requires_grad, self)


# ---- ranges
@op(
    f"arange(Scalar? start=None, Scalar? end=None, Scalar step=1, *, {OPTIONS}) -> Tensor",
    forms="fo",
    native="body",
    out_dtype="fills",
)
def arange(start, end, step, *, dtype, layout, device, requires_grad, pin_memory):
    """Return the numbers from ``start`` (default 0) up to, but not including, ``end``."""
    if end is None:
        if start is None:
            raise TypeError("arange() received an invalid combination of arguments")
        start, end = 0, start
    start = 0 if start is None else start
    _check_real(start, end, step)
    dtype = dtype or number_type(start, end, step)
    if any(isinstance(number, float) for number in (start, end, step)):  # MindSpore takes numbers of one kind
        start, end, step = float(start), float(end), float(step)
    return finish(raw.Arange(start, end, step, dtype), layout, device, requires_grad)


def _check_real(*numbers) -> None:
    if any(isinstance(number, complex) for number in numbers):
        raise RuntimeError("value cannot be converted to type double without overflow")


@op(
    f"range(Scalar start=0, Scalar? end=None, Scalar step=1, *, {OPTIONS}) -> Tensor",
    forms="fo",
    out_dtype="fills",
)
def range_(start, end, step, *, dtype, layout, device, requires_grad, pin_memory):
    """Like arange, but with ``end`` included. PyTorch has deprecated this function."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's "
        "range builtin. Instead, use torch.arange, which produces values in [start, end).",
        stacklevel=2,
    )
    start, end = (0, start) if end is None else (start, end)
    _check_real(start, end, step)
    dtype = dtype or _C.default_dtype()
    if not dtype.is_floating_point:
        start, end, step = int(start), int(end), int(step)
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = int((end - start) / step) + 1
    beyond = start + step * (count - 0.5 if dtype.is_floating_point else count)
    return finish(raw.Arange(start, beyond, step, dtype), layout, device, requires_grad)


def _scalar(value):
    if hasattr(value, "item"):
        if value.ndim != 0:
            raise RuntimeError(
                f"linspace only supports 0-dimensional start and end tensors, but got start with {value.ndim} dimension(s)"
            )
        return value.item()
    return value


def _space_type(name, dtype, start, end):
    """Return the dtype of the result of linspace or logspace. RuntimeError if it is real and a number is complex."""
    if not (isinstance(start, complex) or isinstance(end, complex)):
        return dtype or _C.default_dtype()
    inferred = _C.default_dtype().to_complex()
    if dtype is not None and not dtype.is_complex:
        wanted = dtype.scalar_name
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {cpp_name(inferred)} can't be safely cast to passed dtype {wanted}"
        )
    return dtype or inferred


@op(
    f"linspace(TensorOrScalar start, TensorOrScalar end, int steps, *, {OPTIONS}) -> Tensor",
    forms="fo",
    out_dtype="fills",
)
def linspace(start, end, steps, *, dtype, layout, device, requires_grad, pin_memory):
    """Return ``steps`` evenly spaced numbers from ``start`` to ``end``, both included."""
    start, end = _scalar(start), _scalar(end)
    return finish(
        raw.LinSpaceExt(start, end, steps, _space_type("linspace", dtype, start, end)),
        layout,
        device,
        requires_grad,
    )


@op(
    f"logspace(TensorOrScalar start, TensorOrScalar end, int steps, float base=10.0, *, {OPTIONS}) -> Tensor",
    forms="fo",
    out_dtype="fills",
)
def logspace(start, end, steps, base, *, dtype, layout, device, requires_grad, pin_memory):
    """Return ``base`` to the powers of linspace(start, end, steps)."""
    start, end = _scalar(start), _scalar(end)
    return finish(
        raw.LogSpaceExt(start, end, steps, base, _space_type("logspace", dtype, start, end)),
        layout,
        device,
        requires_grad,
    )
