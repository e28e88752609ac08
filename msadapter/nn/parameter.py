"""Tensors that belong to modules: Parameter, Buffer and their variants without a shape."""

from __future__ import annotations

from collections import OrderedDict

from .. import ops
from .._host import extensions
from .._utils import _rebuild_parameter, _rebuild_parameter_with_state
from .._values.base import as_leaf
from ..overrides import _disabled_torch_function_impl
from ..tensor import Tensor
from ..tensor._pickling import user_attributes

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "is_lazy"]


class _ParameterMeta(type(Tensor)):
    """Makes ``isinstance(t, Parameter)`` true for tensor subclasses marked with ``_is_param``."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a Module registers when it is assigned as an attribute.

    Args:
        data: tensor whose storage the parameter shares; an empty tensor when omitted.
        requires_grad: whether gradients are computed for it, also under ``no_grad``.
    """

    # Results of operators are plain tensors, also those of a class that a program derives.
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = ops.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        # A tensor subclass keeps its own type. The attribute _is_param marks it as a parameter.
        marked = as_leaf(data.detach(), requires_grad)
        if type(marked) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() "
                f"returns an instance of the same type, but return type {type(marked).__name__} was found "
                "instead."
            )
        marked._is_param = True
        return marked

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copied = type(self)(self.data.clone(), self.requires_grad)
        memo[id(self)] = copied
        return copied

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, protocol):
        state = user_attributes(self)
        # Backward hooks are not pickled, because they belong to the running process.
        if not state:
            return _rebuild_parameter, (self.data, self.requires_grad, OrderedDict())
        return _rebuild_parameter_with_state, (self.data, self.requires_grad, OrderedDict(), state)


extensions.parameter_class.provide(Parameter)


class _BufferMeta(type(Tensor)):
    """Makes ``isinstance(t, Buffer)`` true for tensors marked with ``_is_buffer``."""

    def __instancecheck__(cls, instance):
        if type.__instancecheck__(cls, instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that a Module registers as a buffer when it is assigned as an attribute.

    With ``persistent=False`` it is not part of ``state_dict``. The result is the given tensor, with a mark.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = ops.empty(0)
        marked = as_leaf(data.detach(), data.requires_grad)
        marked.persistent = persistent
        marked._is_buffer = True
        return marked


class UninitializedTensorMixin:
    """Methods of tensors without a shape: they can be moved, cast, and materialized once."""

    _allowed_functions = frozenset(
        (
            "__hash__",
            "size",
            "copy_",
            "is_complex",
            "is_floating_point",
            "_to_dtype",  # what half() and the like call
            "half",
            "float",
            "double",
            "char",
            "short",
            "int",
            "long",
            "cuda",
            "npu",
            "cpu",
            "to",
            "get_device",
            "__get__",
            "__set__",
            "__delete__",
        )
    )

    def materialize(self, shape, device=None, dtype=None):
        """Give the tensor its shape and its ordinary class. The values are uninitialised."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = ops.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens "
            "in `load_state_dict` when trying to load an uninitialized parameter into an initialized "
            "one. Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if getattr(func, "__name__", "") in cls._allowed_functions:
            return super().__torch_function__(func, types, args, kwargs or {})
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `torch.nn.parameter.{cls.__name__}` objects. When "
            "using LazyModules Call `forward` with a dummy batch to initialize the parameters before calling "
            "torch functions"
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet; ``materialize(shape)`` turns it into a Parameter."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, ops.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copied = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        memo[id(self)] = copied
        return copied

    def __reduce_ex__(self, protocol):
        return UninitializedParameter, (self.requires_grad, self.data.device, self.data.dtype)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet; ``materialize(shape)`` turns it into a tensor."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        made = Tensor._make_subclass(cls, ops.empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made

    def __reduce_ex__(self, protocol):
        return UninitializedBuffer, (self.requires_grad, self.data.device, self.data.dtype, self.persistent)


def is_lazy(param):
    """Return whether ``param`` has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)
