"""The steps for Python, the C++ compiler, the virtual environment and the CPU kernels."""

from __future__ import annotations

import json
import operator
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from patches import toml
from patches.tree import keep_aside

from ..errors import see
from .steps import ROOT, ChildError, ConvertError, Progress, Stamp, digest, run

# MindSpore 2.10 has wheels for more versions; these are proven.
PYTHONS = ((3, 10), (3, 11), (3, 12))


def _venv() -> Path:
    """The environment for this Python: .venv, or beside a .venv of another Python .venv-3.12."""
    plain = ROOT / ".venv"
    try:
        stated = re.search(r"^version\s*=\s*(\d+)\.(\d+)", (plain / "pyvenv.cfg").read_text(), re.MULTILINE)
    except (OSError, UnicodeDecodeError):
        return plain  # it is absent or broken, and will be made
    if stated is None or tuple(map(int, stated.groups())) == sys.version_info[:2]:
        return plain
    return ROOT / f".venv-{sys.version_info[0]}.{sys.version_info[1]}"


VENV = _venv()
PYTHON = VENV / "bin" / "python"
# Packages that pip would only install together with PyTorch.
BESIDE_TORCH = ROOT / "megatron_ms" / "training" / "requirements-hf.txt"
_MARK = "msadapter-extras.json"
_NO_NETWORK = re.compile(
    r"Temporary failure in name resolution|Name or service not known|Network is unreachable|Connection refused|"
    r"Failed to establish a new connection|Connection to .* timed out|Max retries exceeded|ProxyError|"
    r"Could not find a version that satisfies|No matching distribution found|NewConnectionError"
)

# This program runs in the environment's python. It prints the pinned packages that are absent, outdated or damaged.
_INSPECT = r"""
import importlib.metadata as metadata, json, os, sys
wanted = json.loads(sys.argv[1])
absent, damaged = [], []
for name, version in wanted.items():
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        absent.append(name)
        continue
    if version and found != version:
        absent.append(name)
for distribution in metadata.distributions():
    if "site-packages" not in str(distribution.locate_file("")):
        continue
    for file in distribution.files or ():
        if file.size is None or file.suffix == ".pyc":
            continue
        try:
            whole = os.stat(file.locate()).st_size == file.size
        except OSError:
            whole = False
        if not whole:
            damaged.append(distribution.metadata["Name"])
            break
print(json.dumps({"python": list(sys.version_info[:2]), "absent": absent, "damaged": damaged}))
"""


def clean_environment() -> dict[str, str]:
    """The environment variables of the caller, without those that add packages or paths of another Python."""
    dropped = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH"}
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return kept | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUNBUFFERED": "1"}


def accepted_pythons(stated: str) -> list[tuple[int, ...]]:
    """Those of PYTHONS that a release accepts, which states its Python as ">=3.10,<3.13"."""
    return [python for python in PYTHONS if _accepts(stated, python)]


def _accepts(stated: str, python: tuple[int, ...]) -> bool:
    """Whether a Python meets all conditions in a text: ">=3.10,<3.13", or a marker "python_version < '3.11'"."""
    compare = {
        ">=": operator.ge,
        "<=": operator.le,
        "==": operator.eq,
        "!=": operator.ne,
        ">": operator.gt,
        "<": operator.lt,
    }
    conditions = re.findall(r"(>=|<=|==|!=|>|<)\s*'?(\d+)\.(\d+)", stated)
    return all(compare[sign](python, (int(major), int(minor))) for sign, major, minor in conditions)


def python_for(stated: str, what: str) -> str | None:
    """None if this Python will do for a release that states `stated`; else the path of one that will.

    Raises:
        ConvertError: there is none on PATH, or the user has named this one by the variable PYTHON.
    """
    accepted = accepted_pythons(stated)
    if sys.version_info[:2] in accepted:
        return None
    names = [f"python{major}.{minor}" for major, minor in accepted]
    if not names:
        known = " and ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        raise ConvertError(f"{what} needs Python {stated}, and msadapter is proven with Python {known}")
    for name in names if not os.environ.get("PYTHON") else ():
        path = shutil.which(name)
        if path and not subprocess.run([path, "-c", ""], capture_output=True, timeout=60).returncode:
            return path
    raise ConvertError(
        f"{what} needs Python {stated}, and this is {sys.version.split()[0]} ({sys.executable}); no other one is found as "
        f"{' or '.join(names)}. On Debian: apt install {names[0]} {names[0]}-venv {names[0]}-dev; "
        f"or set its path: PYTHON=/path/{names[0]}"
    )


