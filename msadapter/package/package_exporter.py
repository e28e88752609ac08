"""PackageExporter: writes an archive of pickled objects, source code and other files."""

from __future__ import annotations

import importlib.machinery
import io
import linecache
import pickle
import platform
import sys
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from .._serialization import files
from .._serialization.pickler import SaveContext, TorchPickler, TorchReduce
from .._serialization.zip_writer import ZipWriter
from ..utils.hooks import RemovableHandle
from ._graph import DependencyGraph
from ._mangling import is_mangled
from ._references import references
from .glob_group import GlobGroup, GlobPattern
from .importer import Importer, ObjMismatchError, ObjNotFoundError, OrderedImporter, sys_importer

__all__ = ["EmptyMatchError", "PackageExporter", "PackagingError", "PackagingErrorReason"]

# Modules of the standard library with much access to the system: a program must name them to take them from outside.
_DISALLOWED_MODULES = ("sys", "io")
_MOCKED_SOURCE = """\
from _mock import MockedObject
def __getattr__(attr: str):
    return MockedObject(__name__ + '.' + attr, _suppress_err=True)
"""


class _Action(Enum):
    """What becomes of a module that the contents of the archive need."""

    INTERN = "its source goes into the archive"
    EXTERN = "it is imported where the archive is loaded"
    MOCK = "each use of it is an error"
    DENY = "the archive is not written"
    MOCK_SOURCE = "the source of mocked objects, which a loaded archive has brought along"
    SKIP = "the module by which an archive names its importer"


class PackagingErrorReason(Enum):
    """Why a module keeps an archive from being written."""

    IS_EXTENSION_MODULE = "Module is a C extension module. torch.package supports Python modules only."
    NO_DUNDER_FILE = "Module had no __file__ defined."
    SOURCE_FILE_NOT_FOUND = "Module had a __file__, but we could not find it in your filesystem."
    DEPENDENCY_RESOLUTION_FAILED = "Dependency resolution failed."
    NO_ACTION = "Module did not match against any action pattern. Extern, mock, or intern it."
    DENIED = "Module was denied by a pattern."
    MOCKED_BUT_STILL_USED = (
        "Module was mocked out, but is still being used in the package. Please intern or extern the mocked modules if objects are "
        "supposed to be in the package."
    )


class EmptyMatchError(Exception):
    """No module matched a pattern that was given with ``allow_empty=False``."""


class PackagingError(Exception):
    """Modules keep an archive from being written. The text has all of them, by reason.

    Attributes:
        dependency_graph: what the contents of the archive need.
    """

    def __init__(self, dependency_graph: DependencyGraph, debug: bool = False):
        self.dependency_graph = dependency_graph
        by_reason = defaultdict(list)
        for name, facts in dependency_graph.nodes.items():
            if "error" in facts:
                by_reason[facts["error"]].append(name)
        lines = [""]
        for reason, names in by_reason.items():
            lines.append(f"* {reason.value}")
            for name in names:
                lines += self._about(name, debug)
        if not debug:
            advice = "Set debug=True when invoking PackageExporter for a visualization of where broken modules are coming from!"
            lines += ["", advice]
        super().__init__("\n".join(lines) + "\n")

    def _about(self, name: str, debug: bool) -> list[str]:
        lines, context = [f"    {name}"], self.dependency_graph.nodes[name].get("error_context")
        if context is not None:
            lines.append(f"      Context: {context}")
        if name in _DISALLOWED_MODULES:
            lines.append(
                "      Note: While we usually use modules in the python standard library from the local environment, "
                f"`{name}` has a lot of system level access and therefore can pose a security risk. We heavily recommend "
                f"removing `{name}` from your packaged code. However, if that is not possible, add it to the extern list by "
                f'calling PackageExporter.extern("`{name}`")'
            )
        if debug:
            lines.append(f"      A path to {name}: {' -> '.join(self.dependency_graph.first_path(name))}")
        return lines


@dataclass
class _Pattern:
    action: _Action
    allow_empty: bool
    was_matched: bool = False


