"""The arguments of operators and modules by their signatures: which overload a call means, and the call with all defaults."""

from __future__ import annotations

import functools
import inspect
import numbers
import types
import typing
import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import msadapter

from .. import nn
from .._aten import OpOverload, OpOverloadPacket
from ..ops._declare import declaration_of
from ..tensor._signatures import signature_of, written_out

__all__ = [
    "ArgsKwargsPair",
    "check_for_mutable_operation",
    "create_type_hint",
    "get_signature_for_torch_op",
    "normalize_function",
    "normalize_module",
    "type_matches",
]


class ArgsKwargsPair(NamedTuple):
    """The positional and the keyword arguments of a call."""

    args: tuple
    kwargs: dict


@dataclass(frozen=True)
class OperatorSchema:
    """An overload of an operator.

    Attributes:
        name: its name in PyTorch's dispatcher, such as aten::add.
        overload_name: the name of the overload; empty for the first one.
        text: its arguments and results.
        is_mutable: whether it writes to an argument.
    """

    name: str
    overload_name: str
    text: str
    is_mutable: bool

    def __str__(self) -> str:
        return f"{self.name}{'.' if self.overload_name else ''}{self.overload_name}{self.text}"


def _table_function(op):
    """Return the function of the table behind an operator of torch.ops.aten; any other function as it is."""
    op = op._overloadpacket if isinstance(op, OpOverload) else op
    return op._function if isinstance(op, OpOverloadPacket) else op


@functools.cache
def _overloads(op) -> tuple[tuple[inspect.Signature, OperatorSchema], ...]:
    declaration, inplace = declaration_of(op)
    if declaration is None:
        return ()
    found = []
    for schema in _by_operand(declaration.schema):
        name = schema.name.removeprefix("aten.").removeprefix("nn.functional.").replace(".", "_")
        text = schema.text[schema.text.index("(") :]
        if inplace:
            text = text.replace("(Tensor ", "(Tensor(a!) ", 1)
        own = OperatorSchema(f"aten::{name}{'_' * inplace}", "", text, inplace)
        found.append((written_out(schema), own))
        if "o" in declaration.forms and not inplace:
            starred = any(p.keyword_only for p in schema.parameters)
            head, arrow, result = text.rpartition(") -> ")
            text = f"{head}, {'' if starred else '*, '}Tensor(a!) out{arrow}{result}"
            out = replace(own, overload_name="out", text=text, is_mutable=True)
            found.append((written_out(schema, [_OUT]), out))
    return tuple(found)


_OUT = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, annotation=msadapter.Tensor)


def _by_operand(schema) -> list:
    """Return the schemas of PyTorch's overloads: one for a tensor and one for a number, where the table takes both."""
    at = next((i for i, p in enumerate(schema.parameters) if i and p.type == "TensorOrScalar"), None)
    if at is None:
        return [schema]
    made = []
    for kind in ("Tensor", "Scalar"):
        parameters = list(schema.parameters)
        parameters[at] = replace(parameters[at], type=kind)
        made.append(replace(schema, parameters=parameters))
    return made


def get_signature_for_torch_op(op, return_schemas: bool = False):
    """Return the signatures of an operator's overloads, or None for a function that is no builtin operator.

    The table has one declaration for some of PyTorch's overloads, so there may be fewer of them here.

    Args:
        return_schemas: whether the schemas are returned too, as the second of a pair.
    """
    function = _table_function(op)
    is_operator = isinstance(op, (OpOverload, OpOverloadPacket))
    found = _overloads(function) if is_operator or signature_of(function) is None else ()
    if not found:
        return (None, None) if return_schemas else None
    signatures, schemas = ([pair[i] for pair in found] for i in (0, 1))
    return (signatures, schemas) if return_schemas else signatures


def check_for_mutable_operation(target, args, kwargs) -> None:
    """RuntimeError for a call that writes to its operands. Calls that fit several overloads are not judged."""
    signatures, schemas = get_signature_for_torch_op(target, return_schemas=True)
    fitting = [
        schema
        for signature, schema in zip(signatures or (), schemas or (), strict=True)
        if _binds(signature, args, kwargs)
    ]
    if len(fitting) == 1 and fitting[0].is_mutable:
        raise RuntimeError(
            f"Tried to trace mutable operation {fitting[0]}. FX only supports functional code, so operations that mutate "
            "operands in-place (e.g. via `out` arguments) are not supported"
        )


def _binds(signature: inspect.Signature, args, kwargs) -> bool:
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


def create_type_hint(x):
    """Return the type of a list or tuple of types: that of its elements, if one of them is the base of all."""
    if not isinstance(x, (list, tuple)):
        return x
    made = (lambda t: list[t]) if isinstance(x, list) else (lambda t: tuple[t, ...])
    if not x:
        return made(typing.Any)
    if not all(isinstance(t, type) for t in x):
        warnings.warn(f"We were not able to successfully create type hint from the type {x}", stacklevel=2)
        return x
    base = next((t for t in x if all(issubclass(other, t) for other in x)), typing.Any)
    return made(base)