def check_python() -> None:
    """Raises ConvertError unless this is a Python of PYTHONS with C headers and the modules for a virtual environment."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    if sys.version_info[:2] not in PYTHONS:
        known = " or ".join(f"{major}.{minor}" for major, minor in PYTHONS)
        raise ConvertError(f"Python {known} is needed, but this is {sys.version.split()[0]}")
    include = Path(sysconfig.get_paths()["include"])
    if not (include / "Python.h").is_file():
        raise ConvertError(
            f"Python's C headers are missing ({include}/Python.h). On Debian: apt install {name}-dev "
            + see("c-headers")
        )
    try:
        import ensurepip  # noqa: F401  (Debian ships it in a package of its own)
        import venv  # noqa: F401
    except ImportError:
        raise ConvertError(
            f"this Python cannot make virtual environments. On Debian: apt install {name}-venv"
        ) from None


def compiler() -> str | None:
    """The path of the C++ compiler for the kernels; None if there is none."""
    named = os.environ.get("CXX")
    return shutil.which(named) if named else shutil.which("g++")


def check_compiler() -> None:
    if compiler() is None:
        named = os.environ.get("CXX")
        what = f"no C++ compiler CXX={named}" if named else "no C++ compiler (g++)"
        raise ConvertError(
            f"{what} is found, but the CPU kernels are compiled on this machine. On Debian: apt install g++; "
            f"or set the path of another compiler: CXX=/path/g++ {see('no-compiler')}"
        )


def pinned(extras: tuple[str, ...], python: tuple[int, ...] = sys.version_info[:2]) -> dict[str, str]:
    """Name -> pinned version of every dependency that the project has with these extras under a Python."""
    return dict(pin.split("==", 1) for extra in (None, *extras) for pin in pins_of(extra, python))


def pins_of(extra: str | None, python: tuple[int, ...] = sys.version_info[:2]) -> list[str]:
    """The requirements "name==version" of an extra of the project, or with None those of the project itself, under a Python."""
    project = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for requirement in project["dependencies"] if extra is None else project["optional-dependencies"][extra]:
        if own := re.fullmatch(r"msadapter\[([\w-]+)\]", requirement):
            found += pins_of(own[1], python)
        elif pin := applying(requirement, python):
            found.append(pin)
    return found


def applying(requirement: str, python: tuple[int, ...] = sys.version_info[:2]) -> str:
    """The "name==version" of a requirement; "" if its marker, such as "; python_version < '3.11'", leaves out the Python."""
    pin, _, marker = requirement.partition(";")
    return pin.strip() if _accepts(marker, python) else ""


def prepare_venv(extras: tuple[str, ...], logs: Path, progress: Progress) -> bool:
    """Creates or repairs .venv with the project (editable) and its pinned dependencies. False if nothing was to do."""
    stamp = VENV / _MARK
    extras = tuple(sorted(set(extras) | set(_extras_of(stamp))))
    state = _inspect(extras)
    key = digest(json.dumps([extras, pinned(extras), str(ROOT), sys.version]))
    ours = list(sys.version_info[:2])
    if state == {"python": ours, "absent": [], "damaged": []} and Stamp(VENV / "msadapter-stamp.json").holds(
        key
    ):
        return False
    if state is None or state["damaged"] or state["python"] != ours:
        _make_room(progress)
        _create_venv(logs, progress)
    command: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "install",
        "--no-input",
        "--no-compile",  # that would take half of pip's time; see _compile_packages
        "--retries",
        "2",
        "--editable",
        f"{ROOT}[{','.join(extras)}]" if extras else str(ROOT),
    ]
    try:
        with _kernels_beside(logs, progress):
            run(command, logs / "pip.log", progress, clean_environment())
            _compile_packages(extras, logs, progress)
    except ChildError as error:
        raise ConvertError(pip_words(error, "the dependencies could not be installed")) from None
    state = _inspect(extras)
    if state is None or state["absent"] or state["damaged"]:
        raise ConvertError(
            f"the environment {VENV} is incomplete after the installation: {state}. Remove it and run again"
        )
    stamp.write_text(json.dumps(extras), encoding="utf-8")
    Stamp(VENV / "msadapter-stamp.json").write(key)
    return True


@contextmanager
def _kernels_beside(logs: Path, progress: Progress) -> Iterator[None]:
    """Compiles the CPU kernels that need no package, beside pip, which mostly waits or uses one core.

    `build_kernels` takes what is compiled and does the rest, so an error here is reported there.
    """
    command: list[str | Path] = [sys.executable, ROOT / "msadapter" / "_host" / "doctor.py", "kernels"]
    logs.mkdir(parents=True, exist_ok=True)
    with (
        open(logs / "kernels-beside-pip.log", "w", encoding="utf-8") as log,
        subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=clean_environment()
        ) as child,
    ):
        try:
            yield
            progress.note = "the CPU kernels are still compiled"
        except BaseException:
            child.terminate()
            raise


def _compile_packages(extras: tuple[str, ...], logs: Path, progress: Progress) -> None:
    """Compiles to bytecode, on all cores, the packages that many programs read.

    Every `import torch` reads numpy. The whole of MindSpore is read by few programs, but by many of the tests. Python
    compiles the other modules when a program first imports them. Most of these are never imported.
    """
    names = ["numpy", "mindspore"] if "test" in extras else ["numpy"]
    code = """if True:
        import compileall, os, sys, sysconfig
        for name in sys.argv[1:]:
            compileall.compile_dir(os.path.join(sysconfig.get_path("purelib"), name), quiet=2, workers=0)
    """
    command: list[str | Path] = [PYTHON, "-W", "ignore", "-c", code, *names]
    run(command, logs / "compile.log", progress, clean_environment())


def add_packages_beside_torch(logs: Path, progress: Progress) -> bool:
    """Installs accelerate, peft and trl, which name PyTorch itself as theirs, without what they ask for. False if all are there."""
    lines = [line.partition("#")[0] for line in BESIDE_TORCH.read_text(encoding="utf-8").splitlines()]
    pins = dict(pin.split("==") for line in lines if (pin := applying(line)))
    state = _inspect((), pins)
    if state is not None and not state["absent"]:
        return False
    command: list[str | Path] = [PYTHON, "-m", "pip", "install", "--no-input", "--retries", "2", "--no-deps"]
    try:
        run([*command, "--requirement", BESIDE_TORCH], logs / "pip.log", progress, clean_environment())
    except ChildError as error:
        raise ConvertError(
            pip_words(error, f"the packages of {BESIDE_TORCH} could not be installed")
        ) from None
    return True


def build_kernels(logs: Path, progress: Progress) -> bool:
    """Builds the CPU kernels. The package caches them by the hash of their sources, and so does the stamp here."""
    sources = [
        path
        for path in (
            ROOT / "msadapter" / "csrc",
            *(ROOT / "msadapter" / "_host" / f"{name}.py" for name in ("native", "instructions")),
        )
        if path.exists()
    ]
    key = digest(*sources, json.dumps(pinned(())), sys.version)
    stamp = Stamp(VENV / "msadapter-kernels.json")
    if stamp.holds(key):
        return False
    check_compiler()
    # Run the file by its path, because importing the package would load the kernels, which are not built yet.
    command: list[str | Path] = [PYTHON, ROOT / "msadapter" / "_host" / "doctor.py", "build"]
    try:
        output = run(command, logs / "kernels.log", progress, clean_environment())
    except ChildError as error:
        raise ConvertError(f"the CPU kernels could not be built:\n{error.tail()}") from None
    library = Path(output.strip().splitlines()[-1])
    if not library.is_file():
        raise ConvertError(f"the build of the CPU kernels produced no library: {output.strip()[-300:]}")
    stamp.write(key, [library])
    return True


def pip_download(requirement: str, folder: Path, logs: Path, progress: Progress) -> None:
    """Downloads the wheel of a requirement into the folder."""
    command: list[str | Path] = [
        PYTHON,
        "-m",
        "pip",
        "download",
        "--no-input",
        "--retries",
        "2",
        "--no-deps",
        "--only-binary=:all:",
        "--dest",
        folder,
        requirement,
    ]
    try:
        run(command, logs / "download.log", progress, clean_environment())
    except ChildError as error:
        raise ConvertError(pip_words(error, f"{requirement} could not be downloaded")) from None


def pip_words(error: ChildError, what: str) -> str:
    """The message for a failed pip command."""
    if _NO_NETWORK.search(error.output):
        hint = "no package index could be reached, or it lacks a package: look at the network, or at pip's settings"
    else:
        hint = "pip's last lines"
    return f"{what}: {hint}\n{error.tail(6)}"


def _make_room(progress: Progress) -> None:
    """Remove a broken environment that this program made. One that it did not make is renamed and kept."""
    if not os.path.lexists(VENV):
        return
    progress.note = "the environment is broken: starting it anew"
    if not VENV.is_symlink() and (VENV / _MARK).is_file():
        shutil.rmtree(VENV)
    else:
        keep_aside(VENV)


def _create_venv(logs: Path, progress: Progress) -> None:
    VENV.mkdir()
    (VENV / _MARK).write_text("[]", encoding="utf-8")  # first of all: it tells that the folder is ours
    try:
        run([sys.executable, "-m", "venv", VENV], logs / "venv.log", progress, clean_environment())
    except ChildError as error:
        raise ConvertError(f"the virtual environment {VENV} could not be created:\n{error.tail()}") from None


def _extras_of(path: Path) -> list[str]:
    try:
        return [str(extra) for extra in json.loads(path.read_text(encoding="utf-8"))]
    except (OSError, ValueError, TypeError):
        return []


def _inspect(extras: tuple[str, ...], further: dict[str, str] | None = None) -> dict | None:
    """What the environment lacks of these extras and further packages; None if its python does not run."""
    if not PYTHON.exists():
        return None
    wanted = json.dumps(pinned(extras) | (further or {}) | {"msadapter": "", "pip": ""})
    try:
        answer = subprocess.run(
            [PYTHON, "-c", _INSPECT, wanted],
            env=clean_environment(),
            cwd=VENV,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return json.loads(answer.stdout) if answer.returncode == 0 else None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