class _PackagePickler(TorchPickler):
    """The pickler of torch.save, which takes the names of other classes from an importer and notes all modules that it names."""

    importer: Importer
    exporter: PackageExporter
    named: dict[tuple[str, str], None]

    def persistent_id(self, obj):
        found = super().persistent_id(obj)
        if found is None and hasattr(obj, "__reduce_package__") and not isinstance(obj, type):
            return self.exporter._reduced(obj)
        return found

    def save_global(self, obj, name=None):
        found = self._torch.global_name(obj, name)
        if found is not None:
            self.named[found] = None
            super().save_global(obj, name)
            return
        try:
            module, qualname = self.importer.get_name(obj, name)
        except (ObjNotFoundError, ObjMismatchError) as error:
            raise pickle.PicklingError(f"Can't pickle {obj}: {error}") from error
        self.named[module, qualname] = None
        holder, _, last = qualname.rpartition(".")
        if self.proto >= 4:
            self.save(module)
            self.save(qualname)
            self.write(pickle.STACK_GLOBAL)
        elif holder:
            self.save_reduce(getattr, (self._inside(module, holder), last))
        else:
            self.write(pickle.GLOBAL + f"{module}\n{qualname}\n".encode())
        self.memoize(obj)

    # The pickler calls what this dict names, and not the method of the class.
    dispatch = TorchPickler.dispatch | {FunctionType: save_global}

    def _inside(self, module: str, path: str):
        found = self.importer.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        return found


