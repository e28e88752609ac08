"""The lines of a stub for one function or class: what a type checker is told about it.

Operators have types, because their declarations have them. Functions in Python have the names and defaults of their arguments, and
types where their source gives types that a stub can name. Everything else is Any, which checks nothing and reports nothing wrong.
"""

from __future__ import annotations

import ast
import inspect
import keyword
import re
import textwrap

from msadapter.ops import _declare, _schema


def words(text: str) -> list[str]:
    """The words of a list that is written as text."""
    return text.split()


# A type of a schema -> the type in a stub. The names are those of torch._stub_types.
_TYPES = {
    "Tensor": "_Tensor",
    "Tensor[]": "_Sequence[_Tensor]",
    "TensorOrScalar": "_Tensor | _Number",
    "Scalar": "_Tensor | _Number",
    "int": "_int",
    "int[]": "_int | _Sequence[_int]",
    "float": "_float",
    "float[]": "_Sequence[_float]",
    "bool": "_bool",
    "str": "_str",
    "ScalarType": "_dtype",
    "Generator": "_Generator",
    "Layout": "_layout",
    "Device": "_Device",
    "MemoryFormat": "_memory_format",
    "any": "_Any",
}
_RESULTS = {
    "Tensor": "_Tensor",
    "Tensor[]": "tuple[_Tensor, ...]",
    "bool": "_bool",
    "int": "_int",
    "any": "_Any",
}
# Annotations of our sources that mean the same in a stub. Any other is left out.
_ANNOTATIONS = {
    "bool": "_bool",
    "int": "_int",
    "float": "_float",
    "str": "_str",
    "None": "None",
    "bool | None": "_bool | None",
    "int | None": "_int | None",
    "float | None": "_float | None",
    "str | None": "_str | None",
    "builtins.bool": "_bool",
    "builtins.int": "_int",
    "_builtins.bool": "_bool",
    "_builtins.int": "_int",
    "Tensor": "_Tensor",
    "torch.Tensor": "_Tensor",
}
# Results of methods and functions that are not operators, where their source does not say.
_NUMBERS = "__len__ __int__ __index__ __hash__ dim ndimension numel nelement element_size storage_offset data_ptr get_device"
_TENSORS = """
__getitem__ __abs__ __neg__ __pos__ __invert__ as_subclass cuda cpu npu detach detach_ to type_as requires_grad_ pin_memory
share_memory_ new_tensor half float double short int long cfloat cdouble bfloat16 bool byte char squeeze_ unsqueeze_ transpose_
swapaxes_ swapdims_ t_ as_strided_ view to_dense to_sparse coalesce indices values tensor as_tensor from_numpy frombuffer
from_dlpack
"""
KNOWN_RESULTS = (
    dict.fromkeys(words(_NUMBERS), "_int")
    | dict.fromkeys(words(_TENSORS), "_Tensor")
    | dict.fromkeys(
        words("__bool__ __contains__ is_contiguous is_floating_point is_complex is_signed is_inference"),
        "_bool",
    )
    | {"__float__": "_float", "__complex__": "complex", "__iter__": "_Iterator[_Tensor]", "__repr__": "_str"}
    | {
        "item": "_int | _float",
        "backward": "None",
        "retain_grad": "None",
        "__setitem__": "None",
        "is_tensor": "_bool",
    }
)
OPERANDS = {
    f"__{prefix}{name}__"
    for name in words("add sub mul truediv floordiv mod pow and or xor lshift rshift matmul div")
    for prefix in ("", "r", "i")
} | {"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}


def operator(name: str, function, space: str) -> list[str] | None:
    """Lines for an operator of the table, or None if ``function`` is none.

    Args:
        name: the name under which it is found, such as "add_".
        function: the callable.
        space: "Tensor" for a method, else the namespace, such as "torch".
    """
    declaration, inplace = _declare.declaration_of(function)
    if declaration is None:
        return None
    schema = declaration.schema
    parameters = list(schema.parameters)
    method = space == "Tensor"
    first = parameters[0].name if parameters else ""
    if method:
        parameters = parameters[1:]
    result = "_Tensor" if inplace else _result(schema)
    forms = [(parameters, result)]
    if not inplace and schema.results[0] == "values" and _may_be_none(schema, "dim"):
        forms = _with_and_without_dim(parameters, result)
    elif (several := _several_ints(parameters)) is not None:
        forms.append((several, result))
    lines = []
    for these, its_result in forms:
        if len(forms) > 1:
            lines.append("@_overload")
        lines.append(
            f"def {name}({_arguments(these, method, first, 'o' in declaration.forms)}) -> {its_result}: ..."
        )
    return lines


def _result(schema: _schema.Schema) -> str:
    text = schema.text.rpartition("->")[2].strip()
    if not text.startswith("("):
        return _RESULTS[text]
    if all(schema.results):
        return f"_return_types.{_declare.result_name(schema)}"
    kinds = [part.split()[0] for part in _schema.split_arguments(text[1:-1])]
    return f"tuple[{', '.join(_RESULTS[kind] for kind in kinds)}]"


def _may_be_none(schema: _schema.Schema, name: str) -> bool:
    return any(p.name == name and not p.required and p.default is None for p in schema.parameters)


def _with_and_without_dim(parameters, result):
    """max(x) and max(x, other) are a tensor; max(x, dim) is values and indices."""
    rest = [p for p in parameters if p.name not in ("dim", "keepdim", "other")]
    dim = [p for p in parameters if p.name == "dim"][0]
    required = _schema.Parameter("dim", "int" if dim.type == "any" else dim.type)
    forms = [
        (rest, "_Tensor"),
        ([required if p is dim else p for p in parameters if p.name != "other"], result),
    ]
    if any(p.name == "other" for p in parameters):
        forms.append(([*rest, _schema.Parameter("other", "Tensor")], "_Tensor"))
    return forms


def _several_ints(parameters):
    """The form with several ints in the place of a list, as in x.permute(1, 0), where an operator takes it."""
    positional = [p for p in parameters if not p.keyword_only and p.name not in ("self", "input")]
    if len(positional) != 1 or positional[0].type != "int[]":
        return None
    return [_schema.Parameter("*" + positional[0].name, "int"), *(p for p in parameters if p.keyword_only)]


def _arguments(parameters, method: bool, first: str, takes_out: bool) -> str:
    parts = ["self"] if method else []
    keyword_only = False
    for p in parameters:
        if p.keyword_only and not keyword_only:
            keyword_only = True
            if not any(part.startswith("*") for part in parts):
                parts.append("*")
        name = "input" if p.name == "self" else p.name
        kind = _TYPES[p.type]
        if (p.nullable or (not p.required and p.default is None)) and kind != "_Any":
            kind += " | None"
        if keyword.iskeyword(name):  # random_(from=...) cannot be written in Python either
            name += "_"
        parts.append(_parameter(name, kind, p.required))
    if takes_out and not method:
        if not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append("out=...")
    return ", ".join(parts)


def _parameter(name: str, kind: str, required: bool) -> str:
    """A parameter without a type takes anything, which is shorter to read than Any."""
    if kind == "_Any":
        return name if required else f"{name}=..."
    return f"{name}: {kind}" if required else f"{name}: {kind} = ..."


def function(name: str, value, owner: str = "") -> list[str]:
    """Lines for a function in Python. ``owner`` is the class that has it, or ""."""
    decorators = []
    if isinstance(value, staticmethod):
        decorators, value = ["@staticmethod"], value.__func__
    elif isinstance(value, classmethod):
        decorators, value = ["@classmethod"], value.__func__
    if inspect.isgeneratorfunction(inspect.unwrap(value)):
        result = "_Any"
    else:
        result = _annotation(getattr(value, "__annotations__", {}).get("return", inspect.Parameter.empty))
    if name == "__init__":
        result = "None"
    if owner in ("", "Tensor"):
        result = KNOWN_RESULTS.get(name, result)
    if owner == "Tensor" and name in OPERANDS:
        return [f"def {name}(self, other) -> _Tensor: ..."]
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return [*decorators, _unknown(name, owner, decorators, result)]
    return [*decorators, f"def {name}({_python_arguments(found)}) -> {result}: ..."]


def _unknown(name: str, owner: str, decorators: list[str], result: str = "_Any") -> str:
    first = "" if not owner or "@staticmethod" in decorators else "self, "
    return f"def {name}({first}*args, **kwargs) -> {result}: ..."


def _annotation(given) -> str:
    text = given if isinstance(given, str) else "None" if given is None else getattr(given, "__name__", "")
    return _ANNOTATIONS.get(text.strip("'\""), "_Any") if given is not inspect.Parameter.empty else "_Any"


def _python_arguments(found: inspect.Signature) -> str:
    parts, star = [], False
    parameters = list(found.parameters.values())
    for index, p in enumerate(parameters):
        if p.kind is p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        star = star or p.kind is p.VAR_POSITIONAL
        name = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
        kind = "_Any" if p.annotation is p.empty or p.annotation is None else _annotation(p.annotation)
        # An annotation such as "dim: int = None" is met in practice; a checker would read it as an int only.
        if p.default is None and kind not in ("_Any", "None") and "None" not in kind:
            kind += " | None"
        parts.append(_parameter(name, kind, p.default is p.empty))
        if p.kind is p.POSITIONAL_ONLY and (
            index + 1 == len(parameters) or parameters[index + 1].kind is not p.POSITIONAL_ONLY
        ):
            parts.append("/")
    return ", ".join(parts)


def attributes(cls: type) -> dict[str, str]:
    """The attributes that the methods of ``cls`` set on self, with their types: Parameter, or Any."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(cls)))
    except (OSError, TypeError, SyntaxError):
        return {}
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)):
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parameter = (
            isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Name)
            and node.value.func.id == "Parameter"
        )
        for target in (part for one in targets for part in getattr(one, "elts", [one])):
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and target.value.id == "self"
            ):
                kind = "_Parameter" if parameter else "_Any"
                found[target.attr] = kind if found.get(target.attr, kind) == kind else "_Any"
    return {name: kind for name, kind in found.items() if not name.startswith("__") and usable(name)}


def usable(name: str) -> bool:
    """Whether ``name`` can be written in a stub."""
    return bool(re.fullmatch(r"[A-Za-z_]\w*", name)) and not keyword.iskeyword(name)
