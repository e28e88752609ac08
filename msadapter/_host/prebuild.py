"""`python -m msadapter prebuild FOLDER [SET ...]`: compiles the libraries of a wheel with kernels.

The folder receives the C++ layer once for each instruction set, the library of MindSpore's operators, and the
manifest that packaged.py reads. `bash tests/wheel.sh --kernels` puts them into a wheel. Only the kernels depend on the
instruction set, so the other sources are compiled once.
"""

from __future__ import annotations

import json
import re
import sys
import sysconfig
import tempfile
from pathlib import Path

from . import cache, cache_limit, instructions, native, packaged
from .cache import BuildError

#: The name by which the operators' library asks for the C++ layer. A process has loaded one layer, of any instruction set.
_SONAME = "msadapter_C.so"


def main(arguments: list[str]) -> int:
    """Run the command. Return 0, 1 if a build fails, or 2 if the arguments are wrong."""
    if not arguments or arguments[0].startswith("-"):
        print(
            f"usage: python -m msadapter prebuild FOLDER [SET ...], with sets among {', '.join(instructions.known())}",
            file=sys.stderr,
        )
        return 2
    try:
        prebuild(Path(arguments[0]), arguments[1:] or list(instructions.known()))
    except (BuildError, OSError) as error:
        print(f"python -m msadapter prebuild: {error}", file=sys.stderr)
        return 1
    return 0


def prebuild(folder: Path, names: list[str]) -> None:
    """Compile the libraries of the instruction sets `names` into a new folder, or one without files.

    Raises:
        BuildError: a name is not one of this machine's sets, the folder has files, or a compilation fails.
    """
    _check(folder, names)
    root, cached = native._mindspore_root(), native.cache_root()
    cache.check_root(cached)
    with cache.alone(cached):
        cache.make_folder(cached / "objects")
        with tempfile.TemporaryDirectory(prefix=cache_limit.WORK, dir=cached) as work:
            for name in names:
                print(f"compiling the kernels for {name} ({instructions.known()[name].about})", flush=True)
                compilation = native._Compilation(root, cached / "objects", False, name)
                files = native._extension_objects(compilation, Path(work))
                _link(folder / name / packaged.LIBRARY, files, [f"-Wl,-soname,{_SONAME}"], root)
            print("compiling the library of MindSpore's operators", flush=True)
            compilation = native._Compilation(root, cached / "objects", False)
            layer = [f"-L{folder / names[0]}", f"-l:{packaged.LIBRARY}"]
            _link(folder / packaged.OPERATORS, native._operator_objects(compilation, Path(work)), layer, root)
    (folder / packaged.MANIFEST).write_text(
        json.dumps(_manifest(folder, names), indent=1) + "\n", encoding="utf-8"
    )
    for path in sorted(folder.rglob("*.so")):
        print(f"{path.stat().st_size / 1e6:6.1f} MB  {path.relative_to(folder)}")


def _check(folder: Path, names: list[str]) -> None:
    if unknown := [name for name in names if name not in instructions.known()]:
        raise BuildError(
            f"{', '.join(unknown)}: not an instruction set of {instructions.machine()}, which has "
            f"{', '.join(instructions.known()) or 'none'}"
        )
    if folder.exists() and any(folder.iterdir()):
        raise BuildError(f"{folder} is not empty: name a new folder")


def _link(path: Path, files: list[Path], options: list[str], root: Path) -> None:
    """Link a library without its symbols for debuggers and without a place of this machine.

    MindSpore's libraries are found by their names, because msadapter loads MindSpore first.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    native.link_library(path, files, [*options, "-Wl,--strip-all"], root, False, path)
    path.chmod(0o755)


def _manifest(folder: Path, names: list[str]) -> dict:
    files = {str(path.relative_to(folder)): cache.file_sha256(path) for path in sorted(folder.rglob("*.so"))}
    return {
        "machine": instructions.machine(),
        "python": sysconfig.get_config_var("SOABI") or "",
        "mindspore": native.MINDSPORE_VERSION,
        "glibc": needed_glibc([folder / name for name in files]),
        "sources": native.source_hash(),
        "compiler": native.compiler_version().splitlines()[0],
        "sets": names,
        "files": files,
    }


def needed_glibc(libraries: list[Path]) -> str:
    """Return the newest version of glibc that the symbols of libraries ask for, such as "2.34"; "0" if there is none."""
    found = {"0"}
    for path in libraries:
        found |= {match.decode() for match in re.findall(rb"\0GLIBC_([0-9.]+)(?=\0)", path.read_bytes())}
    return max(found, key=packaged.numbers)
