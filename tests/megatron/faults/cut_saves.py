"""Ends processes at random bytes of a save, and loads what a run would go on from: cut_saves.py FORMAT COUNT FOLDER SEED

Each process is a fork, and its save is a real one by torch.save or torch.distributed.checkpoint. Either the kernel ends it by
SIGXFSZ when one of the files that it writes, chosen at random, has so many bytes (RLIMIT_FSIZE). The manifest is one of them. Or
the process ends itself by SIGKILL when it opens or renames for the n-th time. Prints a JSON object with what was counted.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
import torch.distributed.checkpoint as dcp

from megatron_ms.recovery import apart, manifest


def state(number: int) -> dict[str, torch.Tensor]:
    """What a checkpoint of this number has."""
    generator = torch.Generator().manual_seed(number)
    return {f"layer.{i}": torch.rand(37 + 8 * i, 16, generator=generator) for i in range(6)}


def save(kind: str, place: Path, number: int) -> None:
    """Saves in a format of upstream's, and then the manifest."""
    place.mkdir(exist_ok=True)
    if kind != "torch_dist":
        for part in ("mp_rank_00", "mp_rank_01"):
            (place / part).mkdir(exist_ok=True)
            with apart.writing() if kind == "safetensors" else contextlib.nullcontext():
                torch.save({"model": STATES[number]}, place / part / "model_optim_rng.pt")
    else:
        dcp.save(STATES[number], checkpoint_id=str(place), no_dist=True)
    manifest.write(place, manifest.measure(place))


def load(kind: str, place: Path) -> list[dict[str, torch.Tensor]]:
    if kind == "safetensors":
        with apart.reading():
            files = sorted(place.glob("*/model_optim_rng.pt"))
            return [torch.load(file, weights_only=False)["model"] for file in files]
    if kind == "torch":
        return [torch.load(file)["model"] for file in sorted(place.glob("*/model_optim_rng.pt"))]
    found = {name: torch.zeros_like(tensor) for name, tensor in STATES[10].items()}
    dcp.load(found, checkpoint_id=str(place), no_dist=True)
    return [found]


_TEMPORARY = re.compile(r"\.(?P<part>.+?)\.\w+(\.torch-save)?\.part|(?P<whole>.+)\.tmp")


def written(place: Path, event: str, arguments: tuple[Any, ...]) -> str:
    """The name of a file of the checkpoint that an audit event opens for writing, "" for all else.

    Files are written under temporary names and renamed. The name is the one that the file is to get.
    """
    if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
        return ""
    path, flags = Path(os.fsdecode(arguments[0])), arguments[2]
    if not flags & (os.O_WRONLY | os.O_RDWR) or place not in path.parents:
        return ""
    temporary = _TEMPORARY.fullmatch(path.name)
    name = (temporary["part"] or temporary["whole"]) if temporary else path.name
    return path.with_name(name).relative_to(place).as_posix()


def files_of(kind: str, place: Path) -> list[tuple[str, int]]:
    """The files that a save opens for writing, in their order, with their sizes in bytes."""
    opened: list[str] = []
    active = True

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if active and (name := written(place, event, arguments)):
            opened.append(name)

    sys.addaudithook(hook)
    save(kind, place, 10)
    active = False  # a hook stays until the process ends
    return [(name, (place / name).stat().st_size) for name in opened]


def ended_at_bytes(place: Path, which: int, most: int, tell: int) -> None:
    """When the file with this number is opened for writing, no file can get more than `most` bytes. Its name goes to a pipe."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    opened = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal opened
        if name := written(place, event, arguments):
            if opened == which:
                os.write(tell, name.encode())
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            opened += 1

    sys.addaudithook(hook)


def killed_at_call(most: int) -> None:
    """Between two files: at the n-th call that opens, flushes or renames one."""
    calls = 0

    def hook(event: str, _: object) -> None:
        nonlocal calls
        if event in ("open", "os.rename", "os.mkdir", "os.chmod"):
            calls += 1
            if calls == most:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def announce_safetensors() -> None:
    """Lets safetensors, which opens its files without Python, tell of it as Python does."""
    write = safetensors.torch.save_file

    def save_file(tensors: Any, name: Any, **named: Any) -> None:
        sys.audit("open", os.fspath(name), "wb", os.O_WRONLY)
        write(tensors, name, **named)

    safetensors.torch.save_file = save_file


STATES = {number: state(number) for number in (10, 20)}


def ended(kind: str, place: Path, files: list[tuple[str, int]], chances: random.Random) -> str:
    """Ends a save. Returns where: the name of a file, "a call", or "" if the save was finished before."""
    which = chances.randrange(len(files)) if chances.random() < 0.8 else None
    heard, tell = os.pipe()
    most = 1 + chances.randrange(25) if which is None else chances.randrange(files[which][1])
    child = os.fork()
    if child == 0:
        if which is None:
            killed_at_call(most)
        else:
            ended_at_bytes(place, which, most, tell)
        save(kind, place, 20)
        os._exit(0)
    os.close(tell)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(heard, encoding="utf-8") as opened:
        name = opened.read()
    if which is None:
        assert code in (0, -signal.SIGKILL), code
        return "a call" if code else ""
    assert (code, name) == (-signal.SIGXFSZ, files[which][0]), (code, name, files[which], most)
    return name


def main() -> None:
    kind, count, folder, seed = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    chances, found, where = random.Random(seed), collections.Counter[str](), collections.Counter[str]()
    announce_safetensors()
    files = files_of(kind, manifest.place_of(folder, 10))
    for _ in range(count):
        place = ended(kind, manifest.place_of(folder, 20), files, chances)
        chosen = manifest.choose(folder).iteration
        parts = load(kind, manifest.place_of(folder, chosen))
        right = all(
            torch.equal(part[name], tensor) for part in parts for name, tensor in STATES[chosen].items()
        )
        found["ended" if place else "finished"] += 1
        where[place] += bool(place)
        found[f"loaded {chosen}"] += 1
        found["corrupt"] += not (parts and right)
        shutil.rmtree(manifest.place_of(folder, 20), ignore_errors=True)
    print(
        json.dumps(
            {
                "corrupt": 0,
                **found,
                "where": {name: where[name] for name, _ in files} | {"a call": where["a call"]},
            }
        )
    )


if __name__ == "__main__":
    main()
