"""Tensors of other layouts than the strided one, such as sparse and nested ones: their numbers are one ordinary tensor, the values.

They are Python subclasses of an empty meta tensor, so an operator that does not know them raises an error and cannot compute
something wrong. The values are in the graph: the gradient of such a tensor is that of its values, and a backward pass runs on them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

from .._host import extensions
from .._host.native import load
from .._values.base import as_leaf
from .._values.layout import LAYOUTS
from ..ops._declare import t
from ..tensor import Tensor
from ._passes import backward

_C = load()


class OverValues(Tensor):
    """The base class of these tensors.

    Attributes:
        _v: the values. Their graph is that of the tensor.
        _extent: the shape.
    """

    _layout_name = ""

    @classmethod
    def _over(cls, values, meta_size, **attributes):
        """Return a tensor of the class with the dtype of ``values`` and these attributes.

        Args:
            meta_size: the size of the meta tensor beneath, which only operators see that do not know the class.
        """
        seed = _C.raw_empty((1,), None, values.dtype)
        made = _C.raw_view(_C.to_meta(seed), tuple(meta_size), (0,) * len(meta_size), 0, values.dtype)
        made.__class__ = cls
        made.__dict__.update(attributes)
        return made

    # ---- what the layouts answer
    def _with(self, values):
        """Return a tensor of the same shape and structure with other values."""
        raise NotImplementedError(f"{type(self).__name__}._with: a layout must say it")

    def _like(self, values, device):
        """Return a tensor of the same shape and structure with other values, which may be on another device."""
        return self._with(values)

    def _values_of_gradient(self, gradient):
        """Return the values of a gradient of this tensor, in the order of its own."""
        raise NotImplementedError(f"{type(self).__name__}._values_of_gradient: a layout must say it")

    def _as_gradient(self, values):
        """Return the gradient of this tensor, given that of its values."""
        return self._with(values)

    def _start_of_pass(self, gradient):
        """Return the values of a gradient with which a backward pass begins. Layouts that take other gradients there say so."""
        return self._values_of_gradient(gradient)

    # ---- description
    ndim = property(lambda self: len(self._extent))
    layout = property(lambda self: LAYOUTS[self._layout_name])
    device = property(lambda self: self._v.device)
    is_cpu = property(lambda self: self._v.is_cpu)
    is_cuda = property(lambda self: self._v.is_cuda)
    is_npu = property(lambda self: self._v.is_npu)

    def get_device(self) -> int:
        return self._v.get_device()

    def __array__(self, dtype=None, copy=None):
        return self.numpy()

    # ---- gradients: those of the values
    requires_grad = property(lambda self: self._v.requires_grad, lambda self, flag: self.requires_grad_(flag))
    grad_fn = property(lambda self: self._v.grad_fn)
    is_leaf = property(lambda self: self._v.is_leaf)
    retains_grad = property(lambda self: self._v.retains_grad)

    def requires_grad_(self, requires_grad=True):
        as_leaf(self._v, requires_grad)
        return self

    @property
    def grad(self):
        found = self._v.grad
        return None if found is None else self._as_gradient(found)

    @grad.setter
    def grad(self, value):
        self._v.grad = None if value is None else self._values_of_gradient(value)

    @grad.deleter
    def grad(self):
        self._v.grad = None

    def retain_grad(self) -> None:
        self._v.retain_grad()

    def register_hook(self, hook):
        def on_values(gradient):
            found = hook(self._as_gradient(gradient))
            return None if found is None else self._values_of_gradient(found)

        return self._v.register_hook(on_values)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add the gradients to ``.grad`` of the leaves. ``gradient`` has the shape and the structure of this tensor."""
        backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach(self):
        return self._with(self._v.detach())

    def detach_(self):
        self._v.detach_()
        return self

    # ---- copies
    def to(self, *args, **kwargs):
        """Return the tensor with another dtype or on another device. The arguments are those of Tensor.to."""
        found = self._v.to(*args, **kwargs)
        return self if found is self._v else self._like(found, found.device)

    def __deepcopy__(self, memo):
        if not self.is_leaf:
            return super().__deepcopy__(memo)  # raises the proper error
        if id(self) not in memo:
            memo[id(self)] = self._with(copy.deepcopy(self._v, memo))
        return memo[id(self)]


def declare(table: dict):
    """Return a decorator that puts a function into the table under the names of operators."""

    def operator(*names: str):
        def put(function):
            for name in names:
                table[name] = function
            return function

        return put

    return operator


def declare_copies(operator) -> None:
    """Declare, with a decorator of `declare`, the operators that every layout answers by a method of the class."""

    @operator("detach", "alias")
    def _detach(self):
        return self.detach()

    @operator("_to_dtype")
    def _to_dtype(self, dtype, *args):
        return self.to(dtype)


def arguments(value) -> Iterator:
    """Yield what is in nested tuples, lists and dicts of arguments."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from arguments(one)
    else:
        yield value


def _values_pass(tensors, grads, inputs):
    """Convert outputs, gradients and inputs of a backward pass to values.

    Also returns a function that converts the results to tensors of the layouts of the inputs.
    """
    made = []
    for output, gradient in zip(tensors, grads, strict=True):
        if not isinstance(output, OverValues):
            made.append(gradient)
        elif gradient is None:
            if output.numel() != 1:
                raise RuntimeError("grad can be implicitly created only for scalar outputs")
            made.append(t.ones_like(output._v.detach()))
        else:
            made.append(output._start_of_pass(gradient))

    def results(found):
        return tuple(
            x._as_gradient(g) if isinstance(x, OverValues) and g is not None else g
            for x, g in zip(inputs, found, strict=True)
        )

    return [_plain(x) for x in tensors], made, [_plain(x) for x in inputs], results


def _plain(x):
    return x._v if isinstance(x, OverValues) else x


extensions.values_backward.provide((OverValues, _values_pass))
