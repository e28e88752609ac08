"""MindSpore's native runtime, loaded without its Python package until that package is used.

`import mindspore` runs about two thousand modules (networks, data sets, the compiler's front end). This takes
two seconds and 170 MB, and a torch program on a CPU does not use them. Therefore `mindspore` is first a
package that only knows its folder, so that `mindspore._c_expression` can be imported. The first use of any
other attribute or submodule runs the real `__init__` in the same module object. On an accelerator it runs
immediately: it compares CANN's version with its own, and sets variables such as ASCEND_CUSTOM_OPP_PATH, which CANN
reads when the device starts.
"""

from __future__ import annotations

import atexit
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Callable

NATIVE = "mindspore._c_expression"
_lock = threading.RLock()
_waiting = False
_listeners: list[Callable[[], None]] = []


class _WaitingPackage(types.ModuleType):
    """The package before its `__init__` has run."""

    def __getattr__(self, name: str):
        complete()
        return getattr(self, name)


class _Present(importlib.abc.Loader):
    """Loader of a module that the package's `__init__` has imported already."""

    def __init__(self, module: types.ModuleType):
        self.module, self.spec = module, module.__spec__

    def create_module(self, spec):
        return self.module

    def exec_module(self, module) -> None:
        module.__spec__ = self.spec


class _Finder:
    """Runs the package's `__init__` before the import of any of its submodules."""

    @staticmethod
    def find_spec(name: str, path=None, target=None):
        if not name.startswith("mindspore.") or name == NATIVE or name.startswith(NATIVE + "."):
            return None
        complete()
        module = sys.modules.get(name)
        return None if module is None else importlib.machinery.ModuleSpec(name, _Present(module))


def _undo_thread_limit() -> None:
    """Set OMP_NUM_THREADS to what it was when the program began.

    MindSpore sets it to 1 when it is loaded, unless the user has set it. The kernels, libraries that are loaded later and child
    processes would then use a single processor. `os.environ` does not notice such a change, so it has the user's value.
    """
    name = "OMP_NUM_THREADS"
    if name in os.environ:
        os.putenv(name, os.environ[name])
    else:
        os.unsetenv(name)


def complete() -> None:
    """Run MindSpore's own `__init__`, if it has not run yet."""
    global _waiting
    with _lock:
        if not _waiting:
            return
        _waiting = False
        sys.meta_path.remove(_Finder)
        package = sys.modules["mindspore"]
        assert package.__spec__ is not None and package.__spec__.loader is not None
        package.__class__ = types.ModuleType
        package.__spec__.loader.exec_module(package)
        _undo_thread_limit()
        for listener in _listeners:
            listener()


def when_complete(listener: Callable[[], None]) -> None:
    """Call `listener` as soon as MindSpore's Python package is loaded, which may be now."""
    with _lock:
        if not _waiting:
            listener()
        _listeners.append(listener)


def _before_exit() -> None:
    """Skip MindSpore's exit handler if its Python package was never loaded.

    The handler imports the profiler and the data sets in order to close what is open. Nothing can be open in
    this case, and the imports would delay every exit by two seconds.
    """
    if not _waiting:
        return
    sys.meta_path.remove(_Finder)
    profiler = types.ModuleType("mindspore.profiler")
    profiler.EnvProfiler = type("EnvProfiler", (), {"analyse": lambda self: None})
    iterators = types.ModuleType("mindspore.dataset.engine.iterators")
    iterators._cleanup = lambda: None
    for module in (
        profiler,
        types.ModuleType("mindspore.dataset"),
        types.ModuleType("mindspore.dataset.engine"),
        iterators,
    ):
        sys.modules[module.__name__] = module


def native():
    """Return `mindspore._c_expression`. On other devices than the CPU the whole package is loaded first."""
    global _waiting
    fresh = "mindspore" not in sys.modules
    if fresh:
        spec = importlib.util.find_spec("mindspore")
        if spec is None:
            raise ModuleNotFoundError("No module named 'mindspore'", name="mindspore")
        package = importlib.util.module_from_spec(spec)
        package.__class__ = _WaitingPackage
        sys.modules["mindspore"] = package
        sys.meta_path.insert(0, _Finder)
        _waiting = True
    runtime = importlib.import_module(NATIVE)
    _undo_thread_limit()
    if fresh:
        atexit.register(_before_exit)  # registered after MindSpore's handler, so it runs before that one
        if device_target() != "CPU":
            complete()
    return runtime


def device_target() -> str:
    """Return the device on which MindSpore computes: CPU, Ascend or GPU."""
    runtime = sys.modules[NATIVE]
    return runtime.MSContext.get_instance().get_param(runtime.ms_ctx_param.device_target)


def device_id() -> int:
    """Return the index of the device that MindSpore uses in this process."""
    runtime = sys.modules[NATIVE]
    return runtime.MSContext.get_instance().get_param(runtime.ms_ctx_param.device_id)
