"""Builds and loads the C++ layer (`_C`).

The sources in ``csrc/`` are compiled once for this machine. The result is cached under a key made of the
sources, the compiler, the processor and the MindSpore release. ``MSADAPTER_CACHE`` sets the folder of the
cache, and ``MSADAPTER_CACHE_LIMIT`` its largest size in GB (cache_limit.py). ``MSADAPTER_SANITIZE`` builds
with the compiler's sanitizers, as ``tests/sanitize.sh`` does. A wheel with kernels brings them compiled
(packaged.py); then nothing is built.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.machinery
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path

from . import cache, cache_limit, instructions, packaged
from .cache import BuildError
from .troubleshooting import see

MINDSPORE_VERSION = "2.10.0"
SOURCES = Path(__file__).parents[1] / "csrc"
# Units of the library of MindSpore's operators. What the headers instantiate costs a unit 18 seconds, an operator a third of one.
OPERATOR_UNITS = max(2, min(4, os.cpu_count() or 1))
# Sources that are compiled as one unit. What MindSpore's headers instantiate costs a unit 8 to 14 seconds, a source itself 1 to 3.
FILES_OF_A_UNIT = 16
# Folders whose sources include no header of MindSpore or Python.
_WITHOUT_MINDSPORE = ("kernels", "distributed")


def _mindspore_root() -> Path:
    spec = importlib.util.find_spec("mindspore")
    if spec is None or spec.origin is None:
        raise BuildError(f"mindspore is not installed: pip install mindspore=={MINDSPORE_VERSION}")
    root = Path(spec.origin).parent
    try:
        version = importlib.metadata.version("mindspore")
    except importlib.metadata.PackageNotFoundError:  # a folder on the path that pip has not installed
        version = "unknown"
    if version != MINDSPORE_VERSION:
        raise BuildError(
            f"msadapter is built against the headers of mindspore {MINDSPORE_VERSION}, found {version}: "
            f"pip install mindspore=={MINDSPORE_VERSION} {see('mindspore-version')}"
        )
    return root


def compiler() -> str:
    """Return the path of the C++ compiler: $CXX or g++."""
    name = os.environ.get("CXX", "g++")
    path = shutil.which(name)
    if path is None:
        raise BuildError(
            f"no C++ compiler: {name!r} is not on PATH. Install one (Debian: apt-get install g++) "
            f"or name it in CXX {see('compiler')}"
        )
    return path


def compiler_version() -> str:
    """Return what the C++ compiler prints for ``--version``. It is asked once."""
    return _version_of(compiler())


@functools.cache
def _version_of(path: str) -> str:
    return subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout


def _instructions() -> str:
    """Return the instruction set for which kernels are compiled here."""
    return instructions.requested() or instructions.NATIVE


def _source_files() -> list[Path]:
    return sorted(p for p in SOURCES.rglob("*") if p.suffix in (".cpp", ".h"))


def _key() -> str:
    h = hashlib.sha256()
    for part in (
        compiler_version(),
        instructions.processor(),
        _instructions(),
        MINDSPORE_VERSION,
        sysconfig.get_config_var("SOABI") or "",
        " ".join(_sanitizer_flags()),
        source_hash(),
    ):
        h.update(part.encode())
    return h.hexdigest()[:20]


def source_hash() -> str:
    """Return the hash of what the libraries are compiled from, and of the options of the compiler."""
    h = hashlib.sha256()
    for text in (Path(__file__).read_text(), Path(instructions.__file__).read_text(), *sorted(fused_names())):
        h.update(text.encode())
    for path in _source_files():
        h.update(str(path.relative_to(SOURCES)).encode())
        h.update(path.read_bytes())
    return h.hexdigest()


def cache_root() -> Path:
    """Return the folder of the built libraries."""
    if os.environ.get("MSADAPTER_CACHE"):
        return Path(os.environ["MSADAPTER_CACHE"])
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "msadapter"


def library_path() -> Path:
    """Return the path of the library for the present sources, whether it is built or not."""
    return cache_root() / _key() / "_C.so"


def operators_path(library: Path) -> Path:
    """Return the path of the second library, with MindSpore's operators, that belongs to a library."""
    return library.with_name("_operators.so")


