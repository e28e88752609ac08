"""Writes the type stubs of torch, msadapter/alias/shim/torch-stubs, from the declarations and the modules of msadapter.

    python -m tests.stubs.make_stubs

Type checkers and editors read source files, and the operators have none that they could read. They look for the folder torch-stubs
beside the package torch, that is beside the stand-in for torch that `python -m msadapter enable` puts on the search path.

A name gets its whole definition in one module, and the other modules import it from there. Private modules are said to exist, and
anything may be taken from them.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import importlib
import shutil
import sys
import types
import typing
from pathlib import Path

import msadapter
from msadapter._values.base import Absent
from msadapter.alias import submodules
from msadapter.ops import _declare
from tests.stubs import signatures

msadapter.install()

FOLDER = Path(msadapter.__file__).parent / "alias" / "shim" / "torch-stubs"
# Modules that programs import themselves; submodules.py has those that `import torch` loads.
IMPORTED = """
distributed.algorithms.ddp_comm_hooks distributed.algorithms.ddp_comm_hooks.default_hooks distributed.algorithms.model_averaging
distributed.checkpoint distributed.checkpoint.filesystem distributed.checkpoint.format_utils distributed.checkpoint.metadata
distributed.checkpoint.planner distributed.checkpoint.state_dict distributed.checkpoint.stateful distributed.elastic
distributed.elastic.control_plane distributed.elastic.events distributed.elastic.metrics distributed.elastic.metrics.api
distributed.elastic.multiprocessing distributed.elastic.multiprocessing.errors distributed.elastic.rendezvous
distributed.elastic.rendezvous.api distributed.elastic.rendezvous.c10d_rendezvous_backend
distributed.elastic.rendezvous.dynamic_rendezvous distributed.elastic.rendezvous.registry
distributed.elastic.rendezvous.static_tcp_rendezvous distributed.elastic.rendezvous.utils distributed.elastic.timer
distributed.elastic.timer.api distributed.elastic.utils distributed.elastic.utils.data distributed.elastic.utils.distributed
distributed.elastic.utils.logging distributed.elastic.utils.store distributed.fsdp distributed.fsdp.wrap
distributed.nn distributed.nn.api distributed.nn.api.remote_module distributed.nn.functional distributed.optim
distributed.pipelining distributed.tensor distributed.tensor.experimental distributed.tensor.parallel
distributed.tensor.placement_types fx.experimental.symbolic_shapes
nn.attention.bias nn.attention.flex_attention nn.utils.prune npu onnx utils.benchmark utils.cpp_extension utils.flop_counter
utils.model_zoo utils.tensorboard
""".split()  # noqa: SIM905 (a list literal of this length would be a page of quotes)
FIRST = (
    "_tensor",
    "nn.parameter",
    "return_types",
)  # where Tensor, Parameter and the named results are defined
UNKNOWN = ("ops",)  # public modules whose names are made when they are asked for: torch.ops.aten.add
HEAD = "# Written by python -m tests.stubs.make_stubs; do not edit.\n"
TYPES = f"""{HEAD}# The types that the other stubs name. At run time there is no such module.
from collections.abc import Callable as _Callable, Iterator as _Iterator, Sequence as _Sequence
from typing import Any as _Any, overload as _overload

import torch.return_types as _return_types
from torch import (
    Generator as _Generator,
    device as _device_class,
    dtype as _dtype,
    layout as _layout,
    memory_format as _memory_format,
)
from torch._tensor import Tensor as _Tensor
from torch.nn.parameter import Parameter as _Parameter

