"""torch.library: operators that programs define, which are called as torch.ops.<namespace>.<name>.

An operator has an implementation (for all devices or for one), and may have an autograd formula. It may also
have a fake implementation for shapes; this is stored, but not used.
"""

import contextlib
import functools
import inspect
import os
import types
import typing
from pathlib import Path

from ._aten import OpOverload as _OpOverload
from ._errors import unsupported
from ._host import extensions as _extensions
from .autograd import Function, is_grad_enabled
from .ops._schema import split_arguments
from .profiler._ranges import enter_range, exit_range
from .tensor import Tensor
from .utils._python_dispatch import modes, run_in_mode

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]

_registry: dict = {}
_ANY = "default"
_KEYS = {
    "CompositeExplicitAutograd": _ANY,
    "CompositeImplicitAutograd": _ANY,
    "": _ANY,
    "CPU": "cpu",
    "CUDA": "accelerator",
    "PrivateUse1": "accelerator",
    "NPU": "accelerator",
    "cpu": "cpu",
    "cuda": "accelerator",
    "npu": "accelerator",
    "Autograd": "autograd",
    "AutogradCPU": "autograd",
    "AutogradCUDA": "autograd",
    "AutogradPrivateUse1": "autograd",
    "Meta": "fake",
}


class _Operator(_OpOverload):
    """An operator: its schema, implementations and autograd formula. Called as torch.ops.ns.name(...)."""

    def __init__(self, qualname: str, schema: str):
        self._qualname = qualname
        self._schema = schema
        self.namespace, _, self.__name__ = qualname.partition("::")
        self._overloadpacket, self._overloadname = self, "default"
        self._kernels = {}
        self._backward = self._setup_context = self._vmap = None

    @property
    def default(self):
        return self

    def name(self) -> str:
        """Return the qualified name, such as ``mylib::sum``."""
        return self._qualname

    @functools.cached_property
    def _parameters(self) -> tuple[list[str], list[str]]:
        """Return the names of the schema's positional parameters, and of those after its star."""
        text = (
            self._schema[self._schema.index("(") + 1 : self._schema.rindex("->")].rstrip().removesuffix(")")
        )
        names = [part.partition("=")[0].split()[-1] for part in split_arguments(text) if part.strip()]
        star = names.index("*") if "*" in names else len(names)
        return names[:star], names[star + 1 :]

    def _arranged(self, args, kwargs):
        """Return the call with keyword arguments moved to their positions, as far as there are no gaps."""
        positional, _ = self._parameters
        args, kwargs = list(args), dict(kwargs)
        for name in positional[len(args) :]:
            if name not in kwargs:
                break
            args.append(kwargs.pop(name))
        return args, kwargs

    def overloads(self) -> list:
        """Return the names of the overloads, of which there is only one."""
        return ["default"]

    def __call__(self, *args, **kwargs):
        kernel = self._kernels.get("autograd")
        if kernel is not None:
            return kernel(*args, **kwargs)
        tensors = _tensors((args, kwargs))
        batches = _extensions.batches.value
        if batches is not None and any(isinstance(t, batches.kind) for t in tensors):
            from .func._functions import call_operator  # here: it is imported already, as there is a batch

            return call_operator(self, self._vmap, *self._arranged(args, kwargs))
        if self._backward is not None and is_grad_enabled() and any(t.requires_grad for t in tensors):
            args, kwargs = self._arranged(args, kwargs)
            return _Recorded.apply(self, kwargs, *args)
        return self._run(args, kwargs)

    def _run(self, args, kwargs):
        """Let the innermost mode run the operator, which is recorded already, or call its kernel."""
        if modes():
            return run_in_mode(self, args, kwargs)
        accelerated = any(t.device.type != "cpu" for t in _tensors((args, kwargs)))
        kind = "accelerator" if accelerated else "cpu"
        # without an NPU both device types are the CPU, so a kernel for the other one is used too
        for key in (kind, _ANY):
            if key in self._kernels:
                return self._kernels[key](*args, **kwargs)
        raise NotImplementedError(
            f"Could not run '{self._qualname}' with arguments from the '{kind}' backend."
        )

    def __repr__(self):
        return f"<OpOverload(op='{self._qualname.replace('::', '.')}', overload='default')>"

    def __str__(self):
        return f"{self._qualname.replace('::', '.')}.default"


