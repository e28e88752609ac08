"""The op table: one declaration an operator, from which every form of it is made.

``op`` declares an operator on MindSpore's (or with a body of raw calls), ``composite`` one made of other operators.
See docs/architecture.md for the reading of a declaration.
"""

from __future__ import annotations

import collections
import copyreg
import dis
import inspect
from dataclasses import dataclass, field

from .._host.native import load as _load_native
from . import _schema

_C = _load_native()

raw_empty = _C.raw_empty
raw_view = _C.raw_view


class _Raw:
    """``raw.AddExt(...)``: one MindSpore operator, without gradient."""

    def __getattr__(self, name: str):
        call, handle = _C.call_operator, _C.operator_handle(name)

        def operator(*args):
            return call(handle, *args)

        operator.__name__ = name
        setattr(self, name, operator)
        return operator


class _LazyRaw(_Raw):
    def __getattr__(self, name: str):
        if name.startswith("__"):
            raise AttributeError(name)
        return super().__getattr__(name)


class _Table:
    """``t.mul``: any operator by torch's name; dots become underscores too (``t.linalg_inv``)."""

    def __getattr__(self, name: str):
        raise AttributeError(f"the op table has no operator {name!r}")


raw = _LazyRaw()
t = _Table()


@dataclass
class Declaration:
    """What the table knows of one operator."""

    schema: _schema.Schema
    forms: str
    kind: str  # "operator", "body" or "composite"
    mindspore: str | None
    promote: str | None
    view: bool
    differentiable: bool
    aliases: tuple[str, ...]
    dunder: str | None
    function: object = None  # the callable
    inplace: object = None
    body: object = None  # the Python function behind it, None for "operator"
    module: str = ""
    notes: str = ""
    names: list[str] = field(default_factory=list)


declarations: dict[str, Declaration] = {}
namespaces: dict[str, dict[str, object]] = collections.defaultdict(
    dict
)  # "torch", "nn.functional", "linalg", "Tensor" ...


def _result_type(schema: _schema.Schema):
    if len(schema.results) < 2 or not all(schema.results):
        return None
    base = collections.namedtuple(schema.name.split(".")[-1], schema.results)

    class Result(base):
        __slots__ = ()

        def __new__(cls, values=None, **kwargs):
            values = values if values is not None else tuple(kwargs[f] for f in base._fields)
            return tuple.__new__(cls, values)

        def __reduce__(self):
            return tuple, (tuple(self),)

        def __repr__(self):
            body = ",\n".join(f"{f}={getattr(self, f)!r}" for f in base._fields)
            return f"torch.return_types.{schema.name.split('.')[-1]}(\n{body})"

    Result.__name__ = Result.__qualname__ = schema.name.split(".")[-1]
    Result.__module__ = "torch.return_types"
    namespaces["return_types"][Result.__name__] = Result
    return Result


_METADATA = ("shape", "dtype", "ndim")


def _reads_shape_only(function, name: str) -> bool:
    """Whether a formula asks its argument for nothing but shape, dtype and ndim: then the values are not kept."""
    if not any(attribute in function.__code__.co_names for attribute in _METADATA):
        return False  # seen at once; reading instructions costs import time
    code = list(dis.get_instructions(function))
    uses = [i for i, step in enumerate(code) if step.opname.startswith("LOAD_") and step.argval == name]
    return bool(uses) and all(
        code[i].opname == "LOAD_FAST"
        and code[i + 1].opname == "LOAD_ATTR"
        and code[i + 1].argval in _METADATA
        for i in uses
    )


