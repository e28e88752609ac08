"""Modules of vLLM whose names are imported, and not used, where MindSpeed-RL runs on a CPU."""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


class Absent:
    """A placeholder for a class or function of vLLM that does not exist here. It can be imported, and used as a base class."""

    def __init__(self, *_: Any, **__: Any) -> None:
        kind = next(one for one in type(self).__mro__ if one.__dict__.get("_stands"))
        raise NotImplementedError(
            f"{kind.__module__}.{kind.__qualname__} is not answered on a CPU: docs/reinforcement_learning.md"
        )


class _Module(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        made = type(name, (Absent,), {"__module__": self.__name__, "_stands": True})
        setattr(self, name, made)
        return made


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules of a list. Those that exist as files come first, because this finder is the last."""

    def __init__(self, names: Iterable[str]) -> None:
        self.names = set(names)
        self.names |= {name.rpartition(".")[0] for name in self.names if name.count(".") > 1}

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self, is_package=True) if fullname in self.names else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing: the attributes are made when they are asked for."""


def answer(names: Iterable[str]) -> None:
    """Lets these modules be imported. A name of theirs raises NotImplementedError when it is called."""
    sys.meta_path.append(_Finder(names))