class _Recorded(Function):
    """Calls an operator and its autograd formula."""

    @staticmethod
    def forward(ctx, operator, kwargs, *args):
        output = operator._run(args, kwargs)
        ctx.operator, ctx.count = operator, len(args)
        if operator._setup_context is not None:
            options = {"ctx": ctx, "inputs": args, "output": output}
            if operator._parameters[1]:
                options["keyword_only_inputs"] = kwargs
            operator._setup_context(**options)
        return output

    @staticmethod
    def backward(ctx, *grads):
        found = ctx.operator._backward(ctx, *grads)
        found = found if isinstance(found, tuple) else (found,)
        if len(found) != ctx.count:
            raise RuntimeError(
                f"{ctx.operator._qualname}: backward gave {len(found)} gradients for {ctx.count} inputs"
            )
        return (None, None, *found)


_KINDS = {
    "Tensor": lambda x: isinstance(x, Tensor),
    "int": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "SymInt": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "float": lambda x: isinstance(x, (int, float)) and not isinstance(x, bool),
    "bool": lambda x: isinstance(x, bool),
    "str": lambda x: isinstance(x, str),
}


def _takes(schema: str, args, kwargs) -> bool:
    """Return whether a call fits a schema, judged by the types of its arguments. Unknown types always fit."""
    inside = schema[schema.index("(") + 1 : schema.rindex(")", 0, schema.rindex("->"))]
    wanted, by_name = [], {}
    for part in inside.split(","):
        words = part.split("=")[0].split()
        if len(words) == 2:
            by_name[words[1]] = words[0]
            wanted.append(words[0])
    if len(args) > len(wanted) or not by_name.keys() >= kwargs.keys():
        return False
    return all(
        _is_kind(value, kind)
        for value, kind in (*zip(args, wanted, strict=False), *((v, by_name[k]) for k, v in kwargs.items()))
    )


def _is_kind(value, kind: str) -> bool:
    kind, optional, _ = kind.partition("?")
    if value is None:
        return bool(optional)
    base, listed, _ = kind.partition("[")
    check = _KINDS.get(base.partition("(")[0])
    if check is None:
        return True
    if listed:
        return isinstance(value, (list, tuple)) and all(check(one) for one in value)
    return check(value)


class _Packet:
    """All overloads of an operator. A call runs the first overload that accepts its arguments."""

    def __init__(self, qualname: str):
        self._qualname = qualname
        self.__name__ = qualname.partition("::")[2]
        self._overloads: dict[str, _Operator] = {}

    def overloads(self) -> list:
        """Return the names of the overloads."""
        return list(self._overloads)

    def __call__(self, *args, **kwargs):
        for operator in self._overloads.values():
            if _takes(operator._schema, args, kwargs):
                return operator(*args, **kwargs)
        raise RuntimeError(
            f"{self._qualname}() no overload takes these arguments; there are: "
            + ", ".join(f"{name}{operator._schema}" for name, operator in self._overloads.items())
        )

    def __getattr__(self, name: str):
        if name.startswith("__") or name not in self._overloads:
            raise AttributeError(f"The operator {self._qualname!r} has no overload {name!r}")
        return self._overloads[name]

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self._qualname.replace('::', '.')}')>"


def _tensors(value) -> list:
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return []
    return [t for item in value for t in _tensors(item)]


def _get(op) -> _Operator:
    name = op if isinstance(op, str) else getattr(op, "_qualname", None)
    if name not in _registry:
        raise RuntimeError(f"There is no operator {name!r}: define it first")
    return _registry[name]


def find(namespace: str, name: str):
    """Return the operator torch.ops.<namespace>.<name>, or None."""
    return _registry.get(f"{namespace}::{name}")


def _define(qualname: str, schema: str) -> _Operator:
    if "::" not in qualname:
        raise ValueError(f"Expected qualname to be of the form 'namespace::name', but got {qualname!r}")
    if qualname in _registry:
        raise RuntimeError(f"The operator {qualname} was defined before")
    operator = _registry[qualname] = _Operator(qualname, schema)
    space, _, name = qualname.partition("::")
    base, dot, overload = name.partition(".")
    if dot:
        packet = _registry.setdefault(f"{space}::{base}", _Packet(f"{space}::{base}"))
        if not isinstance(packet, _Packet):
            del _registry[qualname]
            raise RuntimeError(f"The operator {space}::{base} was defined before, without overloads")
        packet._overloads[overload] = operator
    return operator


def define(qualname, schema, *, lib=None, tags=()) -> None:
    """Define an operator: ('ns::name', '(Tensor x) -> Tensor')."""
    _define(qualname, schema)