def _sanitizer_flags() -> list[str]:
    """Compiler options for the sanitizers that ``MSADAPTER_SANITIZE`` names, such as ``address,undefined``.

    They follow the other options, so ``-O1`` wins: the reports then name the right lines. ``vptr`` stays out, because
    it reads type information that MindSpore's libraries hide.
    """
    chosen = os.environ.get("MSADAPTER_SANITIZE", "")
    if not chosen:
        return []
    found = [f"-fsanitize={chosen}", f"-fsanitize-recover={chosen}", "-fno-sanitize=vptr"]
    return [*found, "-O1", "-g1", "-fno-omit-frame-pointer"]


def kernel_flags(instruction_set: str | None = None) -> list[str]:
    """Return the compiler's options for the kernels of an instruction set; by default, of the one that is chosen here."""
    return [
        "-std=c++17",
        "-O3",
        *instructions.flags(instruction_set or _instructions()),
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fPIC",
        "-fvisibility=hidden",
        "-D_GLIBCXX_USE_CXX11_ABI=0",
        *_sanitizer_flags(),
    ]


def _device_flags(root: Path) -> list[str]:
    inc = root / "include"
    ms = inc / "mindspore"
    folders = [
        root,
        inc,
        inc / "third_party",
        inc / "third_party/robin_hood_hashing",
        inc / "third_party/securec/include",
        ms / "include",
        ms / "core",
        ms / "core/include",
        ms / "core/mindrt/include",
        ms / "core/mindrt",
        ms / "ops",
        ms / "ops/include",
        ms / "ops/kernel/include",
        ms / "ccsrc",
        ms / "ccsrc/include",
        ms / "ccsrc/minddata/mindrecord/include",
        Path(sysconfig.get_paths()["include"]),
        SOURCES,
    ]
    return [
        "-std=c++17",
        "-fPIC",
        "-D_GLIBCXX_USE_CXX11_ABI=0",
        "-DENABLE_FAST_HASH_TABLE=1",
        *(f"-I{p}" for p in folders),
    ]


def _mindspore_operators(root: Path) -> dict[str, str]:
    """Return class name -> header for every pyboost operator of MindSpore."""
    folder = root / "include/mindspore/ccsrc/include/pynative/utils/pyboost/auto_generate"
    found = {}
    for path in sorted(folder.glob("*.h")):
        match = re.search(r"class PYBOOST_API (\w+) : public", path.read_text())
        if match:
            found[match.group(1)] = path.name
    return found


def _kernel_names() -> set[str]:
    names = set()
    for path in (SOURCES / "kernels").rglob("*.cpp"):
        names.update(re.findall(r"\b(?:MSA|[A-Z]+)_(?:\w*KERNEL\w*|ALIAS\w*)\(\s*(\w+)", path.read_text()))
        names.update(re.findall(r"\b[A-Z][A-Z0-9_]{3,}\(\s*(\w+)", path.read_text()))
    return names


def fused_names() -> set[str]:
    """MindSpore's operators that kernels_ascend calls on an NPU. An installation without kernels_ascend has none."""
    listed = SOURCES.parents[1] / "kernels_ascend" / "operators.json"
    return set(json.loads(listed.read_text(encoding="utf-8"))) if listed.exists() else set()


def _npu_names() -> set[str]:
    """The operators that the operator table calls by name: those for an NPU alone have no kernel of this project."""
    names: set[str] = set()
    for path in (SOURCES.parent / "ops").glob("*.py"):
        for called, written in re.findall(r'\braw\.(\w+)\(|"(Inplace\w+)"', path.read_text(encoding="utf-8")):
            names.add(called or written)
    return names


