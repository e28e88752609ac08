"""Modules that are in sys.modules before they are loaded.

Programs and libraries expect torch's submodules in sys.modules after `import torch`, to inspect or patch
them. Loading all of them would make `import torch` slow. A module that is not loaded yet is represented by a
`WaitingModule`. Reading or setting an attribute loads it in place, so the module object stays the same.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

from .absent import explain

_PACKAGE = __name__.partition(".")[0]
# Special names that load the module. The import system reads `__spec__` of a module in sys.modules, and
# `__path__` of the parent of a module that it loads.
_LOADING = ("__spec__", "__path__", "__dict__", "__all__", "__doc__", "__getattr__", "__version__")


class WaitingModule(ModuleType):
    """A module that is loaded when an attribute is read or set, and then is an ordinary module.

    Some code reads attributes such as `__file__` and `__warningregistry__` of every module in sys.modules.
    This does not load the module.
    """

    def __getattribute__(self, name: str) -> object:
        if name in ("__class__", "__name__"):
            return ModuleType.__getattribute__(self, name)
        full_name = ModuleType.__getattribute__(self, "__name__")
        loader = _finder.loading.get(full_name)  # this is the thread that runs the module's code
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
    """Runs a module's code in the module object that has been waiting."""

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
            if is_waiting(module):  # the code may have given its module another class
                module.__class__ = ModuleType
            _finder.modules.pop(name, None)
            explain(module, "torch." + name.partition(".")[2])
        finally:
            del _finder.loading[name]


class _LoadedLoader(Loader):
    """Gives the import system a module that has been loaded already.

    It asks for a submodule of a waiting package, and reads ``__path__`` of the package first. That loads the package, and with it
    often the submodule, which must not be loaded once more.
    """

    def __init__(self, module: ModuleType) -> None:
        self.module = module
        self.spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


class _WaitingFinder:
    """Finds waiting modules, when the import system wants to load them."""

    def __init__(self) -> None:
        self.modules: dict[str, WaitingModule] = {}
        self.loading: dict[str, int] = {}
        self.lock = threading.Lock()

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        module = self.modules.get(fullname)
        if module is None:
            loaded = sys.modules.get(fullname)
            if loaded is None or target is not None or fullname.partition(".")[0] != _PACKAGE:
                return None
            return ModuleSpec(fullname, _LoadedLoader(loaded))
        spec = PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        if spec is None or spec.loader is None:
            return None
        spec.loader = _WaitingLoader(module, spec.loader)
        return spec

    def invalidate_caches(self) -> None:
        """Does nothing, because nothing is cached. importlib calls it on every finder."""


_finder = _WaitingFinder()


def wait_for(name: str) -> ModuleType:
    """Return the module of this name. If it is not loaded yet, add a waiting module to sys.modules.

    Raises:
        ModuleNotFoundError: there is no such module. This is noticed at its first use.
    """
    module = sys.modules.get(name)
    if module is None:
        if _finder not in sys.meta_path:
            sys.meta_path.insert(0, _finder)
        module = _finder.modules.get(name) or WaitingModule(name)
        _finder.modules[name] = sys.modules[name] = module
    return module


def stop_waiting() -> None:
    """Remove the modules that have not been used yet from sys.modules."""
    for name, module in _finder.modules.items():
        if sys.modules.get(name) is module and name not in _finder.loading:
            del sys.modules[name]
    _finder.modules.clear()
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def is_waiting(module: ModuleType) -> bool:
    """Return whether a module waits for its first use."""
    return type(module) is WaitingModule


def _load(module: WaitingModule, name: str) -> ModuleType:
    # The parent package may have loaded the module while it was imported. Then nothing is left to do.
    parent = name.rpartition(".")[0]
    if parent:
        package = importlib.import_module(parent)
        # Python 3.10 takes it from sys.modules without reading its __spec__, which would load it.
        if isinstance(package, WaitingModule):
            _load(package, parent)
    # The import system loads the module with its own locks. It must not find the waiting module meanwhile.
    with _finder.lock:
        if sys.modules.get(name) is module and is_waiting(module) and name not in _finder.loading:
            del sys.modules[name]
    return importlib.import_module(name)


def _spec_on_disk(name: str) -> ModuleSpec | None:
    """Return the spec of a module, without loading anything."""
    parent = sys.modules.get(name.rpartition(".")[0])
    if parent is None:
        return None
    if is_waiting(parent):
        found = _spec_on_disk(ModuleType.__getattribute__(parent, "__name__"))
        path = found.submodule_search_locations if found is not None else None
    else:
        path = getattr(parent, "__path__", None)
    return None if path is None else PathFinder.find_spec(name, path)