def type_matches(signature_type, argument_type) -> bool:
    """Return whether an argument of one type fits a parameter of another."""
    if signature_type is argument_type:
        return True
    origin = typing.get_origin(signature_type)
    if origin in (typing.Union, types.UnionType):
        return any(type_matches(one, argument_type) for one in typing.get_args(signature_type))
    if origin is list:
        return _fits_list(signature_type, argument_type)
    if signature_type is int and argument_type is msadapter.dtype:
        return True
    if signature_type is numbers.Number and argument_type in (int, float):
        return True
    plain = inspect.isclass(argument_type) and inspect.isclass(signature_type)
    return plain and issubclass(argument_type, signature_type)


def _fits_list(signature_type, argument_type) -> bool:
    (element,) = typing.get_args(signature_type)
    if argument_type is int and element is int:
        return True
    if not inspect.isclass(element):
        warnings.warn(
            f"Does not support nested parametric types, got {signature_type}. Please file a bug.",
            stacklevel=3,
        )
        return False
    members = typing.get_args(argument_type)
    if typing.get_origin(argument_type) is list:
        return issubclass(members[0], element)
    if typing.get_origin(argument_type) is not tuple:
        return False
    return members == ((),) or all(m is Ellipsis or issubclass(m, element) for m in members)


def normalize_function(
    target, args, kwargs=None, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs: bool = False
) -> ArgsKwargsPair | None:
    """Return the arguments of a call in the order of the function's signature, with defaults.

    Args:
        arg_types, kwarg_types: the types of the arguments, which choose between overloads that the call fits.
        normalize_to_only_use_kwargs: whether positional arguments become keyword arguments.

    Returns:
        None for a call that fits no signature, and for functions with ``*args`` or ``**kwargs``.

    Raises:
        RuntimeError: the call fits several overloads, and the types are not given.
    """
    kwargs = kwargs or {}
    is_builtin = isinstance(target, (types.BuiltinFunctionType, OpOverload, OpOverloadPacket))
    if not is_builtin and hasattr(target, "_op"):
        target = target._op
        is_builtin = isinstance(target, (types.BuiltinFunctionType, OpOverload, OpOverloadPacket))
    if not is_builtin:
        return _normalized(_python_signature(target), args, kwargs, normalize_to_only_use_kwargs)
    candidates = get_signature_for_torch_op(target) or []
    fitting = [signature for signature in candidates if _binds(signature, args, kwargs)]
    if len(fitting) > 1 and arg_types is None and kwarg_types is None:
        raise RuntimeError(
            f"Tried to normalize arguments to {msadapter.typename(target)} but the schema match was ambiguous! Please provide "
            "argument types to the normalize_arguments() call. Available schemas:\n"
            + "\n".join(map(str, fitting))
        )
    if len(fitting) > 1:
        fitting = [s for s in candidates if _types_fit(s, arg_types or (), kwarg_types or {})]
    return _normalized(fitting[0], args, kwargs, normalize_to_only_use_kwargs) if fitting else None


def _python_signature(target) -> inspect.Signature:
    """Return the signature of a function. Those that choose between two have the arguments of both."""
    declaration, _ = declaration_of(target)
    return (
        inspect.signature(inspect.unwrap(target)) if declaration is None else written_out(declaration.schema)
    )


def _types_fit(signature: inspect.Signature, arg_types, kwarg_types) -> bool:
    if not _binds(signature, arg_types, kwarg_types):
        return False
    given = signature.bind(*arg_types, **kwarg_types).arguments
    return all(type_matches(signature.parameters[name].annotation, kind) for name, kind in given.items())


def normalize_module(
    root, target: str, args, kwargs=None, normalize_to_only_use_kwargs: bool = False
) -> ArgsKwargsPair | None:
    """Return the arguments of a call of a module of torch.nn, as `normalize_function` does; None for other modules."""
    try:
        module = root.get_submodule(target)
    except AttributeError as error:
        raise RuntimeError(
            f"Tried to normalize node with target {target} but root did not have that target!"
        ) from error
    if getattr(nn, type(module).__name__, None) is not type(module):
        return None
    signature = inspect.signature(inspect.unwrap(module.forward))
    return _normalized(signature, args, kwargs or {}, normalize_to_only_use_kwargs)


def _normalized(signature, args, kwargs, only_kwargs: bool) -> ArgsKwargsPair | None:
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind not in plain for p in signature.parameters.values()):
        return None
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    count = 0 if only_kwargs else len(args)
    values = list(bound.arguments.items())
    return ArgsKwargsPair(tuple(value for _, value in values[:count]), dict(values[count:]))
