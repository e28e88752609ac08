"""PackageImporter: imports modules and loads objects from an archive of `PackageExporter`."""

from __future__ import annotations

import builtins
import importlib
import importlib.machinery
import importlib.util
import io
import linecache
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .. import _utils
from .._errors import unsupported
from .._serialization import locations, names
from .._serialization.storage_ref import storage_record
from .._serialization.zip_reader import ZipReader
from ..serialization import _wrap
from ..storage import UntypedStorage
from ._mangling import PackageMangler, demangle, is_mangled
from ._references import absolute_name
from .file_structure_representation import Directory, directory_of
from .glob_group import GlobPattern
from .importer import Importer
from .package_exporter import file_name

__all__ = ["PackageImporter"]

# As in PyTorch, these need not be named as external: torch itself needs them.
_ALWAYS_EXTERNAL = ("builtins", "numpy", "numpy.core", "numpy.core._multiarray_umath")


class _External:
    """A module that is imported from where the archive is loaded, with all that is below it."""


class _Source:
    """A module of the archive, or a package.

    Attributes:
        file: the record of its source; None of a folder without source.
        children: what is below a package; None of a module.
    """

    def __init__(self, file: str | None = None, is_package: bool = False):
        self.file = file
        self.children: dict[str, _Source | _External] | None = {} if is_package else None


class _DirectoryReader:
    """Reads an archive that has been unpacked into a folder."""

    def __init__(self, folder: str):
        self._folder = Path(folder)

    def __contains__(self, name: str) -> bool:
        return (self._folder / name).is_file()

    def names(self) -> list[str]:
        found = self._folder.glob("**/*")
        return sorted(f.relative_to(self._folder).as_posix() for f in found if f.is_file())

    def read(self, name: str) -> bytes:
        return (self._folder / name).read_bytes()

    def path(self, name: str) -> str:
        return str(self._folder / name)

    def read_array(self, name: str) -> np.ndarray:
        return np.frombuffer(bytearray(self.read(name)), np.uint8)