def _formulas(schema: _schema.Schema, grad) -> list:
    out = []
    names = [p.name for p in schema.parameters]
    for key, function in (grad or {}).items():
        joint = isinstance(key, tuple)
        wanted = [schema.index(k) for k in (key if joint else (key,))]
        parameters = list(inspect.signature(function).parameters)[1:]
        needs = []
        for name in parameters:
            if name == "needs":
                needs.append((2, 0, False))
            elif name == "result":
                needs.append((1, 0, False))
            elif name.startswith("result") and name[6:].isdigit():
                needs.append((1, int(name[6:]), False))
            elif name in names:
                needs.append((0, names.index(name), _reads_shape_only(function, name)))
            elif name in schema.results:
                needs.append((1, schema.results.index(name), False))
            else:
                raise ValueError(
                    f"{schema.name}: the gradient reads {name!r}, which is neither argument nor result"
                )
        out.append((wanted, function, needs, joint))
    return out


def _node_name(schema: _schema.Schema) -> str:
    parts = schema.name.split(".")[-1].strip("_").split("_")
    return "".join(p[:1].upper() + p[1:] for p in parts) + "Backward0"


def _spec(schema, *, body, composite, kernel, promote, promote_args, grad, view, autocast, inplace) -> dict:
    params = [
        {
            "name": p.name,
            "aliases": p.aliases,
            "type": p.type,
            "nullable": p.nullable or p.default is None and not p.required,
            "keyword_only": p.keyword_only,
            "required": p.required,
            "default": p.default,
        }
        for p in schema.parameters
    ]
    if promote_args is None:
        promote_args = (
            [p.name for p in schema.parameters if p.type in ("Tensor", "TensorOrScalar", "Tensor[]")]
            if promote
            else []
        )
    positional = [i for i, p in enumerate(schema.parameters) if not p.keyword_only]
    vararg = -1
    for i in positional:
        if schema.parameters[i].type == "int[]":
            if i == 0 or (i == 1 and schema.parameters[0].name == "self"):
                vararg = i
            break
    return {
        "name": schema.name.split(".")[-1],
        "node_name": _node_name(schema),
        "params": params,
        "kernel": kernel,
        "body": body,
        "composite": composite,
        "promote": promote,
        "promote_params": [schema.index(n) for n in promote_args],
        "formulas": _formulas(schema, grad),
        "result_type": _result_type(schema) if not inplace else None,
        "view": view,
        "vararg_index": vararg,
        "autocast": autocast,
        "inplace": inplace,
        "doc": schema.text,
    }


def _publish(declaration: Declaration) -> None:
    schema = declaration.schema
    for dotted in (schema.name, *declaration.aliases):
        space, _, name = dotted.rpartition(".")
        private = name.startswith("_")
        if "f" in declaration.forms or private:
            _put(space or "torch", name, declaration.function, declaration)
        if space in ("", "Tensor") and "m" in declaration.forms:
            _put("Tensor", name, declaration.function, declaration)
        if declaration.inplace is not None and space in ("", "Tensor", "nn.functional"):
            _put(space or "torch", name + "_", declaration.inplace, declaration)
            if space in ("", "Tensor"):
                _put("Tensor", name + "_", declaration.inplace, declaration)
        attribute = dotted.replace("Tensor.", "").replace("nn.functional.", "").replace(".", "_")
        if not hasattr(type(t), attribute) and attribute not in vars(t):
            setattr(t, attribute, declaration.function)
        if declaration.inplace is not None and attribute + "_" not in vars(t):
            setattr(t, attribute + "_", declaration.inplace)
    if declaration.dunder:
        name = declaration.dunder.strip("_")
        _put("Tensor", f"__{name}__", declaration.function, declaration)
        if declaration.inplace is not None:
            _put("Tensor", f"__i{name}__", declaration.inplace, declaration)


def _put(space: str, name: str, function, declaration: Declaration) -> None:
    have = namespaces[space].get(name)
    if have is not None and have is not function:
        raise ValueError(f"{space}.{name} is declared twice")
    namespaces[space][name] = function
    declaration.names.append(f"{space}.{name}")


