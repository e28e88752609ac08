"""Runs a script, a module or a line of code as `python` would, with torch answered by msadapter."""

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
    """Installs the alias here and, through the environment, in every process started from here."""
    os.environ.setdefault("MSADAPTER_DEVICE", "cuda")
    entries = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    # A child started from another folder must still find this package, installed or not.
    for needed in (str(ROOT), str(SHIM)):
        if needed not in entries:
            entries.insert(0, needed)
    os.environ["PYTHONPATH"] = os.pathsep.join(entries)
    install()


def run(arguments: list[str]) -> int:
    """arguments as after `python`: script.py args, -m module args, or -c code args. Returns the exit code.

    SystemExit and every other exception of the script pass through, as from python itself.
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
    # dont_inherit: this file's own __future__ imports are not the script's.
    exec(compile(source, main.__file__, "exec", dont_inherit=True), main.__dict__)
    return 0


def _new_main() -> ModuleType:
    """A fresh __main__ that stays until the interpreter ends, so that exit handlers still see the script's globals."""
    main = ModuleType("__main__")
    main.__dict__["__builtins__"] = builtins
    main.__dict__["__annotations__"] = {}
    sys.modules["__main__"] = main
    return main


def _replace_path_entry(folder: str) -> None:
    """python puts the script's folder first in sys.path; `-m msadapter` has put the working directory there."""
    if not sys.flags.safe_path:
        sys.path[0] = folder
