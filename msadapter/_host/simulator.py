"""The simulated NPU: builds stand-ins for CANN's libraries, and shows them to MindSpore's Ascend plugin.

The sources are in kernels_ascend/simulator. They are built on demand into the cache of built libraries, under a key
made of the sources, the compiler and the MindSpore release. Nothing of this is used unless MSADAPTER_SIMULATED_NPU=1 is
set. docs/simulated_npu.md says what it proves and what it does not. Standard library only; see doctor.py.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType

from . import cache, cache_limit, instructions, native
from .cache import BuildError
from .troubleshooting import see

SWITCH = "MSADAPTER_SIMULATED_NPU"
COUNTERS = (
    "MSADAPTER_SIMULATED_NPU_COUNTERS"  # a folder into which each process writes its counters when it ends
)
SOURCES = Path(__file__).parents[2] / "kernels_ascend" / "simulator"
_CANN_VERSION = "8.5.0"  # MindSpore 2.10 accepts 8.2 to 9.1
_COMPILERS = 2  # processes at a time
# Libraries that MindSpore opens by name, beside those that its own libraries ask for.
_OPENED = (
    "libacl_op_compiler.so",
    "libacl_tdt_channel.so",
    "libacl_tdt_queue.so",
    "libmsprofiler.so",
    "libprofapi.so",
    "libopapi.so",
    "libascend_ml.so",
)
_PYTHON_PACKAGES = "opp/built-in/op_impl/ai_core/tbe"  # where CANN keeps them below its home folder
_enabled: Path | None = None


def is_asked_for() -> bool:
    """Whether this run asked for the simulated NPU.

    Raises:
        ValueError: the variable has another value than 0 or 1.
    """
    value = os.environ.get(SWITCH, "0")
    if value not in ("", "0", "1"):
        raise ValueError(f"{SWITCH} is {value!r}: set it to 1 to use the simulated NPU, or to 0")
    return value == "1"


def _units() -> list[Path]:
    return sorted(SOURCES.rglob("*.cpp"))


def _all_sources() -> list[Path]:
    return sorted(path for path in SOURCES.rglob("*") if path.suffix in (".cpp", ".h", ".py"))


def _flags() -> list[str]:
    return [
        "-std=c++17",
        "-O2",
        "-march=native",
        "-fno-math-errno",
        "-fPIC",
        "-fvisibility=hidden",
        "-pthread",
        "-D_GLIBCXX_USE_CXX11_ABI=0",  # MindSpore is built with this ABI of std::string
        "-Wall",
        "-Werror",
    ]


def _headers_of(path: Path, seen: dict[Path, bytes]) -> dict[Path, bytes]:
    """The contents of a file and of all headers of the simulator that it includes."""
    if path not in seen:
        seen[path] = path.read_bytes()
        for name in re.findall(rb'^#include "([^"]+)"', seen[path], re.M):
            _headers_of((path.parent / name.decode()).resolve(), seen)
    return seen


def _base() -> bytes:
    return f"{native.compiler_version()} {instructions.processor()} {' '.join(_flags())}".encode()


def home() -> Path:
    """Return the folder that stands in for CANN's home, whether it is built or not.

    Its last part is "cann", because MindSpore looks for that word in the path.
    """
    digest = hashlib.sha256(_base() + native.MINDSPORE_VERSION.encode() + Path(__file__).read_bytes())
    for path in _all_sources():
        digest.update(str(path.relative_to(SOURCES)).encode())
        digest.update(path.read_bytes())
    return native.cache_root() / f"simulated-npu-{digest.hexdigest()[:20]}" / "cann"


def library(folder: Path) -> Path:
    """Return the path of the library that holds the simulator, below its home."""
    return folder / "lib64" / "libascendcl.so"


def why_not_ready(folder: Path) -> str:
    """Why the libraries of a home folder cannot be used; "" if they are whole."""
    if not library(folder).exists():
        return "it is not built"
    for path in sorted((folder / "lib64").glob("*.so")):
        if reason := cache.why_damaged(path):
            return reason
    return ""


def build(verbose: bool = False) -> Path:
    """Build the simulated NPU if necessary and return its home. BuildError if that fails."""
    if not SOURCES.is_dir():
        raise BuildError(
            f"the sources of the simulated NPU are not installed: {SOURCES} is missing. Install msadapter with kernels_ascend"
        )
    mindspore = native._mindspore_root()
    root, folder = native.cache_root(), home()
    cache.check_root(root)
    if not why_not_ready(folder):
        return folder
    for part in (folder.parent, root / "objects"):
        cache.set_aside_untrusted(part)
        cache.make_folder(part)
    with cache.alone(folder.parent):  # a lock of its own: the builds of the other libraries go on meanwhile
        if why_not_ready(folder):
            cache.check_space(root)
            if verbose:
                print("building the simulated NPU (once; one to two minutes)", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=folder.parent) as work:
                _assemble(mindspore, Path(work) / "cann", Path(work), verbose)
                if folder.exists():
                    shutil.move(folder, Path(work) / "damaged")
                (Path(work) / "cann").rename(folder)
                _record(folder)
    return folder


def _record(folder: Path) -> None:
    """Write the hashes of all libraries, and last that of the library whose hash shows that the folder is complete."""
    paths = sorted((folder / "lib64").glob("*.so"), key=lambda path: path == library(folder))
    for path in paths:
        path.chmod(0o644)
        cache.record(path, cache.file_sha256(path))


def _object(unit: Path, verbose: bool) -> Path:
    """Compile a source file, unless the cache has the object file of these contents."""
    digest = hashlib.sha256(_base() + b"".join(_headers_of(unit.resolve(), {}).values())).hexdigest()[:20]
    target = native.cache_root() / "objects" / f"npu_{unit.stem}-{digest}.o"
    if native._is_whole_object(target):
        cache_limit.touch(target)
    else:
        part = target.with_suffix(f".{os.getpid()}.part")
        try:
            native._compile(
                ["nice", native.compiler(), *_flags(), "-c", str(unit), "-o", str(part)], unit, verbose
            )
            part.chmod(0o644)
            native._hash_of(target).write_text(cache.file_sha256(part))
            part.rename(target)
        finally:
            part.unlink(missing_ok=True)
    return target


def _script(name: str) -> ModuleType:
    """Import a script of the simulator that belongs to no package."""
    spec = importlib.util.spec_from_file_location(f"_simulated_npu_{name}", SOURCES / "stubs" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _assemble(mindspore: Path, folder: Path, work: Path, verbose: bool) -> None:
    """Make a whole home folder. One library holds the code; the other names lead to it."""
    with ThreadPoolExecutor(max_workers=_COMPILERS) as pool:
        units = sorted(_units(), key=lambda path: -path.stat().st_size)
        objects = [str(path) for path in pool.map(lambda unit: _object(unit, verbose), units)]
    lib = folder / "lib64"
    (lib / "driver").mkdir(parents=True)

    def link(name: str, inputs: list[str], *needs: str) -> None:
        command = [
            native.compiler(),
            "-shared",
            "-o",
            str(lib / name),
            f"-Wl,-soname,{Path(name).name}",
            *inputs,
        ]
        # MindSpore looks functions up in a library and what it needs, so needs are kept even if no symbol asks for them.
        command += [f"-L{lib}", "-Wl,--no-as-needed", *(f"-l:{need}" for need in needs), "-Wl,-rpath,$ORIGIN"]
        native._compile([*command, "-pthread"], lib / name, verbose=False)

    link("libascendcl.so", objects)
    needed = _script("generate").generate(mindspore, work, [lib / "libascendcl.so"])
    link("libsimulated_npu_stubs.so", [str(work / "stubs.S")], "libascendcl.so")
    # once more, with the stubs behind it
    link("libascendcl.so", objects, "libsimulated_npu_stubs.so")
    (work / "empty.c").write_text("")
    for name in sorted({*needed, *_OPENED}):
        if not (name == "libascendcl.so" or name.startswith("ld-linux") or name.endswith("_op.so")):
            link(
                name,
                ["-x", "c", str(work / "empty.c"), "-x", "none"],
                "libsimulated_npu_stubs.so",
                "libascendcl.so",
            )
    shutil.copy(lib / "libascend_hal.so", lib / "driver")
    _write_versions(folder)


def _write_versions(folder: Path) -> None:
    """Write the files and Python packages in which MindSpore looks for CANN's version."""
    packages = folder / _PYTHON_PACKAGES
    files = {
        folder / "compiler/version.info": f"Version={_CANN_VERSION}\n",
        folder / "opp/version.info": f"Version={_CANN_VERSION}\n",
        packages / "te/__init__.py": (SOURCES / "stubs" / "te_package.py").read_text(encoding="utf-8"),
        packages / "hccl/__init__.py": "",
        packages / "hccl/sys_version.py": f'__sys_version__ = "{_CANN_VERSION}"\n',
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def environment(folder: Path) -> dict[str, str]:
    """Return the variables by which a process finds the simulated NPU of a home folder where MindSpore looks for CANN."""

    def prepended(name: str, *folders: Path) -> str:
        present = [entry for entry in os.environ.get(name, "").split(os.pathsep) if entry]
        return os.pathsep.join([*(str(one) for one in folders if str(one) not in present), *present])

    return {
        SWITCH: "1",
        "ASCEND_HOME_PATH": str(folder),
        "ASCEND_TOOLKIT_HOME": str(folder),
        "ASCEND_OPP_PATH": str(folder / "opp"),
        "LD_LIBRARY_PATH": prepended("LD_LIBRARY_PATH", folder / "lib64", folder / "lib64" / "driver"),
        "PYTHONPATH": prepended("PYTHONPATH", folder / _PYTHON_PACKAGES),
    }


def enable(verbose: bool | None = None) -> Path:
    """Make this process, and those that it starts, find the simulated NPU where MindSpore looks for CANN.

    It is built first if needed. This must run before MindSpore is imported. Returns the home folder.

    Raises:
        BuildError: it cannot be built.
        RuntimeError: MindSpore is loaded already, or this machine has an Ascend card.
    """
    global _enabled
    if _enabled is not None:
        return _enabled
    if "mindspore._c_expression" in sys.modules:
        raise RuntimeError(
            f"MindSpore is loaded already: set {SWITCH}=1 before the program starts {see('simulator-too-late')}"
        )
    if cards := sorted(str(path) for path in Path("/dev").glob("davinci[0-9]*")):
        raise RuntimeError(f"this machine has Ascend cards ({', '.join(cards)}): unset {SWITCH} to use them")
    folder = build(verbose=bool(sys.stderr and sys.stderr.isatty()) if verbose is None else verbose)
    cache_limit.hold(folder.parent, library(folder))
    os.environ.update(environment(folder))
    if str(folder / _PYTHON_PACKAGES) not in sys.path:
        sys.path.append(str(folder / _PYTHON_PACKAGES))
    # LD_LIBRARY_PATH is read when a process starts. A library that is loaded already is found by its name without it.
    for path in sorted((folder / "lib64").glob("*.so"), key=lambda path: path != library(folder)):
        ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    _enabled = folder
    if os.environ.get(COUNTERS):
        atexit.register(_write_counters, Path(os.environ[COUNTERS]).absolute())
    return folder


def _loaded() -> ctypes.CDLL:
    if _enabled is None:
        raise RuntimeError(f"this process does not run on the simulated NPU: set {SWITCH}=1 before it starts")
    return ctypes.CDLL(str(library(_enabled)))


def counters() -> dict[str, int]:
    """Return what the simulated NPU did in this process so far, by name.

    A name is that of an aclnn operator or of an HCCL function (how often it was launched), "tasks" (those of all streams
    together), or "copies" and "bytes" with a direction, such as "copies host to device".
    """
    handle = _loaded()
    handle.SimulatedNpuCounters.restype = ctypes.c_char_p
    lines = handle.SimulatedNpuCounters().decode().splitlines()
    return {name: int(number) for name, number in (line.split("\t") for line in lines)}


def _write_counters(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(counters(), indent=1, sort_keys=True)
    (folder / f"{os.getpid()}.json").write_text(text + "\n", encoding="utf-8")


def inject_faults(text: str) -> None:
    """Let coming events of this process fail: `kind@number` with commas between them; docs/simulated_npu.md lists the kinds.

    Raises:
        ValueError: the text is not of this form.
    """
    if _loaded().SimulatedNpuInjectFaults(text.encode()) != 0:
        raise ValueError(f"{text!r} is not of the form kind@number with a known kind (docs/simulated_npu.md)")


def operators(folder: Path) -> dict[str, tuple[str, str]]:
    """Return the simulated aclnn operators: name -> (parameters, CANN document). Loads the library of `folder`."""
    handle = ctypes.CDLL(str(library(folder)))
    handle.SimulatedNpuOperators.restype = ctypes.c_char_p
    lines = handle.SimulatedNpuOperators().decode().splitlines()
    return {name: (parameters, page) for name, parameters, page in (line.split("\t") for line in lines)}


def main(arguments: list[str]) -> int:
    """Build it, then print its operators, or with the word "wanted" those that this project reaches."""
    folder = build(verbose=True)
    if arguments[:1] == ["wanted"]:
        return _script("wanted").main([str(library(folder)), *arguments[1:]])
    for name, (parameters, page) in sorted(operators(folder).items()):
        print(f"{name}{parameters}  {page}")
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
