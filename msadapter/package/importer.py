"""Importers: where modules come from, and under which name an object is found there."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from pickle import _getattribute, whichmodule  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any

from ._mangling import demangle, get_mangle_prefix, is_mangled

__all__ = ["Importer", "ObjMismatchError", "ObjNotFoundError", "OrderedImporter", "sys_importer"]


class ObjNotFoundError(Exception):
    """An object is not found under its name."""


class ObjMismatchError(Exception):
    """Another object is found under the name of an object."""


class Importer(ABC):
    """A source of modules. For an object of one of its modules, importing by the object's name gives the same object."""

    modules: dict[str, ModuleType]

    @abstractmethod
    def import_module(self, module_name: str) -> ModuleType:
        """Return a module. ModuleNotFoundError if there is none of this name."""

    def whichmodule(self, obj: Any, name: str) -> str:
        """Return the name of the module in which an object was made."""
        found = getattr(obj, "__module__", None)
        if found is not None:
            return found
        for module_name, module in self.modules.copy().items():
            if getattr(module, name, None) is obj:
                return module_name
        return "__main__"

    def get_name(self, obj: Any, name: str | None = None) -> tuple[str, str]:
        """Return (module, qualified name) of a class or function.

        Raises:
            ObjNotFoundError: nothing is found there.
            ObjMismatchError: another object is found there.
        """
        name = name or getattr(obj, "__qualname__", None) or obj.__name__
        module_name = demangle(self.whichmodule(obj, name))
        try:
            found = _getattribute(self.import_module(module_name), name)[0]
        except (ImportError, KeyError, AttributeError):
            raise ObjNotFoundError(f"{obj} was not found as {module_name}.{name}") from None
        if found is obj:
            return module_name, name
        own, other = (_place(self.whichmodule(x, name)) for x in (obj, found))
        raise ObjMismatchError(
            f"\n\nThe object provided is from '{own[0]}', which is coming from {own[1]}.\nHowever, when we import '{other[0]}', "
            f"it's coming from {other[1]}.\nTo fix this, make sure this 'PackageExporter's importer lists {own[2]} before "
            f"{other[2]}."
        )


def _place(module_name: str) -> tuple[str, str, str]:
    """Return the name of a module, where it comes from, and its importer, for a message."""
    if is_mangled(module_name):
        prefix = get_mangle_prefix(module_name)
        return module_name, prefix, f"the importer for {prefix}"
    return module_name, "the current Python environment", "'sys_importer'"


class _SysImporter(Importer):
    """The modules that are installed."""

    def import_module(self, module_name: str) -> ModuleType:
        return importlib.import_module(module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        found = getattr(obj, "__module__", None)
        return whichmodule(obj, name) if found is None else found


sys_importer = _SysImporter()


class OrderedImporter(Importer):
    """Several importers. The first one that has a module or an object answers."""

    def __init__(self, *args: Importer):
        self._importers = list(args)

    def import_module(self, module_name: str) -> ModuleType:
        last: ModuleNotFoundError | None = None
        for importer in self._importers:
            if not isinstance(importer, Importer):
                raise TypeError(
                    f"{importer} is not a Importer. All importers in OrderedImporter must inherit from Importer."
                )
            try:
                module = importer.import_module(module_name)
            except ModuleNotFoundError as error:
                last = error
                continue
            if not _is_placeholder(module):
                return module
        raise last or ModuleNotFoundError(module_name, name=module_name)

    def whichmodule(self, obj: Any, name: str) -> str:
        found = (importer.whichmodule(obj, name) for importer in self._importers)
        return next((module for module in found if module != "__main__"), "__main__")


def _is_placeholder(module: ModuleType) -> bool:
    """Return whether a module of an archive only stands for the folder of another one, and has no code."""
    if not getattr(module, "__torch_package__", False):
        return False
    return getattr(module, "__path__", None) is not None and getattr(module, "__file__", None) is None
