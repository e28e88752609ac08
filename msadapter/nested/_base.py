"""The base class of nested tensors: batches of tensors of different lengths. The numbers of all parts are one ordinary tensor."""

from __future__ import annotations

import functools

from .._errors import unsupported
from .._values.layout import FORMATS
from .._values.size import Size
from ..autograd._over_values import OverValues, arguments, declare_copies
from ..autograd._passes import _mismatch
from ..ops._declare import declarations, t
from ..ops._geometry import wrap_dim


def refusal(name: str, what: str = "") -> NotImplementedError:
    """Return the error for an operator that does not take nested tensors, or not such arguments."""
    return unsupported(f"torch.{name}", f"{what or 'nested tensors'} are not supported")


class NestedBase(OverValues):
    """What both layouts have in common.

    Attributes:
        _values: the numbers of all parts.
    """

    operators: dict  # operator -> function(nested tensor, ...), for torch.add, Tensor.add, ...

    @classmethod
    def _shaped(cls, values, size, **attributes):
        """Return a tensor of the class with these values and this shape."""
        return cls._over(values, (0,) * len(size), _values=values, _extent=tuple(size), **attributes)

    _v = property(lambda self: self._values)

    # ---- what the layouts answer
    def unbind(self, dim=0):
        """Return the parts as a tuple."""
        raise NotImplementedError(f"{type(self).__name__}.unbind: a layout must say it")

    @classmethod
    def _element_by_element(cls, function, name: str, args, kwargs):
        """Return the result of an operator that works element by element, or that of its in-place form."""
        raise NotImplementedError(f"{cls.__name__}._element_by_element: a layout must say it")

    def _values_of_gradient(self, gradient):
        if not isinstance(gradient, NestedBase) or not self.is_same_size(gradient):
            raise _mismatch(0, self, gradient)
        return gradient._values

    # ---- description
    _size = property(lambda self: self._extent)
    shape = property(lambda self: Size(self._extent))
    is_nested = property(lambda self: True)
    is_meta = property(lambda self: self._values.is_meta)
    _version = property(lambda self: self._values._version)

    def size(self, dim=None):
        return self.shape if dim is None else self._size[wrap_dim(dim, self.ndim)]

    def dim(self) -> int:
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        return self._values.numel()

    nelement = numel

    def __len__(self) -> int:
        return self._size[0]

    def is_same_size(self, other) -> bool:
        raise NotImplementedError(f"{type(self).__name__}.is_same_size: a layout must say it")

    def is_inference(self) -> bool:
        return self._values.is_inference()

    def is_pinned(self, device=None) -> bool:
        return self._values.is_pinned(device)

    def pin_memory(self, device=None):
        return self._with(self._values.pin_memory())

    def untyped_storage(self):
        return self._values.untyped_storage()

    def data_ptr(self) -> int:
        return self._values.data_ptr()

    def _is_view(self) -> bool:
        return self._values._is_view()

    def numpy(self, *, force=False):
        raise RuntimeError(
            ".numpy() is not supported for tensor subclasses. Use unbind() or to_padded_tensor() of the nested tensor first."
        )

    def tolist(self) -> list:
        return [part.tolist() for part in self.unbind()]

    def item(self):
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self._values.item()

    def __iter__(self):
        return iter(self.unbind())

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of a nested tensor is ambiguous")

    @property
    def data(self):
        return self._with(self._values.data)

    @data.setter
    def data(self, other):
        self._values.data = self._values_of_gradient(other)

    # ---- copies
    def cpu(self, memory_format=None):
        return self.to("cpu")

    def clone(self, *, memory_format=None):
        return self._with(self._values.clone(memory_format=memory_format or FORMATS["preserve_format"]))

    def to_padded_tensor(self, padding, output_size=None):
        """Return a dense tensor in which every part is as long as the longest one, filled up with ``padding``."""
        return self.operators["to_padded_tensor"](self, padding, output_size)

    def expand_as(self, other):
        return t.expand_as(self, other)

    def __setitem__(self, index, value):
        raise refusal("Tensor.__setitem__")

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        name = function.__name__.rpartition(".")[2]
        given = [a for a in arguments((args, kwargs or {})) if isinstance(a, NestedBase)]
        kinds = {type(a) for a in given}
        if len(kinds) > 1:
            raise refusal(name, "nested tensors of different layouts")
        kind = kinds.pop()
        handler = kind.operators.get(name)
        if handler is not None:
            return handler(*args, **(kwargs or {}))
        if name not in pointwise_names():
            raise refusal(name)
        return kind._element_by_element(function, name, args, kwargs or {})


@functools.cache
def pointwise_names() -> frozenset[str]:
    """Return the names of the operators that work element by element, and of their in-place forms."""
    names = set()
    for declaration in declarations.values():
        if declaration.facts.pointwise:
            names |= {n.rpartition(".")[2] for n in (declaration.schema.name, *declaration.aliases)}
    return frozenset(names | {f"{name}_" for name in names})


#: Operators that make a tensor of the same shape, whatever its numbers were.
FILLED = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")


def shape_of(sizes) -> list:
    """Return the shape that ``view(*sizes)`` was given, as numbers or as one sequence."""
    return list(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (list, tuple)) else list(sizes)


def declare_common(operator) -> None:
    """Declare, with a decorator of `declare`, the operators that both layouts answer by a method of the class."""
    declare_copies(operator)

    @operator("unbind")
    def _unbind(self, dim=0):
        return self.unbind(dim)

    @operator("is_same_size")
    def _is_same_size(self, other):
        if not isinstance(self, NestedBase) or not isinstance(other, NestedBase):
            raise RuntimeError("Expected both self and other to be nested tensors.")
        return self.is_same_size(other)