def _operator_units(root: Path) -> list[str]:
    """Return C++ sources that register the MindSpore operators for which this project has kernels or fused
    forms, and those that it calls on an NPU alone.

    A hash of its name decides in which source file an operator is. New operators therefore do not move the
    others, and fewer files have to be compiled again.
    """
    headers = _mindspore_operators(root)
    buckets: list[list[str]] = [[] for _ in range(OPERATOR_UNITS)]
    for name in sorted(set(headers) & (_kernel_names() | fused_names() | _npu_names())):
        buckets[zlib.crc32(name.encode()) % OPERATOR_UNITS].append(name)
    units = []
    for part in buckets:
        lines = [f'#include "include/pynative/utils/pyboost/auto_generate/{headers[n]}"' for n in part]
        # MindSpore's library has the factories' functions
        lines += [
            f"extern template class mindspore::kernel::pyboost::OpFactory<mindspore::kernel::pyboost::{n}>;"
            for n in part
        ]
        lines += ["namespace msa {"]
        lines += [f'static RegisterOperator<pb::{n}> register_{n}("{n}");' for n in part]
        lines += ["}"]
        units.append("\n".join(lines) + "\n")
    return units


def _compile(command: list[str], source: Path, verbose: bool) -> None:
    if verbose:
        print(f"  {source.name}", flush=True)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        if "No space left on device" in done.stderr:
            raise BuildError(
                f"the disk is full: {source.name} could not be compiled. Make room in {cache_root()} and in "
                f"{tempfile.gettempdir()}, or set MSADAPTER_CACHE and TMPDIR to folders on another disk"
            )
        raise BuildError(f"compiling {source.name} failed:\n{done.stderr[-4000:]}")


def _with_headers(path: Path, seen: dict[Path, bytes]) -> dict[Path, bytes]:
    """Return the contents of a file and of all headers of this project that it includes."""
    if path not in seen:
        seen[path] = path.read_bytes()
        for name in re.findall(rb'^#include "([^"]+)"', seen[path], re.M):
            header = (path.parent / name.decode()).resolve()
            if header.is_relative_to(SOURCES.resolve()) and header.exists():
                _with_headers(header, seen)
    return seen


class _Compilation:
    """Compiles object files and caches them by content, so that unchanged files are not compiled again.

    The kernels include no header of Python, so environments with different Pythons share their object files.
    They include none of MindSpore either: `root`, the folder of MindSpore, may be None if nothing else is compiled.
    """

    def __init__(self, root: Path | None, objects: Path, verbose: bool, instruction_set: str | None = None):
        self.root, self.objects, self.verbose, self.instruction_set = root, objects, verbose, instruction_set
        self.machine = f"{compiler_version()} {instructions.processor()} {MINDSPORE_VERSION}".encode()
        self.base = self.machine + f" {sys.version_info}".encode()

    @property
    def mindspore(self) -> Path:
        """The folder of MindSpore."""
        assert self.root is not None
        return self.root

    def _cached(
        self, name: str, suffix: str, path: Path, flags: list[str], content: bytes, python: bool = True
    ) -> Path:
        options = " ".join(
            f for f in flags if not f.startswith(("-I", "/"))
        )  # the place of the headers does not change the result
        base = self.base if python else self.machine
        key = hashlib.sha256(base + options.encode() + content).hexdigest()[:20]
        target = self.objects / f"{name}-{key}{suffix}"
        if _is_whole_object(target):
            cache_limit.touch(target)
        else:
            part = target.with_suffix(f".{os.getpid()}.part")
            kind = ["-x", "c++-header"] if suffix == ".gch" else ["-c"]
            try:
                _compile([compiler(), *flags, *kind, str(path), "-o", str(part)], path, self.verbose)
                part.chmod(0o644)
                _hash_of(target).write_text(cache.file_sha256(part))
                part.rename(target)
            finally:
                part.unlink(missing_ok=True)
        return target

    def precompiled(self, header: str, level: str) -> tuple[Path, bytes]:
        """Precompile MindSpore's headers and return (file to -include, key).

        Reading them takes twenty seconds, so this is done once for each optimisation level.
        """
        source = SOURCES / header
        content = b"".join(_with_headers(source, {}).values())
        flags = [*_device_flags(self.mindspore), level, *_sanitizer_flags()]
        options = " ".join(_sanitizer_flags()).encode()
        key = hashlib.sha256(self.base + options + str(source).encode() + content).hexdigest()[:16]
        folder = self.objects / f"pch{level}-{key}"
        folder.mkdir(exist_ok=True)
        stub = folder / "all.h"
        text = f'#include "{source}"\n'
        if not stub.exists() or stub.read_text() != text:
            stub.write_text(text)
        gch = folder / "all.h.gch"
        if not gch.exists():
            part = folder / f"all.{os.getpid()}.part"
            _compile(
                [compiler(), *flags, "-x", "c++-header", str(stub), "-o", str(part)], source, self.verbose
            )
            part.rename(gch)
        cache_limit.touch(folder)
        return stub, content

    def kernel(self, path: Path) -> Path:
        content = b"".join(_with_headers(path, {}).values())
        return self._cached(path.stem, ".o", path, kernel_flags(self.instruction_set), content, python=False)

    def device(self, path: Path, stub: Path, content: bytes, level: str) -> Path:
        """Compile a unit, which may include sources of this project."""
        included = (SOURCES / name for name in re.findall(r'^#include "(.+\.cpp)"$', path.read_text(), re.M))
        own = path.read_bytes()
        for source in included:
            own += b"".join(_with_headers(source, {}).values())
        flags = [*_device_flags(self.mindspore), level, *_sanitizer_flags(), "-include", str(stub)]
        return self._cached(path.stem, ".o", path, flags, content + own)