_bool = bool
_int = int
_float = float
_str = str
_Number = int | float | complex
_Device = _device_class | str | int
__all__ = [
    "_Any", "_Callable", "_Device", "_Generator", "_Iterator", "_Number", "_Parameter", "_Sequence", "_Tensor",
    "_bool", "_dtype", "_float", "_int", "_layout", "_memory_format", "_overload", "_return_types", "_str",
]
"""
IMPORT = "from torch._stub_types import *\n"
# Properties and methods of Tensor whose source does not say what they are.
TENSOR_ATTRIBUTES = {
    **dict.fromkeys(signatures.words("T mT H mH real imag data"), "_Tensor"),
    **dict.fromkeys(signatures.words("ndim itemsize nbytes output_nr _version"), "_int"),
    **dict.fromkeys(signatures.words("requires_grad is_leaf retains_grad"), "_bool"),
    "grad": "_Tensor | None",
    "dtype": "_dtype",
    "device": "_device_class",
    "layout": "_layout",
    "shape": "_Size",
    "grad_fn": "_Any",
    "names": "_Any",
}
TENSOR_METHODS = """\
@_overload
def size(self, dim: None = ...) -> _Size: ...
@_overload
def size(self, dim: _int) -> _int: ...
@_overload
def stride(self, dim: None = ...) -> tuple[_int, ...]: ...
@_overload
def stride(self, dim: _int) -> _int: ...
@_overload
def type(self, dtype: None = ..., non_blocking: _bool = ...) -> _str: ...
@_overload
def type(self, dtype, non_blocking: _bool = ...) -> _Tensor: ...
def to(self, *args, **kwargs) -> _Tensor: ...
@_overload
def view(self, dtype: _dtype) -> _Tensor: ...
@_overload
def view(self, size: _Sequence[_int]) -> _Tensor: ...
@_overload
def view(self, *size: _int) -> _Tensor: ...
"""


class Stubs:
    """Finds the home of every class and function, and writes the modules."""

    def __init__(self) -> None:
        names = {*submodules.PRESENT, *submodules.ELSEWHERE, *IMPORTED}
        # A module of a package needs the package, although a program need not import it first.
        names |= {name.rpartition(".")[0] for name in list(names)} - {""}
        public = [name for name in names if not _private(name) or name in FIRST]
        order = sorted(public, key=lambda name: (name not in FIRST, name.count("."), name))
        self.modules = {"": msadapter} | {name: importlib.import_module(f"torch.{name}") for name in order}
        self.private = sorted(name for name in names if _private(name) and name not in FIRST)
        self.home: dict[int, tuple[str, str]] = {}
        self._find_homes([*FIRST, *(name for name in self.modules if name not in FIRST)])

    def _find_homes(self, order: list[str]) -> None:
        stated, others = [], []
        for module in order:
            for name, value in public_names(self.modules[module]).items():
                if isinstance(value, type) or callable(value):
                    own = module != "" and _at(value) == f"torch.{module}"
                    (stated if own else others).append((module, name, value))
        for module, name, value in [*(one for one in stated if one[0] in FIRST), *stated, *others]:
            if name == getattr(value, "__name__", name):
                self.home.setdefault(id(value), (module, name))

    def files(self) -> dict[str, str]:
        """Every file of the stubs: its path below the folder, and its text."""
        packages = {name.rpartition(".")[0] for name in [*self.modules, *self.private]} | {""}
        found = {"_stub_types.pyi": TYPES}
        for name in (*self.private, *UNKNOWN):
            found[_path(name, packages)] = (
                f"{HEAD}from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"
            )
        for name in self.modules.keys() - set(UNKNOWN):
            found[_path(name, packages)] = self.text(name)
        return found

    def text(self, module: str) -> str:
        """The stub of one module."""
        dotted = f"torch.{module}" if module else "torch"
        imports: set[str] = set()
        lines: list[str] = []
        for name, value in sorted(public_names(self.modules[module]).items()):
            home = self.home.get(id(value)) if callable(value) else None
            if home is not None and home != (module, name):
                if home[0] == module:
                    lines.append(f"{name} = {home[1]}")
                    continue
                source = f"torch.{home[0]}" if home[0] else "torch"
                imports.add(f"from {source} import {home[1]} as {name}")
                continue
            lines += self.definition(module, name, value, imports)
        if any("_device_class" in line for line in lines):
            imports.add("from torch import device as _device_class")
        if any("_Size" in line for line in lines):
            imports.add("from torch import Size as _Size")
        for package in [*self.modules, *self.private]:
            parent, _, child = package.rpartition(".")
            # torch.nn.functional may be used without an import of its own. Only what loads by itself may.
            if (
                package
                and parent == module
                and isinstance(getattr(self.modules[module], child, None), types.ModuleType)
            ):
                imports.add(f"from {dotted} import {child} as {child}")
        text = (
            HEAD
            + "import builtins as _builtins\n"
            + IMPORT
            + "".join(f"{one}\n" for one in sorted(imports, key=lambda one: (one.startswith("_T"), one)))
        )
        return text + "\n" + "".join(f"{line}\n" for line in lines)

    def definition(self, module: str, name: str, value, imports: set[str]) -> list[str]:
        """The lines that define ``name`` in ``module``."""
        if isinstance(value, type) and not isinstance(
            value, types.GenericAlias
        ):  # dict[str, int] is both in Python 3.10
            if type(value).__name__ == "_Meta":  # torch.LongTensor, which makes tensors and names their type
                return [f"class {name}(_Tensor):", "    def __init__(self, *args, **kwargs) -> None: ..."]
            if _ours(value):
                return self.class_lines(module, name, value, imports)
            if getattr(sys.modules[value.__module__], value.__name__, None) is value:
                imports.add(f"from {value.__module__} import {value.__name__} as {name}")
                return []
            return [f"{name}: _Any"]
        if _is_alias(name, value):
            return [f"{name} = _Any"]
        operator = signatures.operator(name, value, module or "torch") if callable(value) else None
        if operator is not None:
            return operator
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType)):
            return signatures.function(name, value)
        kind = type(value)
        if kind in (bool, int, float, str):
            return [f"{name}: _builtins.{kind.__name__}"]
        named = {
            "dtype": "_dtype",
            "layout": "_layout",
            "memory_format": "_memory_format",
            "device": "_device_class",
        }
        return [f"{name}: {named.get(kind.__name__, '_Any')}"]

    def class_lines(self, module: str, name: str, cls: type, imports: set[str]) -> list[str]:
        """A class: its bases, attributes and methods. Bases without a place in a public module are merged into it."""
        named = module == "return_types"
        if issubclass(cls, tuple) and (named or hasattr(cls, "_fields")):
            imports.add("from typing import NamedTuple as _NamedTuple")
            names, kind = (cls.__match_args__, "_Tensor") if named else (cls._fields, "_Any")
            fields = [f"    {one}: {kind}" for one in names]
            return [f"class {name}(_NamedTuple):", *(fields or ["    ..."])]
        if issubclass(cls, enum.Enum):
            imports.add("from enum import Enum as _Enum")
            return [f"class {name}(_Enum):", *(f"    {member} = ..." for member in cls.__members__)]
        merged, bases = [cls], []
        for base in cls.__mro__[1:]:
            if self.home.get(id(base)) or (base.__module__ == "builtins" and base is not object):
                if not any(issubclass(have, base) for have in bases):
                    bases.append(base)
            elif not any(issubclass(have, base) for have in bases):
                merged.append(base)
        shown = [self._base(module, base, imports) for base in bases]
        if hasattr(cls, "__class_getitem__"):
            imports.add("from typing import Any as _Any, Generic as _Generic")
            imports.add("from typing_extensions import TypeVar as _TypeVar")
            imports.add('_T = _TypeVar("_T", default=_Any)')
            generic = [_ours(base) and hasattr(base, "__class_getitem__") for base in bases]
            shown = [f"{one}[_T]" if takes else one for one, takes in zip(shown, generic, strict=True)]
            if not any(generic) and not any(one.endswith("]") for one in shown):
                shown.append("_Generic[_T]")
        body = self.members(name, cls, [base for base in merged if _ours(base)])
        lines = [f"class {name}({', '.join(shown)}):" if shown else f"class {name}:", *(body or ["    ..."])]
        if dataclasses.is_dataclass(cls) and not any(dataclasses.is_dataclass(base) for base in bases):
            imports.add("from dataclasses import dataclass as _dataclass")
            lines.insert(0, "@_dataclass")
        return lines

    def _base(self, module: str, base: type, imports: set[str]) -> str:
        if base.__module__ == "builtins":
            return f"_builtins.{base.__name__}" + {
                "tuple": "[_Any, ...]",
                "dict": "[_Any, _Any]",
                "list": "[_Any]",
            }.get(base.__name__, "")
        home = self.home[id(base)]
        if home[0] == module:  # in the same stub
            return home[1]
        imports.add(f"from {'torch.' + home[0] if home[0] else 'torch'} import {home[1]} as _base_{home[1]}")
        return f"_base_{home[1]}"

    def members(self, name: str, cls: type, merged: list[type]) -> list[str]:
        """The indented lines of a class: attributes first, then methods."""
        tensor = name == "Tensor"
        fields: dict[str, str] = dict(TENSOR_ATTRIBUTES) if tensor else {}
        methods: dict[str, list[str]] = {}
        if tensor:
            for line in TENSOR_METHODS.splitlines():
                methods.setdefault("written above", []).append(line)
        written = {line.split("(")[0].removeprefix("def ") for line in TENSOR_METHODS.splitlines() if tensor}
        for base in merged:
            for member, value in vars(base).items():
                if not _shown(member) or member in methods or member in written or isinstance(value, Absent):
                    continue
                self._member(name, member, value, fields, methods)
            for member, kind in signatures.attributes(base).items():
                if member not in methods and not tensor:
                    fields.setdefault(member, kind)
        for member, kind in getattr(cls, "__annotations__", {}).items():
            if signatures.usable(member) and member not in methods:
                fields.setdefault(member, kind if kind in ("int", "str") else "_Any")
        fields = {one: kind for one, kind in fields.items() if one not in methods}
        # `size: int` in a class that has a method `int` would name the method, so types are those of _stub_types.
        lines = [
            f"    {one}: {signatures._ANNOTATIONS.get(kind, kind)}" for one, kind in sorted(fields.items())
        ]
        return lines + [f"    {line}" for _, several in sorted(methods.items()) for line in several]

    def _member(
        self, owner: str, member: str, value, fields: dict[str, str], methods: dict[str, list[str]]
    ) -> None:
        space = "Tensor" if owner == "Tensor" else owner
        if isinstance(value, property):
            fields.setdefault(member, "_bool" if owner == "Tensor" and member.startswith("is_") else "_Any")
        elif _declare.declaration_of(value)[0] is not None and owner == "Tensor":
            if member in signatures.OPERANDS:
                methods[member] = [f"def {member}(self, other) -> _Tensor: ..."]
            elif member == "__getitem__":
                methods[member] = [f"def {member}(self, index) -> _Tensor: ..."]
            else:
                methods[member] = signatures.operator(member, value, "Tensor") or []
        elif (
            member == "forward" and owner == "Module"
        ):  # which every network defines with arguments of its own
            fields[member] = "_Callable[..., _Any]"
        elif isinstance(value, (types.FunctionType, staticmethod, classmethod)):
            methods[member] = signatures.function(member, value, space)
        elif callable(value) and not isinstance(value, type):
            known = signatures.KNOWN_RESULTS.get(member, "_Any") if owner == "Tensor" else "_Any"
            methods[member] = [f"def {member}(self, *args, **kwargs) -> {known}: ..."]
        elif not member.startswith("__"):
            fields.setdefault(member, "_Any")


def public_names(module: types.ModuleType) -> dict[str, object]:
    """The public names of a module that it defines itself or shows on purpose."""
    # torch._tensor is private: its module here has helpers, and nothing but Tensor is for users.
    listed = ["Tensor"] if module is sys.modules.get("torch._tensor") else getattr(module, "__all__", None)
    found: dict[str, object] = {}
    for name in sorted({*dir(module), *(listed or ())}):
        if not signatures.usable(name) or name.startswith("__") and name not in ("__version__", "__all__"):
            continue
        if (
            name.startswith("_")
            and name != "__version__"
            or isinstance(vars(module).get(name), types.ModuleType)
        ):
            continue
        value = getattr(module, name, None)
        if isinstance(value, types.FunctionType) and _at(value) == "torch._errors":
            continue  # the helper for errors serves the module, not its users
        # What a module with a list imports for its own use is not the user's.
        if listed is None:
            shown = _ours(value) or value is None
        else:
            shown = name in listed or _at(value) == _at(module) or (name.isupper() and _ours(value))
        shown = (shown or _is_alias(name, value)) and (listed != ["Tensor"] or name in listed)
        if shown and not isinstance(value, types.ModuleType):
            found[name] = value
    return found


def _at(value) -> str:
    """The module of a value, or the name of a module, under torch's name."""
    at = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return at.replace("msadapter", "torch", 1) if isinstance(at, str) else ""