class PackageExporter:
    """Writes an archive, best in a ``with`` block. `PackageImporter` reads it, and so does PyTorch's.

    Of each module that the saved code and objects need, a pattern must say what becomes of it: `intern`, `extern`, `mock` or
    `deny`. Modules of torch and of the standard library are taken from where the archive is loaded; `sys` and `io` only if
    `extern` names them.

    Args:
        f: a path or a binary file. A path gets its contents at the end; if an error comes before, it stays as it is.
        importer: where modules come from, or several such places.
        debug: name in a `PackagingError` a path to each module.
    """

    def __init__(self, f, importer: Importer | Sequence[Importer] = sys_importer, debug: bool = False):
        if not isinstance(importer, (Importer, Sequence)):
            raise TypeError(
                f"importer arg should be an Importer or a sequence of Importers, got {type(importer)} instead."
            )
        self.importer = importer if isinstance(importer, Importer) else OrderedImporter(*importer)
        self.debug = debug
        self.patterns: dict[GlobGroup, _Pattern] = {}
        self.dependency_graph = DependencyGraph()
        self._extern_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._mock_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._intern_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._context = SaveContext()
        self._stored: set[str] = set()
        self._written: set[str] = set()
        self._reduces: dict[int, tuple] = {}
        self._kept: list[Any] = []  # the objects of `_reduces`, whose ids must not be given to others
        self._unique_id = 0
        self._opened = files.open_for_writing(f)
        self._writer = ZipWriter(self._opened.__enter__(), files.archive_name(f))

    # ---- what goes into the archive
    def save_source_file(self, module_name: str, file_or_directory: str, dependencies: bool = True) -> None:
        """Add the source of a module from a file, or those of a package from a folder.

        Args:
            dependencies: also look for the modules that the source imports.
        """
        path = Path(file_or_directory)
        if not path.is_dir():
            source = path.read_text(encoding="utf-8")
            self.save_source_string(module_name, source, path.name == "__init__.py", dependencies)
            return
        found = []
        for file in sorted(path.glob("**/*.py")):
            parts = file.relative_to(path).with_suffix("").parts
            is_package = parts[-1] == "__init__"
            name = ".".join([module_name, *(parts[:-1] if is_package else parts)])
            found.append((name, file.read_text(encoding="utf-8"), is_package))
        for (
            name,
            source,
            is_package,
        ) in found:  # all of them are in the archive before any of their imports is looked at
            self.save_source_string(name, source, is_package, dependencies=False)
        for name, source, is_package in found if dependencies else ():
            self._follow(name, source, is_package)

    def save_source_string(
        self, module_name: str, src: str, is_package: bool = False, dependencies: bool = True
    ) -> None:
        """Add the source of a module. A package may have submodules, and files of other kinds."""
        self.dependency_graph.add_node(
            module_name, source=src, is_package=is_package, provided=True, action=_Action.INTERN
        )
        if dependencies:
            self._follow(module_name, src, is_package)

    def save_module(self, module_name: str, dependencies: bool = True) -> None:
        """Add the source of a module that can be imported."""
        if not isinstance(module_name, str):
            raise TypeError("save_module() expects a string input, did you perhaps mean to pass `__name__`?")
        self._intern_module(module_name, dependencies)

    def save_pickle(
        self, package: str, resource: str, obj: Any, dependencies: bool = True, pickle_protocol: int = 3
    ) -> None:
        """Add an object as a pickle, with the tensors in it.

        Args:
            package: the package of the archive to which the file belongs, such as "models".
            resource: the name of the file in it, such as "net.pkl".
            dependencies: also look for the modules of the classes and functions in the pickle.

        Raises:
            AssertionError: the protocol is neither 3 nor 4.
        """
        if pickle_protocol not in (3, 4):
            raise AssertionError("torch.package only supports pickle protocols 3 and 4")
        filename, data = self._filename(package, resource), io.BytesIO()
        pickler = _PackagePickler(data, pickle_protocol)
        pickler._context, pickler._torch = self._context, TorchReduce()
        pickler.importer, pickler.exporter, pickler.named = self.importer, self, {}
        pickler.dump(obj)
        if dependencies:
            self._follow_pickle(package, resource, list(pickler.named))
        for key, storage in self._context.storages.items():
            if key not in self._stored:
                self._stored.add(key)
                self._writer.write_record(f".data/{key}.storage", storage._numpy())
        self._write(filename, data.getvalue())

    def _reduced(self, obj: Any) -> tuple:
        """Return what stands in a pickle for an object that has a method `__reduce_package__`."""
        if id(obj) not in self._reduces:
            self._kept.append(obj)
            self._reduces[id(obj)] = ("reduce_package", id(obj), *obj.__reduce_package__(self))
        return self._reduces[id(obj)]

    def save_text(self, package: str, resource: str, text: str) -> None:
        """Add a file with text, in UTF-8."""
        self.save_binary(package, resource, text.encode("utf-8"))

    def save_binary(self, package: str, resource: str, binary: bytes) -> None:
        """Add a file with bytes."""
        self._write(self._filename(package, resource), binary)

    def get_unique_id(self) -> str:
        """Return a number, as text, that no other call of this exporter has returned."""
        self._unique_id += 1
        return str(self._unique_id - 1)

    @staticmethod
    def _filename(package: str, resource: str) -> str:
        return f"{package.replace('.', '/')}/{file_name(resource)}"

    # ---- what becomes of modules
    def intern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Put the source of the modules that match into the archive, when something in it needs them.

        Args:
            include, exclude: patterns, as `GlobGroup` has them.
            allow_empty: whether it is no error that nothing matches.
        """
        self._add_pattern(_Action.INTERN, include, exclude, allow_empty)

    def mock(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Put modules into the archive in place of those that match. They can be imported, and every use of their contents is an
        error.
        """
        self._add_pattern(_Action.MOCK, include, exclude, allow_empty)

    def extern(self, include: GlobPattern, *, exclude: GlobPattern = (), allow_empty: bool = True) -> None:
        """Let the archive import the modules that match from where it is loaded."""
        self._add_pattern(_Action.EXTERN, include, exclude, allow_empty)

    def deny(self, include: GlobPattern, *, exclude: GlobPattern = ()) -> None:
        """Refuse to write the archive if something in it needs a module that matches."""
        self._add_pattern(_Action.DENY, include, exclude, True)

    def _add_pattern(
        self, action: _Action, include: GlobPattern, exclude: GlobPattern, allow_empty: bool
    ) -> None:
        self.patterns[GlobGroup(include, exclude=exclude)] = _Pattern(action, allow_empty)

    def _registered(self, hooks: OrderedDict, hook: Callable) -> RemovableHandle:
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def register_extern_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(exporter, module_name)`` for each module that stays outside, when the archive is completed."""
        return self._registered(self._extern_hooks, hook)

    def register_mock_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(exporter, module_name)`` for each mocked module, when the archive is completed."""
        return self._registered(self._mock_hooks, hook)

    def register_intern_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(exporter, module_name)`` for each module in the archive, when the archive is completed."""
        return self._registered(self._intern_hooks, hook)

    # ---- what the contents need
    def add_dependency(self, module_name: str, dependencies: bool = True) -> None:
        """Decide what becomes of a module that something in the archive needs."""
        graph = self.dependency_graph
        if graph.nodes.get(module_name, {}).get("provided"):
            return
        own = {"torch_package_importer": _Action.SKIP, "_mock": _Action.MOCK_SOURCE}
        if module_name in own:
            graph.add_node(module_name, action=own[module_name], provided=True)
        elif self._can_implicitly_extern(module_name):
            graph.add_node(module_name, action=_Action.EXTERN, provided=True)
        else:
            self._by_pattern(module_name, dependencies)

    def _by_pattern(self, module_name: str, dependencies: bool) -> None:
        found = next((info for group, info in self.patterns.items() if group.matches(module_name)), None)
        if found is None:
            self.dependency_graph.add_node(module_name, error=PackagingErrorReason.NO_ACTION)
            return
        found.was_matched = True
        self.dependency_graph.add_node(module_name, action=found.action, provided=True)
        if found.action is _Action.DENY:
            self.dependency_graph.add_node(module_name, error=PackagingErrorReason.DENIED)
        elif found.action is _Action.INTERN:
            self._intern_module(module_name, dependencies)

    @staticmethod
    def _can_implicitly_extern(module_name: str) -> bool:
        top = module_name.partition(".")[0]
        return top == "torch" or (top not in _DISALLOWED_MODULES and top in sys.stdlib_module_names)

    def _import_module(self, module_name: str) -> ModuleType:
        try:
            return self.importer.import_module(module_name)
        except ModuleNotFoundError:
            if not is_mangled(module_name):
                raise
            raise ModuleNotFoundError(
                f"Module not found: '{module_name}'. Make sure the PackageImporter that created this module is present in "
                "`self.importer`"
            ) from None

    def _module_exists(self, module_name: str) -> bool:
        try:
            self._import_module(module_name)
        except Exception:  # a module that cannot be imported here cannot be looked at
            return False
        return True

    def _intern_module(self, module_name: str, dependencies: bool) -> None:
        module = self._import_module(module_name)
        file, is_package = getattr(module, "__file__", None), hasattr(module, "__path__")
        self.dependency_graph.add_node(
            module_name, action=_Action.INTERN, is_package=is_package, provided=True
        )
        if file is None or not file.endswith(".py"):
            reason, context = PackagingErrorReason.NO_DUNDER_FILE, None
            if file is not None and file.endswith(tuple(importlib.machinery.EXTENSION_SUFFIXES)):
                reason = PackagingErrorReason.IS_EXTENSION_MODULE
            elif file is not None:
                reason, context = PackagingErrorReason.SOURCE_FILE_NOT_FOUND, f"filename: {file}"
            self.dependency_graph.add_node(module_name, error=reason, error_context=context)
            return
        source = "".join(linecache.getlines(file, module.__dict__))
        self.dependency_graph.add_node(module_name, source=source)
        if dependencies:
            self._follow(module_name, source, is_package)

    def _follow(self, module_name: str, source: str, is_package: bool) -> None:
        """Decide what becomes of the modules that a source imports."""
        package = module_name if is_package else module_name.rpartition(".")[0]
        try:
            found = references(source, package)
        except (SyntaxError, ValueError) as error:
            self.dependency_graph.add_node(
                module_name,
                error=PackagingErrorReason.DEPENDENCY_RESOLUTION_FAILED,
                error_context=str(error),
            )
            return
        needed = {}
        for name, attribute in found:
            inside = f"{name}.{attribute}"
            if attribute is not None and self._module_exists(inside):
                needed[inside] = None  # the name that is imported is a submodule
            elif self._module_exists(name):
                needed[name] = None
        for name in needed:
            self.dependency_graph.add_edge(module_name, name)
            self.add_dependency(name)

    def _follow_pickle(self, package: str, resource: str, named: list[tuple[str, str]]) -> None:
        """Decide what becomes of the modules that a pickle names."""
        node = f"<{package}.{resource}>"
        self.dependency_graph.add_node(node, action=_Action.INTERN, provided=True, is_pickle=True)
        by_module = defaultdict(list)
        for module, name in named:
            by_module[module].append(name)
        for module, found in by_module.items():
            self.dependency_graph.add_edge(node, module)
            self.add_dependency(module)
            if self.dependency_graph.nodes[module].get("action") is _Action.MOCK:
                self.dependency_graph.add_node(
                    module,
                    error=PackagingErrorReason.MOCKED_BUT_STILL_USED,
                    error_context=f"Object(s) '{found}' from module `{module}` was mocked out during packaging but is being used "
                    f"in resource - `{resource}` in package `{package}`. ",
                )

    # ---- the end
    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace) -> None:
        if kind is not None:
            self._opened.__exit__(kind, error, trace)
            return
        self.close()

    def close(self) -> None:
        """Complete the archive.

        Raises:
            PackagingError: nothing says what becomes of a module, or it cannot be put into the archive.
            EmptyMatchError: nothing matched a pattern that must match.
        """
        try:
            self._complete()
        except BaseException:
            self._opened.__exit__(*sys.exc_info())
            raise
        self._opened.__exit__(None, None, None)

    def _complete(self) -> None:
        if any("error" in facts for facts in self.dependency_graph.nodes.values()):
            raise PackagingError(self.dependency_graph, debug=self.debug)
        for group, info in self.patterns.items():
            if not info.allow_empty and not info.was_matched:
                raise EmptyMatchError(
                    f"Exporter did not match any modules to {group}, which was marked as allow_empty=False"
                )
        for name, facts in list(self.dependency_graph.nodes.items()):
            self._place(name, facts)
        self._write(
            ".data/extern_modules", "".join(f"{name}\n" for name in self._of(_Action.EXTERN)).encode()
        )
        self._write(".data/python_version", platform.python_version().encode())
        self._write(".data/version", b"6\n")
        self._write("byteorder", sys.byteorder.encode())
        self._write(".data/serialization_id", str(uuid.uuid4().int)[:40].rjust(40, "0").encode())
        self._writer.finish()

    def _place(self, name: str, facts: dict[str, Any]) -> None:
        """Write a module, as its action says."""
        hooks = {
            _Action.EXTERN: self._extern_hooks,
            _Action.MOCK: self._mock_hooks,
            _Action.INTERN: self._intern_hooks,
        }
        action = facts["action"]
        for hook in list(hooks.get(action, {}).values()):
            hook(self, name)
        if action is _Action.MOCK:
            self._write_mock_file()
            is_package = hasattr(self._import_module(name), "__path__")
            self._write_source(name, _MOCKED_SOURCE, is_package)
        elif action is _Action.MOCK_SOURCE:
            self._write_mock_file()
        elif action is _Action.INTERN and not facts.get("is_pickle"):
            self._write_source(name, facts["source"], facts["is_package"])

    def _write_mock_file(self) -> None:
        if "_mock.py" not in self._written:
            source = Path(__file__).with_name("_mock.py").read_text(encoding="utf-8")
            self._write_source("_mock", source, False)

    def _write_source(self, name: str, source: str, is_package: bool) -> None:
        self._write(
            name.replace(".", "/") + ("/__init__.py" if is_package else ".py"), source.encode("utf-8")
        )

    def _write(self, filename: str, data: bytes) -> None:
        if filename in self._written:
            raise AssertionError(
                f"Tried to write file '{filename}', but it already exists in this archive. Please file a bug."
            )
        if is_mangled(filename):
            raise AssertionError(
                f"Tried to save a torch.package'd module as '{filename}'. Directly saving torch.package'd modules is not allowed."
            )
        self._written.add(filename)
        self._writer.write_record(filename, memoryview(data))

    # ---- questions
    def _of(self, action: _Action) -> list[str]:
        nodes = self.dependency_graph.nodes.items()
        return [name for name, facts in nodes if facts.get("action") is action and not facts.get("is_pickle")]

    def externed_modules(self) -> list[str]:
        """Return the modules that the archive imports from where it is loaded, by name."""
        return sorted(self._of(_Action.EXTERN))

    def interned_modules(self) -> list[str]:
        """Return the modules whose source is in the archive, by name."""
        return sorted(self._of(_Action.INTERN))

    def mocked_modules(self) -> list[str]:
        """Return the modules that are mocked, by name."""
        return sorted(self._of(_Action.MOCK))

    def denied_modules(self) -> list[str]:
        """Return the modules that keep the archive from being written, by name."""
        return sorted(self._of(_Action.DENY))

    def get_rdeps(self, module_name: str) -> list[str]:
        """Return the modules and pickles that need a module directly."""
        return self.dependency_graph.users(module_name)

    def dependency_graph_string(self) -> str:
        """Return what needs what, in the language of graphviz."""
        return self.dependency_graph.dot()

    def all_paths(self, src: str, dst: str) -> str:
        """Return the chains by which ``src`` needs ``dst``, in the language of graphviz."""
        return self.dependency_graph.dot(self.dependency_graph.between(src, dst))


def file_name(path: str) -> str:
    """Return a file's name.

    Raises:
        ValueError: it has a folder.
    """
    folder, _, name = str(path).replace("\\", "/").rpartition("/")
    if folder or not name:
        raise ValueError(f"{path!r} must be only a file name")
    return name