def _declare(
    text: str,
    *,
    ms,
    body,
    composite_,
    promote,
    promote_args,
    forms,
    grad,
    view,
    aliases,
    dunder,
    autocast,
    notes,
):
    schema = _schema.parse(text)
    if schema.name in declarations:
        raise ValueError(f"operator {schema.name} is declared twice")
    kind = "composite" if composite_ else "body" if body else "operator"
    common = {
        "body": body,
        "composite": composite_,
        "kernel": ms,
        "promote": promote,
        "promote_args": promote_args,
        "grad": grad,
        "view": view,
        "autocast": autocast,
    }
    d = Declaration(
        schema,
        forms,
        kind,
        ms,
        promote,
        view,
        bool(grad) or composite_,
        tuple(aliases),
        dunder,
        notes=notes,
        body=body,
        module=(inspect.getmodule(body).__name__ if body else ""),
    )
    d.function = _C.make_op(_spec(schema, **common, inplace=False))
    if "i" in forms:
        d.inplace = _C.make_op(_spec(schema, **common, inplace=True))
    copyreg.pickle(type(d.function), _reduce_operator)
    name = schema.name.split(".")[-1]
    for f, suffix in ((d.function, ""), (d.inplace, "_")):
        if f is not None:
            f.__name__ = f.__qualname__ = name + suffix
            f.__module__ = "torch" if "." not in schema.name else "torch." + schema.name.rpartition(".")[0]
            f.__doc__ = schema.text
    declarations[schema.name] = d
    _publish(d)
    return d


def _by_name(space: str, name: str):
    return namespaces[space][name]


def _reduce_operator(function):
    """Operators are pickled and deep-copied by name."""
    module = function.__module__.removeprefix("torch").lstrip(".") or "torch"
    for space in (module, "Tensor", "torch", "nn.functional"):
        if namespaces[space].get(function.__name__) is function:
            return _by_name, (space, function.__name__)
    raise TypeError(f"cannot pickle operator {function.__name__}")


_AUTOCAST = {None: 0, "lower": 1, "float32": 2, "widest": 3}


def op(
    schema: str,
    *,
    ms: str | None = None,
    promote: str | None = None,
    promote_args=None,
    forms: str = "fm",
    grad=None,
    view: bool = False,
    aliases=(),
    dunder: str | None = None,
    autocast: str | None = None,
    notes: str = "",
):
    """Declares an operator.

    Args:
        schema: torch's signature, e.g. ``"add(Tensor self, TensorOrScalar other, *, Scalar alpha=1) -> Tensor"``.
        ms: MindSpore's operator, called with the arguments in schema order. Without it ``op`` is a decorator for a body
            that adapts the arguments and makes raw calls.
        promote: None, "default" or "float": the common dtype of ``promote_args`` (default: every tensor argument).
        forms: letters of f(unction) m(ethod) i(n-place) o(ut).
        grad: argument name (or tuple of names) -> function of the output gradient and of what it reads by name.
        view: the body returns views of the first argument.
        autocast: "lower", "float32" or "widest" under ``torch.autocast``.
    """
    options = {
        "promote": promote,
        "promote_args": promote_args,
        "forms": forms,
        "grad": grad,
        "view": view,
        "aliases": aliases,
        "dunder": dunder,
        "autocast": _AUTOCAST[autocast],
        "notes": notes,
        "composite_": False,
    }
    if ms is not None:
        return _declare(schema, ms=ms, body=None, **options).function

    def decorate(body):
        return _declare(schema, ms=None, body=body, **options).function

    return decorate


def composite(schema: str, *, forms: str = "fm", aliases=(), dunder: str | None = None, notes: str = ""):
    """Declares an operator as a function of other table operators; its gradient is theirs."""

    def decorate(body):
        return _declare(
            schema,
            ms=None,
            body=body,
            composite_=True,
            promote=None,
            promote_args=None,
            forms=forms,
            grad=None,
            view=False,
            aliases=aliases,
            dunder=dunder,
            autocast=0,
            notes=notes,
        ).function

    return decorate