def _ours(value) -> bool:
    if isinstance(value, (bool, int, float, str)):
        return True
    at = getattr(value, "__module__", None) or type(value).__module__
    return isinstance(at, str) and at.split(".")[0] in ("torch", "msadapter", "kernels_ascend")


def _is_alias(name: str, value) -> bool:
    """Whether ``value`` is a name for a type, such as torch.fx.node.Target. What typing itself has is an import."""
    kind = type(value)
    alias = kind is types.UnionType or (kind.__module__ in ("typing", "types") and "Alias" in kind.__name__)
    return alias and not hasattr(typing, name) and not hasattr(collections.abc, name)


def _private(name: str) -> bool:
    return any(part.startswith("_") for part in name.split("."))


def _shown(member: str) -> bool:
    hidden = ("__module__ __doc__ __dict__ __weakref__ __slots__ __init_subclass__ __class_getitem__ __annotations__ __reduce__ "
              "__reduce_ex__ __getstate__ __setstate__ __dir__ __hash__ __new__ __subclasshook__ __format__ __str__ "
              "__abstractmethods__ __orig_bases__ __parameters__ __match_args__ __dataclass_fields__ __getnewargs__")  # fmt: skip
    return (
        signatures.usable(member)
        and member not in hidden.split()
        and (not member.startswith("_") or member.startswith("__"))
    )


def _path(name: str, packages: set[str]) -> str:
    base = name.replace(".", "/")
    return f"{base}/__init__.pyi".lstrip("/") if name in packages else f"{base}.pyi"


def main() -> None:
    files = Stubs().files()
    shutil.rmtree(FOLDER, ignore_errors=True)
    for path, text in files.items():
        (FOLDER / path).parent.mkdir(parents=True, exist_ok=True)
        (FOLDER / path).write_text(text, encoding="utf-8")
    print(f"{len(files)} files, {sum(map(len, files.values())) // 1024} KB in {FOLDER}")


if __name__ == "__main__":
    main()
