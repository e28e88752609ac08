"""Methods of Tensor in tensor subclasses that define ``__torch_function__``.

The operators of the table ask the classes of their arguments by themselves. Methods of Tensor that are written in Python do not,
because that would slow down every tensor. Instead, a subclass that answers calls gets its own form of such a method, which asks.
"""

from __future__ import annotations

import functools
from inspect import getattr_static
from types import FunctionType, MethodType

from .._host import extensions

# Special methods that PyTorch passes to __torch_function__ under their own name. `x + y` is passed as `add`, by the table.
_SPECIAL = frozenset(
    """
    __array__ __array_wrap__ __bool__ __complex__ __contains__ __deepcopy__ __dlpack__ __dlpack_device__ __eq__ __float__
    __floordiv__ __format__ __index__ __int__ __invert__ __len__ __reduce_ex__ __repr__ __reversed__ __rfloordiv__ __rlshift__
    __rmatmul__ __rmod__ __rpow__ __rrshift__ __rsub__ __setitem__ __setstate__
    """.split()  # noqa: SIM905 (a list literal of this length would be a page of quotes)
)
_SILENT = frozenset({"as_subclass", "has_names", "record_stream"})  # PyTorch does not pass these
_PROPERTIES = ("T", "mT", "H", "mH", "real", "imag", "data")  # those that give tensors


class _AskingMethod:
    """The form of a method that asks. The class itself shows Tensor's own method, because programs compare the two."""

    def __init__(self, own):
        @functools.wraps(own)
        def method(tensor, *args, **kwargs):
            answer = extensions.overridden.value(own, (tensor, *args), kwargs)
            return own(tensor, *args, **kwargs) if answer is NotImplemented else answer

        self.own, self.method = own, method

    def __get__(self, tensor, kind=None):
        return self.own if tensor is None else MethodType(self.method, tensor)


class _AskingProperty(_AskingMethod):
    """The same for a property. It is written as Tensor's own one."""

    def __init__(self, own):
        self.own = own

    def __get__(self, tensor, kind=None):
        if tensor is None:
            return self.own
        answer = extensions.overridden.value(self.own.__get__, (tensor,), {})
        return self.own.__get__(tensor) if answer is NotImplemented else answer

    def __set__(self, tensor, value):
        self.own.__set__(tensor, value)


@functools.cache
def _forms(tensor_class) -> dict:
    """Return {name: (Tensor's own method or property, the form that asks)}."""
    forms = {}
    for name, own in vars(tensor_class).items():
        if isinstance(own, FunctionType) and name not in _SILENT and (name[0] != "_" or name in _SPECIAL):
            if own.__name__ not in vars(tensor_class):
                own.__name__ = name  # it is what a program reads of the function that it is asked for
            forms[name] = own, _AskingMethod(own)
        elif name in _PROPERTIES:
            forms[name] = own, _AskingProperty(own)
    return forms


def let_methods_ask(cls, tensor_class) -> None:
    """Give ``cls`` the forms that ask, of all methods that it and its bases have not defined themselves."""
    for name, (own, form) in _forms(tensor_class).items():
        defined = next(
            vars(base)[name]
            for base in cls.__mro__
            if name in vars(base) and not isinstance(vars(base)[name], _AskingMethod)
        )
        asks = isinstance(getattr_static(cls, name), _AskingMethod)
        if asks != (
            defined is own
        ):  # where a base that asks stands before the base that has defined it, the definition counts
            setattr(cls, name, form if defined is own else defined)