def _hash_of(target: Path) -> Path:
    return target.with_name(target.name + ".sha256")


def _is_whole_object(target: Path) -> bool:
    """Whether a cached object file is there and is the one that was compiled."""
    if not target.exists() or cache._why_others_may_write(target):
        return False
    found = cache.file_sha256(target)
    try:
        return _hash_of(target).read_text() == found
    except FileNotFoundError:  # an earlier version compiled it
        _hash_of(target).write_text(found)
        return True


def _parallel(jobs) -> list[Path]:
    """The results of all jobs. After the first error, such as a full disk, no other job is started."""
    with ThreadPoolExecutor(max_workers=max(1, min(os.cpu_count() or 1, 8))) as pool:
        futures = [pool.submit(*job) for job in jobs]
        wait(futures, return_when=FIRST_EXCEPTION)
        for future in futures:
            if future.done() and future.exception() is not None:
                pool.shutdown(wait=False, cancel_futures=True)
                raise future.exception()
        return [future.result() for future in futures]


def _device_units(sources: list[Path], work: Path) -> list[Path]:
    """Write the units of some sources to ``work``: each includes a few sources of one folder."""
    folders: dict[str, list[str]] = {}
    for path in sources:
        place = path.relative_to(SOURCES)
        folders.setdefault(place.parts[0], []).append(str(place))
    units = []
    for folder, names in folders.items():
        count = -(-len(names) // FILES_OF_A_UNIT)
        for number in range(count):
            units.append(work / f"{folder}_{number}.cpp")
            units[-1].write_text("".join(f'#include "{name}"\n' for name in names[number::count]))
    return units


def _kernel_sources() -> list[Path]:
    """Return the sources that include no header of MindSpore or Python, the largest first."""
    sources = [p for p in _source_files() if p.suffix == ".cpp"]
    kernels = [p for p in sources if p.relative_to(SOURCES).parts[0] in _WITHOUT_MINDSPORE]
    return sorted(kernels, key=lambda p: -p.stat().st_size)


def _extension_objects(compilation: _Compilation, work: Path) -> list[Path]:
    """Compile the kernels and the dispatcher. What has not changed comes from the cache."""
    kernels = _kernel_sources()
    units = _device_units([p for p in _source_files() if p.suffix == ".cpp" and p not in kernels], work)
    # the headers of MindSpore are precompiled while the kernels compile
    with ThreadPoolExecutor(max_workers=1) as beside:
        header = beside.submit(compilation.precompiled, "dispatch/op.h", "-O2")
        done = _parallel([(compilation.kernel, p) for p in kernels])
        return done + _parallel([(compilation.device, unit, *header.result(), "-O2") for unit in units])


def _operator_objects(compilation: _Compilation, work: Path) -> list[Path]:
    units = []
    for i, text in enumerate(_operator_units(compilation.mindspore)):
        units.append(work / f"operators_{i}.cpp")
        units[-1].write_text(text)
    header = compilation.precompiled("device/pyboost_bind.h", "-O0")
    return _parallel([(compilation.device, p, *header, "-O0") for p in units])


def _locked(target: Path, make, verbose: bool, thorough: bool = False) -> Path:
    """Return ``target``.

    If it does not exist, or is not the file that was built, link it from ``make(compilation, work)`` -> (objects, link
    options). BuildError if another user could change the cache.
    """
    if cache.is_ready(target, thorough):
        return target
    root, folder = _mindspore_root(), cache_root()
    with _alone_in_cache(target.parent, folder / "objects"):
        if not cache.is_ready(target, thorough):
            _check_before_work(folder)
            _link(target, make, root, verbose)
            cache_limit.prune(folder)
    return target


def _check_before_work(folder: Path) -> None:
    """Tell what would stop a build of minutes at its end: no room, or a limit of the cache that is not a number."""
    cache.check_space(folder)
    cache_limit.limit()


@contextlib.contextmanager
def _alone_in_cache(*parts: Path) -> Iterator[None]:
    """Let one process build at a time: others that need the same wait. The folders that it writes are made.

    Raises:
        BuildError: another user could change the cache, or it cannot be written.
    """
    folder = cache_root()
    try:
        cache.check_root(folder)
        with cache.alone(folder):
            for part in parts:
                cache.set_aside_untrusted(part)
                cache.make_folder(part)
            yield
    except OSError as error:
        raise BuildError(
            f"the cache of built libraries {folder} cannot be used ({error.strerror}: {error.filename or ''}): make room or "
            "give yourself the right to write it, or set MSADAPTER_CACHE to another folder"
        ) from error


def compile_kernels() -> None:
    """Compile what needs no header of MindSpore or Python, so that `build` finds it later. MindSpore need not be installed yet.

    Nothing is done if the library is there already.

    Raises:
        BuildError: as in `build`.
    """
    if packaged_library() or cache.is_ready(library_path()):
        return
    objects = cache_root() / "objects"
    with _alone_in_cache(objects):
        _check_before_work(cache_root())
        compilation = _Compilation(None, objects, verbose=False)
        _parallel([(compilation.kernel, path) for path in _kernel_sources()])


def _link(target: Path, make, root: Path, verbose: bool) -> None:
    """Build ``target``. It appears complete, with its hash beside it."""
    part = target.parent / f"{target.stem}.{os.getpid()}.part"
    with tempfile.TemporaryDirectory(prefix=cache_limit.WORK, dir=cache_root()) as tmp:
        files, options = make(_Compilation(root, cache_root() / "objects", verbose), Path(tmp))
        try:
            rpath = f"-Wl,--disable-new-dtags,-rpath,{root / 'lib'}:$ORIGIN"
            link_library(part, files, [*options, rpath], root, verbose, target)
            part.chmod(0o755)
            sha256 = cache.file_sha256(part)
            cache.record_of(target).unlink(missing_ok=True)
            part.rename(target)  # a process that has mapped the old file keeps it
            cache.record(target, sha256)
        finally:
            part.unlink(missing_ok=True)


def link_library(
    path: Path, files: list[Path], options: list[str], root: Path, verbose: bool, target: Path
) -> None:
    """Link object files and MindSpore's libraries, and write the library to `path`. A message calls it `target`."""
    names = ["core", "common", "ms_backend", "pynative", "pyboost", "pynative_utils"]
    names += ["runtime_utils", "backend_common", "ops"]
    command = [
        compiler(),
        "-shared",
        *_sanitizer_flags(),
        "-o",
        str(path),
        *map(str, files),
        f"-L{root / 'lib'}",
    ]
    command += [*(f"-lmindspore_{n}" for n in names), "-ldl", "-lpthread", *options]
    _compile(command, target, verbose)


def packaged_library() -> Path | None:
    """Return the library that the package brings compiled, if it has one for this machine. BuildError if it is damaged."""
    return packaged.library(MINDSPORE_VERSION, source_hash)


def build(verbose: bool = False, thorough: bool = False) -> Path:
    """Return the path of the library: the package's, or one that is built if necessary.

    thorough: compare the hash of a library that is there, even if nothing has touched the file.

    Raises:
        BuildError: it cannot be built, or the package's library is damaged. This is a RuntimeError.
    """
    _mindspore_root()
    if found := packaged_library():
        return found
    target = library_path()
    if verbose and not target.exists():
        print("building the CPU kernels (once for this machine; about two minutes on two cores)", flush=True)
    return _locked(
        target, lambda compilation, work: (_extension_objects(compilation, work), []), verbose, thorough
    )


def build_operators(library: Path | None = None, verbose: bool = False) -> Path:
    """Return the path of the library that calls MindSpore's operators and replaces their CPU kernels.

    It belongs to `library`, and is built if necessary.
    """
    library = library or build(verbose)
    if packaged.owns(library):
        return packaged.operators()
    target = operators_path(library)
    if verbose and not target.exists():
        print(
            "building the library of MindSpore's operators (once for this machine; several minutes)",
            flush=True,
        )
    options = [f"-L{library.parent}", f"-l:{library.name}"]
    return _locked(target, lambda compilation, work: (_operator_objects(compilation, work), options), verbose)


def load_operators() -> None:
    """Load this library (built first if needed) and replace the CPU kernels of MindSpore's operators."""
    module = load()
    if not getattr(module, "operators_loaded", False):
        path = build_operators(Path(module.__file__), verbose=bool(sys.stderr and sys.stderr.isatty()))
        module._operators_library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        module.install_overrides()
        module.operators_loaded = True


def _built_and_held() -> Path:
    """The library, the package's or one that is built if necessary, in a folder that stays as long as this process lives."""
    while True:
        path = build(verbose=bool(sys.stderr and sys.stderr.isatty()))
        if packaged.owns(path):
            return path
        with contextlib.suppress(FileNotFoundError):  # another build has removed it since
            cache_limit.hold(path.parent, path)
            return path


def load():
    """Import the C++ layer `_C`. It is built first if needed."""
    if "msadapter._C" in sys.modules:
        return sys.modules["msadapter._C"]
    chosen = os.environ.get(
        "MSADAPTER_LIBRARY"
    )  # a library that was built elsewhere for this MindSpore; nothing but its owner and mode is checked
    if chosen and (reason := cache.why_untrusted(Path(chosen))):
        raise BuildError(f"MSADAPTER_LIBRARY is not loaded: {reason}")
    path = Path(chosen) if chosen else _built_and_held()
    # Matrix products can use the oneDNN library that MindSpore contains, on processors where it is faster.
    os.environ.setdefault("MSADAPTER_ONEDNN_LIBRARY", str(_mindspore_root() / "lib" / "libdnnl.so.3"))
    # imported here, because the other functions also run without the package (see doctor.py)
    from .runtime import native

    native()  # loads MindSpore first, so that a cached library from another environment finds it by name
    loader = importlib.machinery.ExtensionFileLoader("msadapter._C", str(path))
    spec = importlib.util.spec_from_file_location("msadapter._C", path, loader=loader)
    assert spec is not None  # a loader was given
    try:
        module = importlib.util.module_from_spec(spec)
    except ImportError as error:
        if packaged.owns(path):
            raise BuildError(
                f"the package's library {path} cannot be loaded on this machine: {error}. Set MSADAPTER_CPU=native to compile "
                "the kernels here"
            ) from error
        raise
    loader.exec_module(module)
    sys.modules["msadapter._C"] = module
    return module
