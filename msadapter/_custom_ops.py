"""torch._custom_ops: the older way to define operators, which torch.library has replaced."""

from __future__ import annotations

import inspect

from . import library
from ._errors import unsupported

__all__ = ["custom_op", "impl", "impl_abstract"]


def custom_op(qualname: str, func_or_schema=None):
    """Define the operator 'ns::name' from a schema such as '(Tensor x) -> Tensor'.

    Without a schema, this is a decorator, and the schema is taken from the annotations of the function, whose body
    must be empty.
    """
    if func_or_schema is None:
        return lambda function: _from_prototype(qualname, function)
    if isinstance(func_or_schema, str):
        library.define(qualname, func_or_schema)
        return None
    return _from_prototype(qualname, func_or_schema)


def _from_prototype(qualname: str, function):
    if not inspect.isfunction(function):
        raise ValueError(
            f"custom_op(...)(func): Expected `func` to be a Python function, got: {type(function)}"
        )
    name = qualname.partition("::")[2]
    if function.__name__ != name:
        raise ValueError(
            f"custom_op(qualname='{qualname}', ...)(func): expected `func` to have name '{name}' but got "
            f"'{function.__name__}'. Please either change the name of `func` or the qualname that is passed to `custom_op`"
        )
    library.define(qualname, library.infer_schema(function, mutates_args=()))
    return function


def impl(qualname: str, *, device_types=("cpu", "cuda"), func=None):
    """Implement an operator for some devices; a decorator without ``func``."""
    return library.impl(qualname, device_types, func)


def impl_abstract(qualname: str, *, func=None):
    """Set the function that computes an operator's shapes without data; a decorator without ``func``."""
    return library.register_fake(qualname, func)


def impl_save_for_backward(qualname: str, *, func=None):
    """Not supported: raises NotImplementedError."""
    raise unsupported(
        "torch._custom_ops.impl_save_for_backward is not supported", "use torch.library.register_autograd"
    )


def impl_backward(qualname: str, output_differentiability=None, *, func=None):
    """Not supported: raises NotImplementedError."""
    raise unsupported(
        "torch._custom_ops.impl_backward is not supported", "use torch.library.register_autograd"
    )
