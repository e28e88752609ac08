"""Reports what is installed and built, and how to repair what is wrong.

Run `python -m msadapter doctor`. If msadapter itself cannot be imported, run `python msadapter/_host/doctor.py`.
This file needs the standard library only. Everything that may fail or hang runs in a child process.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

PACKAGE = Path(__file__).resolve().parents[1]
NEEDED = {"mindspore": "2.10.0", "numpy": "1.26.4"}
USEFUL = ("safetensors", "sentencepiece", "libcst", "tensorboard", "mpi4py", "transformers")


@dataclass(frozen=True)
class Check:
    """One line of the report. ``fix`` is empty if nothing is wrong. A note (wrong=False) is not a failure."""

    name: str
    value: str
    wrong: bool = False
    fix: str = ""


def main(arguments: list[str]) -> int:
    """Print the report. Return 0 if torch programs can run, and 1 if something is wrong."""
    if arguments:
        print("python -m msadapter doctor takes no arguments", file=sys.stderr)
        return 2
    wrong = []
    for check in _all_checks():
        print(*_lines(check), sep="\n", flush=True)
        if check.wrong:
            wrong.append(check.name)
    if wrong:
        print(f"\n{len(wrong)} wrong: {', '.join(wrong)}. The lines with -> say what to do.")
        return 1
    print("\nAll is well.")
    return 0


def machine() -> dict[str, str]:
    """Return the lines of the report on Python, the machine and the compiler, by name."""
    return {check.name: check.value for check in (*_python(), *_compiler())}


def report() -> list[str]:
    """Return the report as lines of text. It takes some seconds, because a new process imports torch."""
    return [line for check in _all_checks() for line in _lines(check)]


def _lines(check: Check) -> list[str]:
    lines = [f"  {'WRONG' if check.wrong else 'ok   '}  {check.name:18s} {check.value}"]
    return [*lines, f"         {'':18s} -> {check.fix}"] if check.fix else lines


def build() -> int:
    """Build the CPU kernels if necessary, and print the path of the library as the last line."""
    try:
        print(_native().build(verbose=True, thorough=True))
    except RuntimeError as error:
        print(f"msadapter build: {error}", file=sys.stderr)
        return 1
    return 0


def kernels() -> int:
    """Compile those CPU kernels that need no other package, for a later `build`."""
    try:
        _native().compile_kernels()
    except RuntimeError as error:
        print(f"msadapter kernels: {error}", file=sys.stderr)
        return 1
    return 0


def _all_checks() -> Iterator[Check]:
    steps: tuple[Callable[[], Iterator[Check]], ...] = (
        _python,
        _packages,
        _compiler,
        _kernels,
        _cache,
        _device,
        _toolkit,
        _torch_name,
        _first_steps,
    )
    for step in steps:
        try:
            yield from step()
        # a check that fails must not stop the doctor; its error becomes part of the report
        except Exception as error:
            yield Check(step.__name__.strip("_"), f"{type(error).__name__}: {error}", wrong=True)


def _python() -> Iterator[Check]:
    right = (3, 10) <= sys.version_info[:2] <= (3, 12)
    yield Check(
        "python",
        f"{platform.python_version()} {sys.executable}",
        not right,
        ""
        if right
        else "MindSpore 2.10 is proven with Python 3.10, 3.11 and 3.12: make the environment with one of them",
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield Check("machine", f"{platform.system()} {platform.machine()}, {cores} cores for this process")


def _packages() -> Iterator[Check]:
    version = _version_of("msadapter")
    yield Check("msadapter", f"{version or 'not installed, used in place'} {PACKAGE}")
    for name, wanted in NEEDED.items():
        found = _version_of(name)
        yield Check(
            name,
            found or "absent",
            found != wanted,
            "" if found == wanted else f"pip install {name}=={wanted}",
        )
    optional = [f"{name} {found}" for name in USEFUL if (found := _version_of(name))]
    yield Check("also there", ", ".join(optional) or "none")


def _compiler() -> Iterator[Check]:
    try:
        path = _native().compiler()
    except RuntimeError as error:
        yield Check("compiler", "absent", not _is_built(), str(error))
        return
    answer = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    yield Check("compiler", f"{path}: {answer.stdout.splitlines()[0] if answer.stdout else 'no answer'}")


def _kernels() -> Iterator[Check]:
    try:
        packaged = _native().packaged_library()
        path = packaged or _native().library_path()
    except RuntimeError as error:
        yield Check("CPU kernels", "unknown", True, str(error))
        return
    if packaged:
        yield from _packaged_kernels(path)
        return
    cache, mend = _native().cache, "python -m msadapter build builds them again (the next import does so too)"
    if reason := cache.why_untrusted(path):
        yield Check(
            "CPU kernels", f"not safe: {reason}", True, "nothing is loaded from there; mend that first"
        )
    elif not path.exists():
        yield Check(
            "CPU kernels", "not built for these sources", True, "python -m msadapter build (some minutes)"
        )
    elif reason := cache.why_damaged(path, thorough=True):
        yield Check("CPU kernels", reason, True, mend)
    else:
        yield Check("CPU kernels", f"built and whole, {path} ({path.stat().st_size / 1e6:.1f} MB)")
        operators = _native().operators_path(path)
        if operators.exists() and (reason := cache.why_damaged(operators, thorough=True)):
            yield Check("MindSpore kernels", reason, True, mend)


def _packaged_kernels(path: Path) -> Iterator[Check]:
    """The libraries that the package brings. That of the kernels has been compared with its hash already."""
    packaged = _native().packaged
    size = path.stat().st_size / 1e6
    yield Check(
        "CPU kernels", f"whole, the package's for {packaged.instruction_set(path)}, {path} ({size:.1f} MB)"
    )
    try:
        packaged.operators()
    except RuntimeError as error:
        yield Check("MindSpore kernels", "damaged", True, str(error))


def _cache() -> Iterator[Check]:
    native = _native()
    cache_limit, root = native.cache_limit, native.cache_root()
    try:
        most = cache_limit.limit()
    except RuntimeError as error:
        yield Check("cache", str(root), True, str(error))
        return
    size = sum(entry.size for entry in cache_limit.entries(root))
    yield Check(
        "cache",
        f"{root}: {size / 1e9:.1f} GB, at most {most / 1e9:g} GB after a build ({cache_limit.VARIABLE})",
    )


def _device() -> Iterator[Check]:
    asked = os.environ.get("MSADAPTER_DEVICE")
    cards = sorted(str(path) for path in Path("/dev").glob("davinci[0-9]*"))
    yield Check(
        "device", f"{len(cards)} Ascend cards" if cards else "no Ascend card: the accelerator is this CPU"
    )
    yield from _simulated_npu()
    valid = asked in (None, "cpu", "cuda", "npu") or (asked == "ascend" and bool(cards))
    yield Check(
        "MSADAPTER_DEVICE",
        asked or "not set",
        not valid,
        "" if valid else "set it to cuda, npu or cpu (ascend on a machine with an Ascend card), or unset it",
    )


def _simulated_npu() -> Iterator[Check]:
    """Whether a run would use the simulated NPU, and whether it is built."""
    name = "MSADAPTER_SIMULATED_NPU"
    asked = os.environ.get(name, "")
    simulator = _sibling("simulator")
    try:
        folder = simulator.home()
    except RuntimeError as error:  # its place depends on the compiler
        yield Check("simulated NPU", f"cannot be built: {error}", asked == "1")
        return
    reason = simulator.why_not_ready(folder)
    state = reason or f"it is built, {folder}"
    if asked == "1":
        yield Check(
            "NPU", f"SIMULATED: no result, speed or memory figure is one of a device. {state}", wrong=False
        )
    elif asked not in ("", "0"):
        yield Check("NPU", f"{name} is {asked!r}", True, "set it to 1 for the SIMULATED NPU, or unset it")
    else:
        fix = "python -m msadapter --simulated-npu PROGRAM builds it, if you want it" if reason else ""
        yield Check("simulated NPU", f"off; {state}", fix=fix)


def _toolkit() -> Iterator[Check]:
    """The toolkit: conversions, packages that must not mix, Ray."""
    for line in _sibling("doctor_toolkit").lines():
        yield Check(*line)


def _torch_name() -> Iterator[Check]:
    spec = importlib.util.find_spec("torch")
    origin = Path(spec.origin).resolve() if spec and spec.origin else None
    if origin is None:
        yield Check(
            "import torch",
            "finds nothing by itself; with `python -m msadapter`, env.sh or `python -m msadapter enable` it finds msadapter",
        )
    elif origin.is_relative_to(PACKAGE):
        yield Check("import torch", "finds msadapter")
    else:
        yield Check(
            "import torch",
            f"finds another torch, {origin.parent}",
            fix="`python -m msadapter` and env.sh still put msadapter first; plain python does not",
        )


def _first_steps() -> Iterator[Check]:
    """Compute a sum and a gradient and time `import torch`, in a new process."""
    if not _is_built():
        yield Check(
            "first steps", "not tried: the CPU kernels are not ready", True, "see the line of the CPU kernels"
        )
        return
    program = (
        "import time; began = time.perf_counter(); import msadapter; msadapter.install(); import torch\n"
        "took = time.perf_counter() - began\n"
        "x = torch.ones(2, 3, requires_grad=True); (x * 2 + 1).sum().backward()\n"
        "assert x.grad.tolist() == [[2.0] * 3] * 2, x.grad\n"
        "print(f'torch {torch.__version__} imported in {took:.1f} s; a sum and its gradient are right')"
    )
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(PACKAGE.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    }
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        cwd=PACKAGE.parent,  # Python searches the working directory first, which may have a folder named torch
        capture_output=True,
        text=True,
        timeout=900,
    )
    if answer.returncode == 0:
        yield Check("first steps", answer.stdout.strip().splitlines()[-1])
    else:
        words = answer.stderr.strip().splitlines()
        yield Check(
            "first steps",
            words[-1] if words and answer.returncode > 0 else _ended(answer.returncode),
            True,
            "the lines above first; then python -c 'import msadapter' shows the whole error",
        )


def _ended(code: int) -> str:
    """A text that says how a process has ended."""
    return f"ended by signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _native() -> ModuleType:
    """Return the module msadapter._host.native, even if the package msadapter cannot be imported."""
    if "msadapter._host.native" in sys.modules:
        return sys.modules["msadapter._host.native"]
    folder = PACKAGE / "_host"
    name = "_msadapter_host"  # a stand-in for the package, so that its modules find each other
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        if spec is None or spec.loader is None:
            raise RuntimeError(f"{folder} is missing: install msadapter again")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return importlib.import_module(f"{name}.native")


def _sibling(name: str) -> ModuleType:
    """Another module of this folder, even if the package msadapter cannot be imported."""
    return importlib.import_module(f"{_native().__package__}.{name}")


def _is_built() -> bool:
    try:
        if _native().packaged_library():
            return True
        path, cache = _native().library_path(), _native().cache
        return path.exists() and not cache.why_untrusted(path) and not cache.why_damaged(path)
    except RuntimeError:
        return False


def _version_of(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


if __name__ == "__main__":
    # The modules of this folder must not be importable as top-level modules.
    sys.path[:] = [place for place in sys.path if place != str(Path(__file__).resolve().parent)]
    steps = {"build": build, "kernels": kernels}
    sys.exit(steps[sys.argv[1]]() if len(sys.argv) == 2 and sys.argv[1] in steps else main(sys.argv[1:]))
