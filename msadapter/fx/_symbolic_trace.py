"""Records a module or function by running it once with proxies."""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import operator
import sys
import types

import msadapter

from .. import nn
from .._errors import unsupported
from .._host import extensions
from ..nn import functional as F
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from .graph import Graph
from .graph_module import GraphModule
from .proxy import GraphAppendingTracer, TracerBase, proxies_in, record  # noqa: F401

__all__ = ["GraphAppendingTracer", "ProxyableClassMeta", "Tracer", "symbolic_trace", "wrap"]
_wrapped: dict = {}  # (id of a module's globals, name) -> (globals, name)


def wrap(fn_or_name):
    """Makes a function of the caller's module a leaf: its calls are recorded, instead of the operations inside.

    Call it at module scope with the function or its name, which may be a builtin such as ``"len"``, or use it as a decorator.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = (frame.f_globals, name)
    return fn_or_name


class ProxyableClassMeta(type):
    """A metaclass of classes whose construction from proxies is recorded."""

    def __call__(cls, *args, **kwargs):
        if proxies_in((args, kwargs)):
            return record(cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class _Recording(TorchFunctionMode):
    """Records calls of table functions with proxies as nodes."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not proxies_in((args, kwargs)):
            return function(*args, **kwargs)
        return record(_public(function), args, kwargs)


@functools.cache
def _public(function):
    """The public function for an internal one, for example operator.getitem for indexing."""
    return (
        operator.getitem
        if getattr(function, "__name__", "") in ("__getitem__", "_getitem", "getitem")
        else function
    )


