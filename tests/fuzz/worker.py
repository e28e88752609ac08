"""Loads cases one after the other: `python -m tests.fuzz.worker SEED FIRST LAST FOLDER`.

Before a case its number is written to FOLDER/now, so that the parent knows what a crash or a hang was. What else is
wrong is a line in FOLDER/found: a file written, a call of what runs programs, memory taken, a tensor that reaches behind
its storage, an exception that is not the loader's.
"""

from __future__ import annotations

import io
import os
import pickle
import resource
import sys
import time  # noqa: F401  (probes use it)
import traceback
from pathlib import Path

from . import cases

LIMIT = 6 << 30  # bytes of address space
MOST_MEMORY = 300 << 20  # bytes that one case may take
# Events of a running program that no checkpoint may cause. Modules of this package are read lazily, so reading is fine.
FORBIDDEN = ("os.system", "os.exec", "os.fork", "os.posix_spawn", "subprocess.", "socket.", "exec", "os.remove", "os.rename",
             "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate", "shutil.", "ctypes.dlopen")  # fmt: skip
REFUSED = (RuntimeError, pickle.UnpicklingError, EOFError)


class Watch:
    """Records what happens in the process while a case is loaded."""

    def __init__(self):
        self.on, self.seen = False, []
        sys.addaudithook(self._hear)

    def _hear(self, event, args):
        if not self.on:
            return
        if event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+"):
            self.seen.append(f"open({args[0]!r}, {args[1]!r})")
        elif (
            event == "open"
            and args[1] is None
            and isinstance(args[2], int)
            and args[2] & (os.O_WRONLY | os.O_RDWR)
        ):
            self.seen.append(f"os.open({args[0]!r})")
        elif event.startswith(FORBIDDEN) and not (event == "exec" and _of_an_import(args)):
            self.seen.append(event)


def _of_an_import(args) -> bool:
    """Whether the running code is that of an installed module, or is compiled by dataclasses and named tuples."""
    name = getattr(args[0], "co_filename", "")
    return name.endswith(".py") or name.startswith("<")


def problems_of(found, weights_only: bool = True) -> list:
    """What is wrong with the tensors in a loaded object. Each tensor is read completely if it is not too large.

    An ordinary pickle (weights_only=False) may put anything into any attribute, so errors of operators are not problems then.
    """
    no_matter = (RuntimeError, TypeError, IndexError, ValueError) if weights_only else (Exception,)
    import msadapter as torch

    out, waiting, seen = [], [found], set()
    while waiting:
        obj = waiting.pop()
        if id(obj) in seen or len(seen) > 10_000:
            continue
        seen.add(id(obj))
        if isinstance(obj, dict):
            waiting += [*obj.keys(), *obj.values(), *getattr(obj, "__dict__", {}).values()]
        elif isinstance(obj, (list, tuple, set, frozenset)):
            waiting += list(obj)
        elif isinstance(obj, torch.Tensor):
            out += _outside(obj)
            waiting += list(vars(obj).values())
            if not out:
                _use(obj, no_matter)
    return out


def _outside(x) -> list:
    if x.layout._name != "strided":
        return []
    if x.is_meta:
        return []
    need = x.storage_offset()
    for n, s in zip(x.shape, x.stride(), strict=True):
        if n < 0 or s < 0:
            return [f"a tensor of sizes {list(x.shape)} and strides {x.stride()}"]
        need += (n - 1) * s
    need = 0 if 0 in x.shape else (need + 1) * x.dtype.itemsize
    have = x.untyped_storage().nbytes()
    return (
        [f"a tensor of {need} bytes over a storage of {have}"]
        if need > have or x.storage_offset() < 0
        else []
    )


def _peak_memory() -> int:
    """The peak memory of this process, in bytes.

    getrusage cannot be used, because its value begins with the size of the process that started this one.
    """
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) << 10 for line in file if line.startswith("VmHWM"))


def _use(x, no_matter: tuple) -> None:
    """Read and write every element. The errors in `no_matter`, with which operators refuse a tensor, are ignored."""
    try:
        if not 0 <= x.numel() <= 100_000 or x.is_meta or len(x.shape) > 16:
            return
        x = x.detach()
        if x.layout._name == "strided":
            x.clone()
            x.zero_()
        else:
            x.to_dense()
            (x + x).to_dense()
    except no_matter as err:
        if isinstance(err, SystemError):  # C code that forgot an error
            raise


def load(case: cases.Case, folder: Path):
    """Load the case as a program would."""
    import msadapter as torch

    if case.kind == "folder":
        import msadapter.distributed.checkpoint as dcp

        for name, content in case.content.items():
            (folder / name).write_bytes(content)
        WATCH.on = True
        state = {"a": torch.zeros(4)}
        dcp.load(state, checkpoint_id=folder)
        return state
    if case.kind == "safetensors":
        from safetensors.torch import load as load_safetensors

        WATCH.on = True
        return load_safetensors(case.content)
    if case.mmap:
        (folder / "file").write_bytes(case.content)
        WATCH.on = True
        return torch.load(folder / "file", mmap=True, weights_only=case.weights_only)
    WATCH.on = True
    return torch.load(io.BytesIO(case.content), weights_only=case.weights_only)


def allowed(case: cases.Case, err: BaseException) -> bool:
    """Whether a loader may raise this error for a damaged file."""
    if isinstance(err, REFUSED) or not case.weights_only:
        return isinstance(err, Exception) and not isinstance(err, SystemError)  # C code that forgot an error
    return type(err).__name__ in ("SafetensorError", "CheckpointException") or (
        case.kind == "safetensors" and isinstance(err, (KeyError, ValueError, TypeError))
    )


def run(seed: int, number: int, folder: Path) -> list:
    """Load one case, and return what is wrong."""
    case = cases.make(seed, number)
    before, memory = sorted(os.listdir(".")), _peak_memory()
    out, found = [], None
    WATCH.seen.clear()
    try:
        if PROBE:
            WATCH.on = True
            exec(PROBE)
            WATCH.on = False
        found = load(case, folder)
    except BaseException as err:
        WATCH.on = False
        if not allowed(case, err):
            out.append("".join(traceback.format_exception(err))[-1500:])
    WATCH.on = False
    out += [f"did {what}" for what in WATCH.seen]
    out += problems_of(found, case.weights_only)
    if sorted(os.listdir(".")) != before:
        out.append(f"wrote {set(os.listdir('.')) - set(before)}")
    grown = _peak_memory() - memory
    if grown > MOST_MEMORY:
        out.append(f"took {grown >> 20} MB")
    return out


WATCH = Watch()
PROBE = os.environ.get("MSADAPTER_FUZZ_PROBE")  # what the test of this harness lets go wrong in every case


def main(seed: int, first: int, last: int, folder: Path) -> None:
    import warnings

    warnings.simplefilter("ignore")
    import msadapter
    import msadapter.distributed.checkpoint

    msadapter.install()  # safetensors imports torch
    msadapter.zeros(3).to_sparse().to_dense()
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    work, empty = folder / "work", folder / "empty"
    work.mkdir(exist_ok=True)
    empty.mkdir(exist_ok=True)
    os.chdir(empty)
    now = os.open(folder / "now", os.O_RDWR | os.O_CREAT)
    with open(folder / "found", "a", buffering=1) as report:
        for number in range(first, last):
            os.pwrite(now, f"{number:<20}".encode(), 0)
            for what in run(seed, number, work):
                report.write(f"{number}\t{what!r}\n")
    os.pwrite(now, f"{'done':<20}".encode(), 0)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]).resolve())