def impl(qualname, types, func=None, *, lib=None):
    """Implement an operator for 'cpu', 'cuda', 'npu', 'default' or a dispatch key.

    Without func, return a decorator.

    In the older form the first argument is a Library, the second the operator's name, and the third the
    dispatch key.
    """
    if isinstance(qualname, Library):

        def decorate(f):
            qualname.impl(types, f, func or "")
            return f

        return decorate
    if func is None:
        return lambda f: impl(qualname, types, f)
    for kind in (types,) if isinstance(types, str) else types:
        _get(qualname)._kernels[_KEYS.get(kind, kind)] = func
    return func


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """The newer name of impl. device_types None means all devices."""
    return impl(_get(op)._qualname, _ANY if device_types is None else device_types, func)


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1, allow_override=True):
    """Set the function that computes an operator's shapes without data."""
    if func is None:
        return lambda f: register_fake(op, f)
    _get(op)._kernels["fake"] = func
    return func


impl_abstract = register_fake


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """Set an operator's gradient: backward(ctx, *grads) and setup_context(ctx, inputs, output)."""
    operator = _get(op)
    operator._backward, operator._setup_context = backward, setup_context


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Inputs cast under autocast."""
    raise unsupported("torch.library.register_autocast")


def register_vmap(op, func=None, /, *, lib=None):
    """Set what vmap does with an operator: func(info, in_dims, *args) returns the output of a batch and its dims.

    Without func, return a decorator.
    """
    if not isinstance(op, (str, _OpOverload, CustomOpDef)):
        raise ValueError(f"register_vmap({op}): got unexpected type for op: {type(op)}")

    def register(rule):
        _get(op)._vmap = rule

    return register if func is None else register(func)


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """A rule for a dispatch mode."""
    raise unsupported("torch.library.register_torch_dispatch")


def triton_op(*args, **kwargs):
    """An operator written in Triton."""
    raise unsupported("torch.library.triton_op")


wrap_triton = triton_op


def opcheck(*args, **kwargs):
    """Tests of an operator's registrations."""
    raise unsupported("torch.library.opcheck")


def get_ctx():
    """The context of a fake implementation."""
    raise unsupported("torch.library.get_ctx")


_SCHEMA_NAMES = {int: "SymInt", float: "float", bool: "bool", str: "str", Tensor: "Tensor"}
_NUMBER = {int, float, bool}  # torch.types.Number is their union


