"""The Tensor class: everything that is not an operator of the table."""

from __future__ import annotations

import sys
import warnings
from inspect import getattr_static

import numpy as np

from .. import ops
from .._errors import unsupported
from .._host import extensions
from .._host.native import load_operators
from .._host.runtime import device_target, native, when_complete
from .._host.warn import warn_once
from .._values import device as devices
from .._values import dtype as dtypes
from .._values import layout as layouts
from .._values.base import (
    _C,
    Absent,
    AbsentSpecial,
    Base,
    DisableTorchFunction,
    Plain,
    as_leaf,
    device_of,
    is_batched,
)
from .._values.device import device as Device
from .._values.size import Size
from ..ops._declare import namespaces, t
from . import _gradient, _operators
from ._arguments import check_bool, dtype_from_type_name, parse_to
from ._construct import as_numpy, as_tensor, contiguous_strides, from_numpy, tensor
from ._dlpack import capsule_of, check_stream
from ._legacy import legacy_new
from ._overriding import let_methods_ask
from ._pickling import deepcopy_tensor, reduce_tensor
from ._printing import tensor_str
from ._rare_methods import METHODS
from ._resizing import METHODS as RESIZING
from .storage import UntypedStorage
from .typed_storage import TypedStorage, warn_of_typed_storage

_PACKAGE = __name__.partition(".")[0]


class _TensorMeta(type(Base)):
    def __new__(mcs, name, bases, namespace, **kwargs):
        # A tensor becomes one of a subclass when its class is changed, for which both must have the same layout. So the attributes
        # that a subclass names in __slots__ stand in the __dict__ that each tensor has.
        cls = super().__new__(
            mcs, name, bases, {k: v for k, v in namespace.items() if k != "__slots__"}, **kwargs
        )
        if "__slots__" in namespace:
            cls.__slots__ = namespace["__slots__"]
        return cls

    def __instancecheck__(cls, instance):
        if cls is Tensor:
            return issubclass(type(instance), Base) or issubclass(instance.__class__, Base)
        return super().__instancecheck__(instance)


def _reversed(x):
    """Return ``x.T``, a view with the dims in reverse order. PyTorch means to keep it for matrices alone."""
    if x.ndim == 0:
        warn_once("Tensor.T is deprecated on 0-D tensors. This function is the identity in these cases.")
    elif x.ndim != 2:
        warn_once(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it will throw an "
            "error in a future release. Consider `x.mT` for batches of matrices, or `x.permute`."
        )
    return t.permute(x, tuple(reversed(range(x.ndim))))


def _swapped(x, name: str):
    """Return a matrix, or a batch of matrices, with its last two dims exchanged. A number stays as it is."""
    if x.ndim == 0:
        return x
    if x.ndim < 2 or (name == "H" and x.ndim > 2):
        kinds = "matrices (2-D tensors)" if name == "H" else "matrices or batches of matrices"
        hint = " For batches of matrices, consider using tensor.mH" if x.ndim > 2 else ""
        raise RuntimeError(f"tensor.{name} is only supported on {kinds}. Got {x.ndim}-D tensor.{hint}")
    return t.transpose(x, -2, -1)


