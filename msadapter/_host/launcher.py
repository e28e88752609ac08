"""Runs a script, a module or a line of code like `python`, with msadapter as torch."""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import runpy
import sys
from pathlib import Path
from types import ModuleType

from ..alias.finder import SHIM, install

ROOT = Path(__file__).resolve().parents[2]


def prepare() -> None:
    """Install the alias in this process and, through environment variables, in its child processes."""
    os.environ.setdefault("MSADAPTER_DEVICE", "cuda")
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    # A child process may start in another folder and must still find this package, even if it is not
    # installed.
    for needed in (str(ROOT), str(SHIM)):
        if needed not in entries:
            entries.insert(0, needed)
    os.environ["PYTHONPATH"] = os.pathsep.join(entries)
    # A process that multiprocessing spawns takes over sys.path, whatever PYTHONPATH says.
    place = 0 if _keeps_path() else 1
    for needed in (str(ROOT), str(SHIM)):
        if needed not in sys.path[place:]:
            sys.path.insert(place, needed)
    install()


def run(arguments: list[str]) -> int:
    """Run a program and return its exit code.

    ``arguments`` are those of `python`: script.py args, -m module args, or -c code args. SystemExit and all
    other exceptions of the program are passed on, as in python itself.
    """
    first = arguments[0]
    prepare()
    if first in ("-m", "-c"):
        if len(arguments) < 2:
            print(f"Argument expected for the {first} option", file=sys.stderr)
            return 2
        if first == "-m":
            sys.argv[:] = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv[:] = ["-c", *arguments[2:]]
            _replace_path_entry("")
            exec(compile(arguments[1] + "\n", "<string>", "exec", dont_inherit=True), _new_main().__dict__)
        return 0
    return _run_script(first, arguments)


def _run_script(script: str, arguments: list[str]) -> int:
    if os.path.isdir(script):
        sys.argv[:] = arguments
        runpy.run_path(script, run_name="__main__")
        return 0
    try:
        source = Path(script).read_bytes()
    except OSError as error:
        print(f"python -m msadapter: can't open file {os.path.abspath(script)!r}: {error}", file=sys.stderr)
        return 2
    sys.argv[:] = arguments
    _replace_path_entry(os.path.dirname(os.path.realpath(script)))
    main = _new_main()
    main.__file__ = os.path.abspath(script)
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", main.__file__)
    # dont_inherit keeps the __future__ imports of this file away from the script.
    exec(compile(source, main.__file__, "exec", dont_inherit=True), main.__dict__)
    return 0


def _new_main() -> ModuleType:
    """Return a new module __main__. It lives until the interpreter ends, because exit handlers may use it."""
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    main.__dict__["__annotations__"] = {}
    sys.modules["__main__"] = main
    return main


def _replace_path_entry(folder: str) -> None:
    """Put the script's folder first in sys.path, as python does, instead of the working directory."""
    if not _keeps_path():
        sys.path[0] = folder


def _keeps_path() -> bool:
    """Whether Python adds no folder to sys.path for the program that it runs. Python 3.10 always adds one."""
    return getattr(sys.flags, "safe_path", False)
