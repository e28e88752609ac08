"""The base class of nested tensors. Their numbers are one ordinary tensor.

A nested tensor is a batch of tensors of different lengths. It is a Python subclass of an empty meta tensor, so an operator that
does not know nested tensors raises an error and cannot compute something wrong. The numbers of all parts are one ordinary
tensor, `_values`, and this tensor is in the graph: the gradient of a nested tensor is that of its values.
"""

from __future__ import annotations

import copy
import functools

from .._host import extensions
from .._host.native import load
from .._values.layout import FORMATS, LAYOUTS
from .._values.size import Size
from ..autograd import backward
from ..autograd._passes import _mismatch
from ..ops._declare import declarations, t
from ..tensor import Tensor

_C = load()


def refusal(name: str, what: str = "") -> NotImplementedError:
    """Return the error for an operator that does not take nested tensors, or not such arguments."""
    return NotImplementedError(
        f"torch.{name}: {what or 'nested tensors'} are not supported (docs/coverage.md)"
    )


def wrapped(dim: int, ndim: int) -> int:
    """Return a dim that counts from the front.

    Raises:
        IndexError: there is no such dim.
    """
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
        )
    return dim % ndim


class NestedBase(Tensor):
    """What both layouts have in common.

    Attributes:
        _values: the numbers of all parts. Their graph is that of the nested tensor.
        _extent: the shape.
    """

    _layout_name = ""
    operators: dict  # operator -> function(nested tensor, ...), for torch.add, Tensor.add, ...

    @classmethod
    def _shaped(cls, values, size, **attributes):
        """Return a tensor of the class with these values and this shape."""
        seed = _C.raw_empty((1,), None, values.dtype)
        made = _C.raw_view(_C.to_meta(seed), (0,) * len(size), (0,) * len(size), 0, values.dtype)
        made.__class__ = cls
        made.__dict__.update(_values=values, _extent=tuple(size), **attributes)
        return made

    # ---- what the layouts answer
    def _with(self, values):
        """Return a tensor of the same shape with other values."""
        raise NotImplementedError(f"{type(self).__name__}._with: a layout must say it")

    def _like(self, values, device):
        """Return a tensor of the same shape with other values, which may be on another device."""
        return self._with(values)

    def unbind(self, dim=0):
        """Return the parts as a tuple."""
        raise NotImplementedError(f"{type(self).__name__}.unbind: a layout must say it")

    @classmethod
    def _element_by_element(cls, function, name: str, args, kwargs):
        """Return the result of an operator that works element by element, or that of its in-place form."""
        raise NotImplementedError(f"{cls.__name__}._element_by_element: a layout must say it")

    def _values_of_gradient(self, gradient):
        """Return the values of a gradient of this tensor, in the order of `_values`."""
        if not isinstance(gradient, NestedBase) or not self.is_same_size(gradient):
            raise _mismatch(0, self, gradient)
        return gradient._values

    # ---- description
    _size = property(lambda self: self._extent)
    shape = property(lambda self: Size(self._extent))
    ndim = property(lambda self: len(self._extent))
    layout = property(lambda self: LAYOUTS[self._layout_name])
    device = property(lambda self: self._values.device)
    is_nested = property(lambda self: True)
    is_meta = property(lambda self: self._values.is_meta)
    is_cpu = property(lambda self: self._values.is_cpu)
    is_cuda = property(lambda self: self._values.is_cuda)
    is_npu = property(lambda self: self._values.is_npu)
    _version = property(lambda self: self._values._version)

    def size(self, dim=None):
        return self.shape if dim is None else self._size[wrapped(dim, self.ndim)]

    def dim(self) -> int:
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        return self._values.numel()

    nelement = numel

    def __len__(self) -> int:
        return self._size[0]

    def get_device(self) -> int:
        return self._values.get_device()

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

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

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

    # ---- gradients: those of the values
    requires_grad = property(
        lambda self: self._values.requires_grad, lambda self, flag: self.requires_grad_(flag)
    )
    grad_fn = property(lambda self: self._values.grad_fn)
    is_leaf = property(lambda self: self._values.is_leaf)
    retains_grad = property(lambda self: self._values.retains_grad)

    def requires_grad_(self, requires_grad=True):
        self._values.requires_grad_(requires_grad)
        return self

    @property
    def grad(self):
        found = self._values.grad
        return None if found is None else self._with(found)

    @grad.setter
    def grad(self, value):
        self._values.grad = None if value is None else self._values_of_gradient(value)

    @grad.deleter
    def grad(self):
        self._values.grad = None

    def retain_grad(self) -> None:
        self._values.retain_grad()

    def register_hook(self, hook):
        def on_values(gradient):
            found = hook(self._with(gradient))
            return None if found is None else self._values_of_gradient(found)

        return self._values.register_hook(on_values)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add the gradients to ``.grad`` of the leaves. ``gradient`` is nested as this tensor is."""
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach(self):
        return self._with(self._values.detach())

    def detach_(self):
        self._values.detach_()
        return self

    @property
    def data(self):
        return self._with(self._values.data)

    @data.setter
    def data(self, other):
        self._values.data = self._values_of_gradient(other)

    # ---- copies
    def to(self, *args, **kwargs):
        """Return the tensor with another dtype or on another device. The arguments are those of Tensor.to."""
        found = self._values.to(*args, **kwargs)
        return self if found is self._values else self._like(found, found.device)

    def cpu(self, memory_format=None):
        return self.to("cpu")

    def clone(self, *, memory_format=None):
        return self._with(self._values.clone(memory_format=memory_format or FORMATS["preserve_format"]))

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            return super().__deepcopy__(memo)  # raises the proper error
        if id(self) not in memo:
            made = self._with(copy.deepcopy(self._values, memo))
            memo[id(self)] = made
        return memo[id(self)]

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
        given = [a for a in _flat((args, kwargs or {})) if isinstance(a, NestedBase)]
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


def declare(table: dict):
    """Return a decorator that puts a function into the table under the names of operators."""

    def operator(*names: str):
        def put(function):
            for name in names:
                table[name] = function
            return function

        return put

    return operator


def _flat(value):
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def values_pass(tensors, grads, inputs):
    """Convert outputs, gradients and inputs of a backward pass to the values of nested tensors.

    Also returns a function that converts the results to nested tensors.
    """
    made = []
    for output, gradient in zip(tensors, grads, strict=True):
        if not isinstance(output, NestedBase):
            made.append(gradient)
        elif gradient is None:
            if output.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            made.append(t.ones_like(output._values.detach()))
        else:
            made.append(output._values_of_gradient(gradient))

    def results(found):
        return tuple(
            x._with(g) if isinstance(x, NestedBase) and g is not None else g
            for x, g in zip(inputs, found, strict=True)
        )

    return [_plain(x) for x in tensors], made, [_plain(x) for x in inputs], results


def _plain(x):
    return x._values if isinstance(x, NestedBase) else x


extensions.nested_backward.provide((NestedBase, values_pass))
