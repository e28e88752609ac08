"""Modules that stand in sys.modules before they are loaded.

After `import torch`, programs and libraries expect torch's submodules in sys.modules: they look them up there to inspect
or patch them. Loading all of them would make `import torch` slow. A module that is not loaded yet stands there as a
`WaitingModule`: the first attribute that somebody reads or sets loads it, in place, so it is the same object before
and after.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

# Special names that load the module. The import system asks for `__spec__` of a module that it finds in sys.modules, and
# for `__path__` of the parent of a module that it loads.
_LOADING = ("__spec__", "__path__", "__dict__", "__all__", "__doc__", "__getattr__", "__version__")


class WaitingModule(ModuleType):
    """A module that loads when an attribute is read or set. Afterwards it is a module like any other.

    Code that walks through sys.modules asks for `__file__`, `__warningregistry__` and the like of every module; such
    questions do not load it.
    """

    def __getattribute__(self, name: str):
        if name in ("__class__", "__name__"):
            return ModuleType.__getattribute__(self, name)
        full_name = ModuleType.__getattribute__(self, "__name__")
        loader = _finder.loading.get(full_name)  # the thread that runs its body
        if loader is not None and (loader == threading.get_ident() or name == "__spec__"):
            return ModuleType.__getattribute__(self, name)
        if name == "__file__":
            spec = _spec_on_disk(full_name)
            if spec is not None and spec.has_location:
                return spec.origin
        if name.startswith("__") and name.endswith("__") and name not in _LOADING:
            raise AttributeError(f"module {full_name!r} has no attribute {name!r}")
        return getattr(_load(self, full_name), name)

    def __setattr__(self, name: str, value: object) -> None:
        full_name = ModuleType.__getattribute__(self, "__name__")
        if name == "__class__" or _finder.loading.get(full_name) == threading.get_ident():
            ModuleType.__setattr__(self, name, value)
            return
        setattr(_load(self, full_name), name, value)

    def __delattr__(self, name: str) -> None:
        delattr(_load(self, ModuleType.__getattribute__(self, "__name__")), name)

    def __dir__(self) -> Iterable[str]:
        return dir(_load(self, ModuleType.__getattribute__(self, "__name__")))

    def __repr__(self) -> str:
        return f"<module {ModuleType.__getattribute__(self, '__name__')!r}, loaded at the first use>"


class _WaitingLoader(Loader):
    """Loads a module's code into the object that has been waiting for it."""

    def __init__(self, module: WaitingModule, loader: Loader) -> None:
        self.module = module
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        with _finder.lock:
            _finder.loading[spec.name] = threading.get_ident()
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        try:
            module.__spec__.loader = module.__loader__ = self.loader  # type: ignore[union-attr]
            self.loader.exec_module(module)
            if is_waiting(module):  # a body may give its module a class of its own
                module.__class__ = ModuleType
            _finder.modules.pop(name, None)
        finally:
            del _finder.loading[name]


class _WaitingFinder:
    """Answers for modules that wait, when the import system looks for them in order to load them."""

    def __init__(self) -> None:
        self.modules: dict[str, WaitingModule] = {}
        self.loading: dict[str, int] = {}
        self.lock = threading.Lock()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        module = self.modules.get(fullname)
        if module is None:
            return None
        spec = PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        if spec is None or spec.loader is None:
            return None
        spec.loader = _WaitingLoader(module, spec.loader)
        return spec

    def invalidate_caches(self) -> None:
        """Nothing is cached; importlib calls this on every finder."""


_finder = _WaitingFinder()


def wait_for(name: str) -> ModuleType:
    """The module of that name: loaded already, or standing in sys.modules until it is used.

    Raises:
        ModuleNotFoundError: there is no such module (noticed when it is used).
    """
    module = sys.modules.get(name)
    if module is None:
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        module = _finder.modules.get(name) or WaitingModule(name)
        _finder.modules[name] = sys.modules[name] = module
    return module


def stop_waiting() -> None:
    """Takes the modules that nobody has used yet out of sys.modules."""
    for name, module in _finder.modules.items():
        if sys.modules.get(name) is module and name not in _finder.loading:
            del sys.modules[name]
    _finder.modules.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def is_waiting(module: ModuleType) -> bool:
    """True for a module that nobody has used yet."""
    return type(module) is WaitingModule


def _load(module: WaitingModule, name: str) -> ModuleType:
    # A package may load the module from its own body; then there is nothing left to do.
    parent = name.rpartition(".")[0]
    if parent:
        importlib.import_module(parent)
    # The import system does the loading, under its own locks; it must not find the waiting module in its place.
    with _finder.lock:
        if sys.modules.get(name) is module and is_waiting(module) and name not in _finder.loading:
            del sys.modules[name]
    return importlib.import_module(name)


def _spec_on_disk(name: str) -> ModuleSpec | None:
    """Where the module is, found without loading anything."""
    parent = sys.modules.get(name.rpartition(".")[0])
    if parent is None:
        return None
    if is_waiting(parent):
        found = _spec_on_disk(ModuleType.__getattribute__(parent, "__name__"))
        path = found and found.submodule_search_locations
    else:
        path = getattr(parent, "__path__", None)
    return None if path is None else PathFinder.find_spec(name, path)