def _schema_type(annotation) -> str:
    if annotation in _SCHEMA_NAMES:
        return _SCHEMA_NAMES[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (list, typing.Sequence) or str(origin).endswith("Sequence'>"):
        return f"{_schema_type(args[0])}[]"
    if type(None) in args:
        return f"{_schema_type(typing.Union[tuple(a for a in args if a is not type(None))])}?"  # noqa: UP007
    if set(args) == _NUMBER and origin in (typing.Union, types.UnionType):
        return "Scalar"
    name = getattr(annotation, "__name__", "")
    if name in ("dtype", "device"):
        return {"dtype": "ScalarType", "device": "Device"}[name]
    raise ValueError(f"infer_schema(func): unsupported type {annotation}")


def infer_schema(prototype_function, /, *, mutates_args, op_name=None) -> str:
    """The schema text of a function with type annotations."""
    signature = inspect.signature(prototype_function, eval_str=True)
    parts, mutated = [], 0
    for name, parameter in signature.parameters.items():
        if parameter.annotation is inspect.Parameter.empty:
            raise ValueError(f"infer_schema(func): Parameter {name} must have a type annotation.")
        text = _schema_type(parameter.annotation)
        if text.startswith("Tensor") and (mutates_args == "unknown" or name in mutates_args):
            text = text.replace("Tensor", f"Tensor(a{mutated}!)", 1)
            mutated += 1
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f"={parameter.default}"
        parts.append(f"{text} {name}{default}")
    returned = signature.return_annotation
    if returned in (None, type(None)):
        result = "()"
    elif typing.get_origin(returned) is tuple:
        result = "(" + ", ".join(_schema_type(a) for a in typing.get_args(returned)) + ")"
    else:
        result = _schema_type(returned)
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


class CustomOpDef:
    """What custom_op gives: the operator and the ways to complete it."""

    def __init__(self, qualname, schema, fn):
        self._qualname = qualname
        self._operator = _define(qualname, schema)
        self._init_fn = fn

    @property
    def _opoverload(self):
        return self._operator

    def __call__(self, *args, **kwargs):
        return self._operator(*args, **kwargs)

    def register_kernel(self, device_types, fn=None, /):
        """Another implementation for some devices."""
        return register_kernel(self._qualname, device_types, fn)

    def register_fake(self, fn, /):
        """The function that computes shapes."""
        return register_fake(self._qualname, fn)

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """The gradient."""
        register_autograd(self._qualname, backward, setup_context=setup_context)

    def register_vmap(self, func=None):
        """What vmap does with the operator."""
        return register_vmap(self, func)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Make a function the operator 'ns::name' (a decorator without fn)."""
    if fn is None:
        return lambda f: custom_op(
            name, f, mutates_args=mutates_args, device_types=device_types, schema=schema
        )
    text = infer_schema(fn, mutates_args=mutates_args) if schema is None else schema
    made = CustomOpDef(name, text, fn)
    register_kernel(name, device_types, fn)
    return made


class Library:
    """Operators of one namespace: kind 'DEF' (a new one), 'FRAGMENT' (more of one), 'IMPL' (implementations)."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns = ns
        self.kind = kind
        self.dispatch_key = dispatch_key
        self._defined = []

    def define(self, schema: str, alias_analysis="", *, tags=()) -> str:
        """Define 'name(Tensor x) -> Tensor'; its name."""
        name = schema.partition("(")[0].strip()
        _define(f"{self.ns}::{name}", schema[len(name) :])
        self._defined.append(f"{self.ns}::{name}")
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=True) -> None:
        """Implement an operator for a dispatch key. A function that wants the set of keys is not supported."""
        if with_keyset:
            raise unsupported("torch.library.Library.impl", "with_keyset=True is not supported")
        name = op_name if isinstance(op_name, str) else op_name._qualname
        name = name if "::" in name else f"{self.ns}::{name}"
        impl(name, dispatch_key or self.dispatch_key, fn)

    def _destroy(self) -> None:
        for name in self._defined:
            _registry.pop(name, None)
            base, dot, overload = name.partition(".")
            if dot and isinstance(_registry.get(base), _Packet):
                _registry[base]._overloads.pop(overload, None)
                if not _registry[base]._overloads:
                    del _registry[base]


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """Return a Library whose operators are removed at the end of the block."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


class _OpNamespace:
    """torch.ops.<namespace>."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str):
        found = find(self._name, name)
        if found is None:
            raise AttributeError(f"'_OpNamespace' '{self._name}' object has no attribute '{name}'")
        return found


_loaded_libraries: set[str] = set()


def _load_library(path: str) -> None:
    """torch.ops.load_library: define the operators that a compiled library would define.

    Libraries are compiled against PyTorch's C++ interface, so none can be loaded. For torchvision's, our own operators
    (``msadapter/_vision``) take its place. Every other library raises OSError, for which packages provide.
    """
    place = Path(os.fspath(path)).resolve()
    if not place.is_file():
        raise OSError(f"Could not load this library: {place}: there is no such file")
    if place.parent.name != "torchvision" or not place.name.startswith("_C."):
        raise OSError(
            f"Could not load this library: {place}: libraries that are compiled against PyTorch's C++ interface are not "
            "supported (docs/coverage.md)"
        )
    if "torchvision::nms" not in _registry:
        from . import _vision  # here: only programs that use torchvision need it

        for name, (schema, function) in _vision.OPERATORS.items():
            _define(f"torchvision::{name}", schema)
            impl(f"torchvision::{name}", _ANY, function)
        for name, (formula, save) in _vision.FORMULAS.items():
            register_autograd(f"torchvision::{name}", formula, setup_context=save)
    _loaded_libraries.add(str(place))


def _define_collectives(space: str) -> None:
    """Define the collectives that programs name as operators, so that they can tell a checkpoint to keep their results."""
    from .distributed._functional_collectives import OPERATORS  # here: few programs name them

    for schema, function in OPERATORS:
        name, _, rest = schema.partition("(")
        _define(f"{space}::{name}", f"({rest}")
        impl(f"{space}::{name}", _ANY, function)


@functools.cache
def _namespace(name: str):
    """torch.ops.<name>; in aten, what programs define comes before the operators of the table."""
    if name == "load_library":
        return _load_library
    if name == "loaded_libraries":
        return _loaded_libraries
    programs = _OpNamespace(name)
    if name == "profiler":
        programs._record_function_enter, programs._record_function_exit = enter_range, exit_range
    if name == "_c10d_functional" and not find(name, "all_reduce"):
        _define_collectives(name)
    if name != "aten":
        return programs
    from ._aten import namespace  # here: it is large, and few programs name it

    return namespace(lambda operator: getattr(programs, operator, None))


_extensions.operator_namespaces.provide(_namespace)