def _recorded(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if proxies_in((args, kwargs)):
            return record(function, args, kwargs)
        return function(*args, **kwargs)

    wrapper.__fx_original__ = function
    return wrapper


class Tracer(TracerBase):
    """Runs a module with proxies. ``is_leaf_module`` determines which submodules are recorded as calls."""

    def __init__(self, autowrap_modules=(math,), autowrap_functions=(), param_shapes_constant=False):
        self._autowrap = list(autowrap_modules)
        self._autowrap_functions = list(autowrap_functions)
        self.root = None
        self._attributes: dict = {}

    # ---- methods that subclasses may override
    def is_leaf_module(self, m, module_qualified_name: str) -> bool:
        """Whether a call of this submodule is recorded as such: those of torch.nn are, but not Sequential."""
        space = type(m).__module__
        return space.startswith(("torch.nn", "msadapter.nn")) and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod) -> str:
        """Name of a submodule of the root."""
        for name, m in self.root.named_modules():
            if m is mod:
                return name
        raise NameError("module is not installed as a submodule")

    def call_module(self, m, forward, args, kwargs):
        """Handles a call of a submodule: records a node for a leaf, otherwise runs the submodule's code."""
        path = self.path_of_module(m)
        if self.is_leaf_module(m, path):
            return self.create_proxy("call_module", path, args, kwargs)
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        """A module's attribute while its code is recorded: parameters become nodes."""
        if isinstance(attr_val, nn.Parameter):
            for name, p in self.root.named_parameters():
                if p is attr_val:
                    if name not in parameter_proxy_cache:
                        parameter_proxy_cache[name] = self.create_proxy("get_attr", name, (), {})
                    return parameter_proxy_cache[name]
        return attr_val

    def create_arg(self, a):
        if isinstance(a, nn.Parameter):
            for name, p in self.root.named_parameters():
                if a is p:
                    return self.create_node("get_attr", name, (), {})
            raise NameError("parameter is not a member of this module")
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._attribute_of(a), (), {})
        if isinstance(a, nn.Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _attribute_of(self, a) -> str:
        """The attribute name of a tensor. Constants of the program are added to the module."""
        for name, b in self.root.named_buffers():
            if a is b:
                return name
        if id(a) not in self._attributes:
            i = 0
            while hasattr(self.root, f"_tensor_constant{i}"):
                i += 1
            setattr(self.root, f"_tensor_constant{i}", a)
            self._attributes[id(a)] = (f"_tensor_constant{i}", a)
        return self._attributes[id(a)][0]

    # ---- the run
    def trace(self, root, concrete_args=None):
        """The graph of a module, or of a function."""
        if isinstance(root, nn.Module):
            self.root, function = root, type(root).forward
        else:
            self.root, function = nn.Module(), root
        self.graph = Graph(tracer_cls=type(self))
        self._attributes = {}
        function = inspect.unwrap(function)
        args = self._placeholders(function, isinstance(root, nn.Module), concrete_args or {})
        with self._patched():
            result = _without_stars(function)(*args[0], **args[1])
        self.create_node("output", "output", (self.create_arg(result),), {})
        return self.graph

    def _placeholders(self, function, is_module: bool, concrete):
        """The (positional, keyword) proxies for a function's parameters, those of ``*args`` and ``**kwargs`` last."""
        parameters = list(inspect.signature(function).parameters.values())
        positional, keywords = [], {}
        if is_module:
            positional.append(self.root)
            parameters = parameters[1:]
        has_stars = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
        for p in parameters:
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                star = "*" if p.kind is p.VAR_POSITIONAL else "**"
                positional.append(self.create_proxy("placeholder", star + p.name, (), {}, name="_" + p.name))
            elif p.kind is p.KEYWORD_ONLY and not has_stars:
                keywords[p.name] = self._placeholder(p, concrete)
            else:
                positional.append(self._placeholder(p, concrete))
        return positional, keywords

    def _placeholder(self, p, concrete):
        default = () if p.default is p.empty else (p.default,)
        if p.name not in concrete:
            return self.create_proxy("placeholder", p.name, default, {}, type_expr=None)
        value = concrete[p.name]
        made = self.create_proxy("placeholder", f"{p.name}_1", default, {})
        if isinstance(value, (bool, int, float, str)) or value is None:
            text = f"{p.name} has been specialized to have value {value} but got another value"
            if value is not None:
                self.create_proxy("call_function", msadapter._assert, (made == value, text), {})
        return value

    @contextlib.contextmanager
    def _patched(self):
        """Calls and attributes of modules, functions of torch.nn.functional and wrapped functions, while recording."""
        saved = []
        parameters: dict = {}

        def put(space, name, value):
            saved.append((space, name, space[name]))
            space[name] = value

        call, tracer, plain_getattr = nn.Module.__call__, self, nn.Module.__getattr__

        def module_call(module, *args, **kwargs):
            return tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

        def module_getattr(module, name):
            return tracer.getattr(name, plain_getattr(module, name), parameters)

        own = "__getattr__" in vars(nn.Module)
        nn.Module.__call__, nn.Module.__getattr__ = module_call, module_getattr
        spaces = [vars(msadapter), vars(F), *(vars(m) for m in self._autowrap)]
        try:
            for space in spaces:
                for name, value in list(space.items()):
                    plain = isinstance(value, (types.FunctionType, types.BuiltinFunctionType))
                    if plain and not name.startswith("_") and name not in _ASKING:
                        put(space, name, _recorded(value))
            for space, name in _wrapped.values():
                value = space[name] if name in space else vars(sys.modules["builtins"])[name]
                if name not in space:
                    saved.append((space, name, _Absent))
                    space[name] = _recorded(value)
                else:
                    put(space, name, _recorded(value))
            with _Recording():
                yield
        finally:
            for space, name, value in reversed(saved):
                if value is _Absent:
                    del space[name]
                else:
                    space[name] = value
            nn.Module.__call__ = call
            if own:
                nn.Module.__getattr__ = plain_getattr
            else:
                del nn.Module.__getattr__


_ASKING = ("is_tensor", "is_storage", "typename", "compile", "install")  # they answer for stand-ins too


class _Absent:
    """Marks a global that was not there."""


def _without_stars(function):
    """The function with ``*args`` and ``**kwargs`` as ordinary parameters, so that stand-ins can be given for them."""
    code = function.__code__
    stars = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    if not stars:
        return function
    if code.co_flags & inspect.CO_VARARGS and code.co_kwonlyargcount:
        raise unsupported("torch.fx", "*args together with keyword-only arguments is not supported")
    plain = code.replace(
        co_argcount=code.co_argcount + code.co_kwonlyargcount + stars, co_kwonlyargcount=0,
        co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
    )  # fmt: skip
    return types.FunctionType(plain, function.__globals__, function.__name__, None, function.__closure__)


def symbolic_trace(root, concrete_args=None) -> GraphModule:
    """The GraphModule of a module or function. Arguments in ``concrete_args`` are fixed to these values."""
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


extensions.symbolic_tracer.provide(Tracer)  # pickled modules are recorded again