class PackageImporter(Importer):
    """An open archive. Its modules are its own: they are not in `sys.modules`, and import only each other and the modules that the
    archive names as external.

    Importing a module runs its code, and so does loading a pickle. This protects from accidents and not from attacks: open only
    archives that you trust.

    Args:
        file_or_buffer: a path, a folder with an unpacked archive, or a binary file that can seek.
        module_allowed: function(name of a module) -> whether the archive may import this module from outside.

    Raises:
        ImportError: the archive needs a module that is not allowed, or its files contradict each other.
    """

    def __init__(self, file_or_buffer, module_allowed: Callable[[str], bool] = lambda module_name: True):
        by_path = isinstance(file_or_buffer, (str, os.PathLike))
        self.filename = os.fspath(file_or_buffer) if by_path else "<binary>"
        self.zip_reader: Any
        if by_path and os.path.isdir(self.filename):
            self.zip_reader = _DirectoryReader(self.filename)
        else:
            stream = open(self.filename, "rb") if by_path else file_or_buffer  # noqa: SIM115  open as long as the importer
            self.zip_reader = ZipReader(stream, self.filename)
        self.modules: dict[str, ModuleType] = {}
        self._mangler = PackageMangler()
        self._root = _Source(is_package=True)
        self.extern_modules = self.zip_reader.read(".data/extern_modules").decode("utf-8").splitlines()
        for name in self.extern_modules:
            if not module_allowed(name):
                raise ImportError(
                    f"package '{file_or_buffer}' needs the external module '{name}' but that module has been disallowed"
                )
            self._add_external(name)
        for record in self.zip_reader.names():
            self._add_file(record)
        self.patched_builtins = builtins.__dict__.copy()
        self.patched_builtins["__import__"] = self.__import__
        self.modules["torch_package_importer"] = self  # type: ignore[assignment]  # the code in the archive can name it
        self.storage_context = self.last_map_location = None

    # ---- what the archive has
    def _package(self, parts: list[str]) -> _Source | _External:
        """Return the package at a path, which is made if it is not there."""
        here: _Source | _External = self._root
        for place, part in enumerate(parts, 1):
            if isinstance(here, _Source) and here.children is not None:
                here = here.children.setdefault(part, _Source(is_package=True))
            if isinstance(here, _External):
                return here
            if here.children is None:
                raise ImportError(
                    f"inconsistent module structure. module {'.'.join(parts[:place])} is not a package, but has submodules"
                )
        return here

    def _add_external(self, name: str) -> None:
        *above, last = name.split(".")
        package = self._package(above)
        if isinstance(package, _Source) and package.children is not None:
            package.children[last] = _External()

    def _add_file(self, record: str) -> None:
        *above, last = record.split("/")
        if above[:1] == [".data"]:
            return
        package = self._package(above)
        if isinstance(package, _External):
            raise ImportError(
                f"inconsistent module structure. package contains a module file {record} that is a subpackage of a module marked "
                "external."
            )
        if last == "__init__.py":
            package.file = record
        elif last.endswith(".py") and package.children is not None:
            name = last.removesuffix(".py")
            if name in package.children:
                raise ImportError(
                    f"inconsistent module structure. {record} is there twice, or beside a package"
                )
            package.children[name] = _Source(record)

    def _found(self, name: str) -> _Source | _External | None:
        """Return the entry of a module; None if it is neither in the archive nor external."""
        here: _Source | _External = self._root
        for part in name.split("."):
            if isinstance(here, _External):
                return here
            if here.children is None or part not in here.children:
                return None
            here = here.children[part]
        return here

    def id(self) -> str:
        """Return the prefix of the names of this archive's modules, such as ``<torch_package_0>``."""
        return self._mangler.parent_name()

    def file_structure(self, *, include: GlobPattern = "**", exclude: GlobPattern = ()) -> Directory:
        """Return the files of the archive that match the patterns, as a tree."""
        return directory_of(self.filename, self.zip_reader.names(), include, exclude)

    def python_version(self) -> str | None:
        """Return the version of Python that wrote the archive, or None if it does not say so."""
        record = ".data/python_version"
        return self.zip_reader.read(record).decode("utf-8").strip() if record in self.zip_reader else None

    # ---- files
    def load_binary(self, package: str, resource: str) -> bytes:
        """Return the bytes of a file. RuntimeError if there is no such file."""
        return self.zip_reader.read(self._record(package, resource))

    def load_text(self, package: str, resource: str, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the text of a file."""
        return self.load_binary(package, resource).decode(encoding, errors)

    def load_pickle(self, package: str, resource: str, map_location=None) -> Any:
        """Return the object of a pickle, which may import modules of the archive and run their code.

        Args:
            map_location: where tensors go, as in torch.load.

        Raises:
            ModuleNotFoundError: the pickle names a module that is neither in the archive nor external.
        """
        unpickler = _Unpickler(self, self.load_binary(package, resource), map_location)
        self.last_map_location = map_location
        try:
            found = unpickler.load()
            _utils._check_sparse()
            return found
        finally:
            self.last_map_location = None
            _utils._forget_sparse()

    def _record(self, package: str | ModuleType, resource: str) -> str:
        module = package if isinstance(package, ModuleType) else self.import_module(package)
        spec = module.__spec__
        if spec is None or spec.submodule_search_locations is None or module.__loader__ is not self:
            raise TypeError(f"{package!r} is not a package of the archive")
        return f"{demangle(module.__name__).replace('.', '/')}/{file_name(resource)}"

    def get_source(self, module_name: str) -> str:
        """Return the source of a module of the archive."""
        entry = self._found(demangle(module_name))
        if not isinstance(entry, _Source) or entry.file is None:
            raise ImportError(f"the archive has no source of {module_name}", name=module_name)
        return self.zip_reader.read(entry.file).decode("utf-8")

    # ---- modules
    def import_module(self, name: str, package=None) -> ModuleType:
        """Return a module of the archive, or an external one. A module of the archive runs its code when it is imported first.

        Raises:
            ModuleNotFoundError: it is neither in the archive nor external.
        """
        return self._imported(self._mangler.demangle(name))

    def _imported(self, name: str) -> ModuleType:
        if name in self.modules:
            return self.modules[name]
        above, _, last = name.rpartition(".")
        if above:
            parent = self._imported(above)
            if name in self.modules:  # the code of the package has imported it
                return self.modules[name]
            # outside of the archive a module may stand below one that is no package, as os.path does
            if not hasattr(parent, "__path__") and not isinstance(self._found(name), _External):
                raise ModuleNotFoundError(f"No module named {name!r}; {above!r} is not a package", name=name)
        module = self._loaded(name)
        if above and is_mangled(getattr(parent, "__name__", "")):
            setattr(parent, last, module)
        return module

    def _loaded(self, name: str) -> ModuleType:
        entry = self._found(name)
        if isinstance(entry, _External) or (entry is None and name in _ALWAYS_EXTERNAL):
            self.modules[name] = importlib.import_module(name)
            return self.modules[name]
        if entry is None:
            raise ModuleNotFoundError(
                f'No module named "{name}" in self-contained archive "{self.filename}" and the module is also not in the list of '
                f"allowed external modules: {self.extern_modules}",
                name=name,
            )
        return self._made(name, entry)

    def _made(self, name: str, entry: _Source) -> ModuleType:
        """Return a module of the archive, whose code runs now."""
        spec = importlib.machinery.ModuleSpec(
            name,
            self,
            origin="<package_importer>",
            is_package=entry.children is not None,  # type: ignore[arg-type]
        )
        module = importlib.util.module_from_spec(spec)
        file = None if entry.file is None else self._mangler.mangle(entry.file)
        space = module.__dict__
        space.update(
            __name__=self._mangler.mangle(name),
            __file__=file,
            __cached__=None,
            __builtins__=self.patched_builtins,
            __torch_package__=True,
        )
        self.modules[name] = module
        if file is None:
            return module
        source = self.get_source(name)
        linecache.lazycache(file, space)  # tracebacks show the source, and another archive may take it
        try:
            exec(compile(source, file, "exec", dont_inherit=True), space)
        except BaseException:
            del self.modules[name]
            raise
        return module

    # The import system asks a loader for these two. `_made` runs the code.
    def create_module(self, spec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing."""

    def __import__(self, name, globals=None, locals=None, fromlist=(), level=0):
        """The `import` statement of the code in the archive."""
        if level:
            space = globals or {}
            package = space.get("__package__") or demangle(space["__name__"])
            if not space.get("__package__") and "__path__" not in space:
                package = package.rpartition(".")[0]
            whole = absolute_name(name, package, level)
        else:
            whole = name
        module = self._imported(whole)
        if fromlist:
            return self._with_submodules(module, whole, fromlist)
        if not level:
            return self._imported(name.partition(".")[0])
        if not name:
            return module
        return self.modules[whole[: len(whole) - len(name) + len(name.partition(".")[0])]]

    def _with_submodules(self, module: ModuleType, whole: str, fromlist) -> ModuleType:
        """Import what a `from` import names, if it is a submodule."""
        if not hasattr(module, "__path__"):
            return module
        wanted = list(fromlist)
        if "*" in wanted:
            wanted += getattr(module, "__all__", [])
        for one in wanted:
            if one != "*" and not hasattr(module, one):
                inside = f"{whole}.{one}"
                try:
                    self._imported(inside)
                except ModuleNotFoundError as error:
                    if error.name != inside:
                        raise  # the submodule is there, and what it imports is not
        return module

    def find_global(self, module: str, name: str) -> Any:
        """Return what a pickle names. Names of torch count only if the archive has torch as external."""
        if module.partition(".")[0] == "torch" and isinstance(self._found(module), _External):
            return names.find(module, name)
        found: Any = self.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found

    def contents(self, package: str) -> Iterator[str]:
        """Yield the names of the files and folders in a package."""
        before = package.replace(".", "/") + "/"
        inside = (
            record.removeprefix(before) for record in self.zip_reader.names() if record.startswith(before)
        )
        yield from dict.fromkeys(path.partition("/")[0] for path in inside)

    def get_resource_reader(self, fullname: str):
        """Return a reader of the files in a package, for importlib.resources; None if it is no package."""
        entry = self._found(demangle(fullname))
        if not isinstance(entry, _Source) or entry.children is None:
            return None
        return _ResourceReader(self, demangle(fullname))


class _ResourceReader:
    """Reads the files in a package of an archive, for importlib.resources."""

    def __init__(self, importer: PackageImporter, package: str):
        self._importer, self._package = importer, package

    def open_resource(self, resource: str) -> io.BytesIO:
        return io.BytesIO(self._importer.load_binary(self._package, resource))

    def resource_path(self, resource: str) -> str:
        reader = self._importer.zip_reader
        if isinstance(reader, _DirectoryReader):
            return reader.path(self._importer._record(self._package, resource))
        raise FileNotFoundError(resource)  # a file in an archive has no path; the caller makes a copy

    def is_resource(self, path: str) -> bool:
        return self._importer._record(self._package, path) in self._importer.zip_reader

    def contents(self) -> Iterator[str]:
        return self._importer.contents(self._package)


class _Unpickler(pickle.Unpickler):
    """The unpickler of an archive, whose names come from its importer."""

    def __init__(self, importer: PackageImporter, data: bytes, map_location):
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self._importer = importer
        self._restore = locations.restore_function(map_location)
        self._storages: dict[str, UntypedStorage] = {}
        self._reduces: dict[int, Any] = {}

    def find_class(self, module: str, name: str) -> Any:
        return self._importer.find_global(module, name)

    def persistent_load(self, pid):
        if isinstance(pid, tuple) and pid and pid[0] == "reduce_package":
            return self._reduced(*pid[1:])
        if (
            isinstance(pid, tuple) and len(pid) == 5 and isinstance(pid[2], int)
        ):  # PyTorch numbers the storages
            pid = (*pid[:2], str(pid[2]), *pid[3:])
        kind, key, location, count = storage_record(pid, 5)
        if key not in self._storages:
            size = count * (kind.dtype.itemsize if kind.dtype is not None else 1)
            self._storages[key] = self._restore(self._read(key, size), location)
        return _wrap(self._storages[key], kind.dtype)

    def _read(self, key: str, size: int) -> UntypedStorage:
        reader, record = self._importer.zip_reader, f".data/{key}.storage"
        if "byteorder" in reader and reader.read("byteorder") != b"little":
            raise unsupported("torch.package", "tensors of a big-endian machine are not supported")
        array = np.array(reader.read_array(record))
        if array.size < size:
            raise RuntimeError(f"{record} of the archive holds {array.size} bytes where {size} are expected")
        return UntypedStorage.from_numpy(array)

    def _reduced(self, *parts):
        """Return the object that a function of its own rebuilds. Archives of old versions do not number them."""
        if len(parts) == 2:
            function, args = parts
            return function(self._importer, *args)
        number, function, args = parts
        if number not in self._reduces:
            self._reduces[number] = function(self._importer, *args)
        return self._reduces[number]