class Tensor(Plain, metaclass=_TensorMeta):
    """A PyTorch tensor whose memory belongs to MindSpore."""

    __array_priority__ = 1000
    _is_param = False

    def __new__(cls, *args, **kwargs):
        out = legacy_new(args, kwargs, _C.default_dtype(), any_tensor=True)
        return out if cls is Tensor else _become(out, cls)

    def __init__(self, *args, **kwargs):
        pass

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        # The results of such a class are what its __torch_dispatch__ answers, and do not become its tensors afterwards.
        own = getattr_static(cls, "__torch_dispatch__") is not Tensor.__dict__["__torch_dispatch__"]
        if own and getattr_static(cls, "__torch_function__") is Tensor.__dict__["__torch_function__"]:
            cls.__torch_function__ = _C._disabled_torch_function_impl  # type: ignore[method-assign]
        if _answers_calls(cls):
            let_methods_ask(cls, Tensor)

    # ---------------------------------------------------------------- making
    @staticmethod
    def _make_subclass(cls, data, require_grad=False, **kwargs):
        """Return a leaf tensor of class ``cls`` that shares memory with ``data``."""
        alias = _become(_C.detach(data), cls)
        if require_grad:
            alias.requires_grad = True
        return alias

    @staticmethod
    def _make_wrapper_subclass(
        cls,
        size,
        strides=None,
        storage_offset=None,
        memory_format=None,
        dtype=None,
        layout=None,
        device=None,
        pin_memory=False,
        requires_grad=False,
        dispatch_sizes_strides_policy=None,
        dispatch_device=False,
        dispatch_layout=False,
    ):
        """Return a tensor of class ``cls`` with a shape, but without memory.

        The class defines in ``__torch_dispatch__`` what operators do.
        """
        if not issubclass(cls, Tensor):
            raise TypeError("cls must be a type (got " + type(cls).__name__ + ")")
        size = tuple(size)
        strides = contiguous_strides(size) if strides is None else tuple(strides)
        made = _without_memory(size, strides, storage_offset or 0, dtype or _C.default_dtype())
        made.__dict__["_wrapper_device"] = Device("cpu") if device is None else Device(device)
        _become(made, cls)
        if requires_grad:
            made.requires_grad = True
        return made

    @staticmethod
    def _from_storage(storage, dtype, offset, size, stride):
        """Return a tensor on ``storage`` with this offset, size and stride (in elements)."""
        return _C.raw_view(storage._holder, size, stride, offset, dtype)

    def as_subclass(self, cls):
        alias = self.view_as(self) if _C.is_grad_enabled() and self.requires_grad else _C.detach(self)
        return _become(alias, cls)

    @property
    def _grad_fn(self):
        """The same as ``grad_fn``. It can be set to None, which detaches the tensor."""
        return self.grad_fn

    @_grad_fn.setter
    def _grad_fn(self, value) -> None:
        if value is not None:
            raise RuntimeError("_grad_fn can be only set to None")
        self.detach_()

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def volatile(self) -> bool:
        """Always False, with a warning."""
        warnings.warn("volatile was removed (Variable.volatile is always False)", UserWarning, stacklevel=2)
        return False

    # ---------------------------------------------------------------- description
    @property
    def device(self) -> Device:
        return device_of(self)

    @property
    def layout(self):
        return layouts.LAYOUTS["strided"]

    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.numel() * self.dtype.itemsize)
    is_cuda = property(
        lambda self: (
            0 < _C.device_tag(self) != devices.META_TAG and (devices.accelerator() or "cuda") == "cuda"
        )
    )
    is_npu = property(
        lambda self: 0 < _C.device_tag(self) != devices.META_TAG and devices.accelerator() == "npu"
    )
    is_cpu = property(lambda self: _C.device_tag(self) == 0)
    is_meta = property(lambda self: _C.device_tag(self) == devices.META_TAG)
    is_sparse = is_sparse_csr = is_quantized = is_nested = is_mkldnn = is_xla = is_mps = is_xpu = (
        is_vulkan
    ) = is_hpu = is_ipu = is_maia = is_mtia = property(lambda self: False)
    T = property(_reversed)
    mT = property(lambda self: _swapped(self, "mT"))
    H = property(lambda self: _swapped(self, "H").conj())
    mH = property(lambda self: _swapped(self, "mH").conj())
    real = property(lambda self: t.real(self), lambda self, value: assign(t.real(self), value))
    imag = property(lambda self: t.imag(self), lambda self, value: assign(t.imag(self), value))
    names = property(lambda self: (None,) * self.ndim)
    name = None

    def has_names(self):
        return False

    def size(self, dim=None):
        shape = self.shape
        if dim is None:
            return shape
        n = len(shape)
        if not -n <= dim < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-max(n, 1)}, {max(n, 1) - 1}], but got {dim})"
            )
        return shape[dim]

    def dim(self) -> int:
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        return self.shape.numel()

    nelement = numel

    def element_size(self) -> int:
        return self.dtype.itemsize

    def stride(self, dim=None):
        s = _C.stride(self)
        return s if dim is None else s[dim]

    def storage_offset(self) -> int:
        return _C.storage_offset(self)

    def is_contiguous(self, memory_format=None) -> bool:
        order = None if memory_format is None else layouts.CHANNELS_LAST.get(memory_format._name)
        if order is None:
            return _C.is_contiguous(self)
        return self.ndim == len(order) and _C.is_contiguous(self.detach().permute(order))

    def data_ptr(self) -> int:
        """Return the address of the first element, or 0 if the memory has been released."""
        if is_batched(self):
            return self.data_ptr()
        return _C.data_ptr(self)

    def is_floating_point(self) -> bool:
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False

    def is_inference(self) -> bool:
        """Return whether this tensor was made under ``torch.inference_mode``."""
        return _C.is_inference(self)

    def is_shared(self) -> bool:
        """Return whether other processes can map this tensor's memory."""
        return self.untyped_storage().is_shared()

    def is_pinned(self, device=None) -> bool:
        """Return whether the tensor is in pinned memory. Without a device of its own, the host pins none."""
        return _C.is_pinned(self)

    def pin_memory(self, device=None):
        """Return a copy in pinned memory, or the tensor itself if it is there or if there is no other device."""
        return self if not _C.has_own_memory() or _C.is_pinned(self) else _C.pinned(self)

    def record_stream(self, stream) -> None:
        """Does nothing. Memory is reference-counted and freed after the work that uses it, on any stream."""

    def share_memory_(self):
        """Move the storage to memory that other processes can map: they see what is written to it."""
        self.untyped_storage().share_memory_()
        return self

    def is_same_size(self, other) -> bool:
        if other.is_nested:
            raise RuntimeError("Expected both self and other to be nested tensors.")
        return self.shape == other.shape

    def is_set_to(self, other) -> bool:
        return (
            _C.storage_id(self) == _C.storage_id(other)
            and self.storage_offset() == other.storage_offset()
            and self.shape == other.shape
            and self.stride() == other.stride()
        )

    def get_device(self) -> int:
        tag = _C.device_tag(self)
        return -1 if tag == devices.META_TAG else tag - 1

    @property
    def _cdata(self) -> int:
        """A number that no other tensor has while this one lives. PyTorch's is the address of its C++ object."""
        return id(self)

    def _is_view(self) -> bool:
        return _C.is_view(self)

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __hash__(self) -> int:
        return id(self)

    def __dir__(self):
        return sorted(
            n
            for n in set(dir(type(self))) | set(self.__dict__)
            if not isinstance(getattr_static(type(self), n, None), Absent)
        )

    # ---------------------------------------------------------------- storage
    def untyped_storage(self) -> UntypedStorage:
        return UntypedStorage.of(self)

    def storage(self) -> TypedStorage:
        warn_of_typed_storage()
        return self._typed_storage()

    def _typed_storage(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self.dtype)

    @property
    def data(self):
        return _C.dispatched_detach(self, False) if _C.dispatches(self) else _C.fresh_version(self)

    @data.setter
    def data(self, other):
        if not isinstance(other, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(other).__name__}")
        if other.layout is not self.layout:
            raise RuntimeError(
                "Attempted to call `variable.set_data(tensor)`, but `variable` and `tensor` have incompatible tensor type."
            )
        if self.requires_grad and not (other.dtype.is_floating_point or other.dtype.is_complex):
            raise RuntimeError(
                "data set to a tensor that requires gradients must be floating point or complex dtype"
            )
        _C.set_data(self, other)

    @data.deleter
    def data(self):
        raise RuntimeError("cannot delete data")

    def detach(self):
        if is_batched(self):
            return self.detach()
        return _C.dispatched_detach(self, True) if _C.dispatches(self) else _C.detach(self)

    def detach_(self):
        if _C.is_view(self):
            raise RuntimeError(
                "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
                "training, and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence "
                "detach_() cannot be called on these gradients."
            )
        _C.strip_autograd(self)
        drop_tangent = extensions.drop_tangent.value
        if drop_tangent is not None:
            drop_tangent(self)
        return self

    # ---------------------------------------------------------------- conversion
    def tolist(self):
        """Return the values as nested lists, or a number for a 0-dimensional tensor."""
        if _C.has_dispatch(self):
            raise RuntimeError(f".tolist() is not supported for tensor subclasses, got {type(self).__name__}")
        return _C.tolist(self)

    def numpy(self, *, force=False):
        """Return a numpy array that shares memory with the tensor.

        With ``force``, detach it and copy it to the CPU first if necessary.
        """
        if self.requires_grad and not force and _C.is_grad_enabled():
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            )
        if _C.has_dispatch(self):
            raise RuntimeError(".numpy() is not supported for tensor subclasses.")
        if _C.device_tag(self) and not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. "
                "Use Tensor.cpu() to copy the tensor to host memory first."
            )
        if self.dtype.name not in dtypes.NUMPY:
            raise TypeError(f"Got unsupported ScalarType {self.dtype.scalar_name}")
        return as_numpy(self.detach().cpu() if force else self)

    def __array__(self, dtype=None, copy=None):
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_wrap__(self, array, context=None, return_scalar=False):
        if array.dtype == np.bool_:  # as in PyTorch, where such a result is older than the dtype bool
            array = array.astype(np.uint8)
        return from_numpy(np.asarray(array, order="C"))  # not ascontiguousarray, which gives a number a dim

    def __dlpack__(self, *, stream=-1, max_version=None, dl_device=None, copy=None):
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        check_stream(stream)
        if dl_device is not None and tuple(dl_device) != self.__dlpack_device__():
            raise unsupported(
                "torch.Tensor.__dlpack__", f"dl_device={dl_device} is not the device of this tensor"
            )
        return capsule_of(self.clone() if copy else self)

    def __dlpack_device__(self):
        return (1, 0)

    def to(self, *args, **kwargs):
        device, dtype, copy_, memory_format, non_blocking = parse_to(*args, **kwargs)
        out = self
        if dtype is not None and dtype is not self.dtype:
            out = t._to_dtype(out, dtype)
        if device is not None and not (_C.has_dispatch(self) and self.device == Device(device)):
            d = devices.resolve(device)
            if d.type == "meta":
                return out if _C.device_tag(out) == devices.META_TAG else t._to_meta(out)
            tag = 0 if d.type == "cpu" else d.index + 1
            if _C.device_tag(out) == devices.META_TAG and not _C.has_dispatch(self):
                raise NotImplementedError("Cannot copy out of meta tensor; no data!")
            if tag != _C.device_tag(out):
                out = t._to_device(out, tag, non_blocking)
        if copy_ and out is self:
            out = t.clone(out)
        if memory_format is not None and memory_format._name != "preserve_format":
            if out is not self:
                out = out.contiguous(memory_format=memory_format)
            elif layouts.suggested_format(self.shape, self.stride()) is not memory_format:
                out = self.clone(memory_format=memory_format)
        return out

    def type(self, dtype=None, non_blocking=False):
        if dtype is None:
            prefix = (
                "torch."
                if self.is_cpu
                else "torch.meta."
                if self.is_meta
                else f"torch.{devices.accelerator() or 'cuda'}."
            )
            return prefix + self.dtype.scalar_name + "Tensor"
        if isinstance(dtype, str):
            dtype = dtype_from_type_name(dtype)
        elif not isinstance(dtype, dtypes.dtype):
            dtype = dtype.dtype
        return self.to(dtype, non_blocking=non_blocking) if non_blocking else self.to(dtype)

    def type_as(self, other):
        return self.to(other)

    def cpu(self, memory_format=None):
        return self.to("cpu") if memory_format is None else self.to("cpu", memory_format=memory_format)

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        wanted = Device("cuda") if device is None else Device(device)
        return self.to(wanted, non_blocking=non_blocking, memory_format=memory_format)

    def npu(self, device=None, non_blocking=False):
        return self.to(Device("npu") if device is None else Device(device), non_blocking=non_blocking)

    def __bool__(self) -> bool:
        n = self.numel()
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        if n > 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(_C.item(self))

    def __int__(self) -> int:
        return int(_number(self))

    def __float__(self) -> float:
        return float(_number(self))

    def __complex__(self) -> complex:
        return complex(_number(self))

    def __index__(self) -> int:
        if self.dtype.is_floating_point or self.dtype.is_complex or self.numel() != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(_C.item(self))

    def __contains__(self, element) -> bool:
        if isinstance(element, (Tensor, int, float, complex)):
            return bool((self == element).any())
        raise RuntimeError(
            f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        )

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self):
        return self if self.ndim == 0 else self.flip(0)

    def __setitem__(self, index, value):
        ops.indexing.setitem(self, index, value)

    def __delitem__(self, index):
        raise TypeError("Tensor does not support deleting items")

    def __format__(self, spec):
        if self.ndim == 0 and type(self) is Tensor:
            return self.item().__format__(spec)
        return object.__format__(self, spec)

    def __repr__(self, *, tensor_contents=None):
        return tensor_str(self, tensor_contents)

    def __str__(self):
        return self.__repr__()

    # ---------------------------------------------------------------- gradients
    grad = property(_gradient.read, _gradient.write, _gradient.delete)
    _grad = grad

    def requires_grad_(self, requires_grad=True):
        check_bool("requires_grad_", "requires_grad", requires_grad)
        refuse = extensions.refuse_in_transform.value
        if refuse is not None:
            refuse("requires_grad_")
        return as_leaf(self, requires_grad)

    @property
    def retains_grad(self) -> bool:
        return not self.is_leaf and "_retains" in self.__dict__

    # ---------------------------------------------------------------- copies
    __deepcopy__ = deepcopy_tensor
    __reduce_ex__ = reduce_tensor

    def __setstate__(self, state):
        self.__dict__.update(state)

    def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False):
        out = tensor(data, dtype=dtype or self.dtype, device=device or self.device)
        return as_leaf(out, requires_grad) if requires_grad else out

    def new(self, *args, **kwargs):
        return legacy_new(args, kwargs, self.dtype, self.device)

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return _default_torch_function(cls, function, types, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        """Run an operator on the memory that its tensors have as plain tensors. A subclass may answer in another way."""
        _C.disable_dispatch(1)
        try:
            return func(*args, **(kwargs or {}))
        finally:
            _C.disable_dispatch(-1)


Tensor.__module__ = "torch"


def _without_memory(size, strides, offset: int, dtype):
    """Return a tensor of the device meta with these strides, that many elements behind the beginning of its storage."""
    _C.disable_dispatch(1)  # this is no operator of the program
    try:
        if not offset:
            return ops.empty_strided(size, strides, dtype=dtype, device="meta")
        last = sum((n - 1) * step for n, step in zip(size, strides, strict=True)) if 0 not in size else 0
        storage = ops.empty((offset + last + 1,), dtype=dtype, device="meta").untyped_storage()
    finally:
        _C.disable_dispatch(-1)
    return _C.raw_view(storage._holder, size, strides, offset, dtype)


def _become(tensor, cls):
    """Change the class of a tensor, and return the tensor."""
    tensor.__class__ = cls
    _C.keep_object(tensor)
    return tensor


def assign(part, value) -> None:
    """Write a tensor or a number into a view."""
    t.copy_(part, value) if isinstance(value, Base) else t.fill_(part, value)


def _number(tensor):
    if tensor.numel() != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return _C.item(tensor)


def _answers_calls(cls) -> bool:
    """Return whether a program's class is asked for the methods of Tensor. The classes of this package need no such detour."""
    asked = getattr_static(cls, "__torch_function__")
    asked = getattr(asked, "__func__", asked)
    module = cls.__module__  # that of some classes here is shown as torch
    ours = module == "torch" or module.partition(".")[0] == _PACKAGE
    return asked is not _C._disabled_torch_function_impl and not ours


def _default_torch_function(cls, function, types, args, kwargs):
    if not all(issubclass(cls, tp) or tp is Tensor for tp in types):
        return NotImplemented
    with DisableTorchFunction():
        result = function(*args, **kwargs)
    return _convert(result, cls)


def _convert(result, cls):
    if cls is Tensor:
        return result
    if isinstance(result, Tensor) and not isinstance(result, cls):
        _become(result, cls)
    elif isinstance(result, (tuple, list)):
        result = type(result)(_convert(r, cls) for r in result)
    return result


def _hide_methods_of(cls) -> None:
    """Hide MindSpore's methods whose names torch does not have."""
    for name in dir(cls):
        if not name.startswith("_") and name not in Tensor.__dict__:
            setattr(Tensor, name, Absent(name))


def _join_mindspore() -> None:
    """Make Tensor a subclass of MindSpore's tensor, and the class of what MindSpore's Python code returns."""
    module = sys.modules["mindspore.common.tensor"]
    theirs = module.Tensor
    known = set(dir(Tensor))
    Tensor.__bases__ = (theirs,)
    _hide_methods_of(theirs)
    for name, value in vars(theirs).items():
        if name.startswith("__") and name not in known and callable(value):
            setattr(Tensor, name, AbsentSpecial(name))
    module.Tensor = Tensor


def install() -> None:
    """Make Tensor the class of all results of MindSpore, and add the table's methods to it."""
    ops.add_factories(tensor=tensor, as_tensor=as_tensor, from_numpy=from_numpy)
    for name, function in namespaces["Tensor"].items():
        if name not in Tensor.__dict__:
            setattr(Tensor, name, function)
    for name, method in (METHODS | RESIZING).items():
        setattr(Tensor, name, method)
    _operators.install(Tensor)
    _hide_methods_of(Base)
    _C.bind_types(Tensor, Size)
    if not _C.fast_path() or device_target() != "CPU":
        load_operators()
    if not _C.has_own_memory():
        native().RuntimeConf.get_instance().set_launch_blocking()  # results on the host are read without waiting
    from . import _stored_types  # noqa: F401  asks to be called

    when_complete(_join_mindspore)
