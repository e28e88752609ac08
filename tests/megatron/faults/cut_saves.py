"""Kills processes at random bytes of a save, and loads what a run would go on from: cut_saves.py FORMAT COUNT FOLDER SEED

Each process is a fork, and its save is a real one by torch.save or torch.distributed.checkpoint. The kernel kills it when a
file reaches the chosen size (RLIMIT_FSIZE), or it kills itself when it opens or renames for the n-th time. Prints a JSON object.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sys
from pathlib import Path

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


def killed_at_bytes(most: int) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


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


STATES = {number: state(number) for number in (10, 20)}


def main() -> None:
    kind, count, folder, seed = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    chances, found = random.Random(seed), collections.Counter[str]()
    save(kind, manifest.place_of(folder, 10), 10)
    largest = max(file.stat().st_size for file in manifest.place_of(folder, 10).rglob("*") if file.is_file())
    for _ in range(count):
        at_bytes, most = chances.random() < 0.8, chances.randrange(1, largest + 200)
        child = os.fork()
        if child == 0:
            killed_at_bytes(most) if at_bytes else killed_at_call(1 + most % 25)
            save(kind, manifest.place_of(folder, 20), 20)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL, -signal.SIGXFSZ), code
        chosen = manifest.choose(folder).iteration
        parts = load(kind, manifest.place_of(folder, chosen))
        right = all(
            torch.equal(part[name], tensor) for part in parts for name, tensor in STATES[chosen].items()
        )
        found["killed" if code else "finished"] += 1
        found[f"loaded {chosen}"] += 1
        found["corrupt"] += not (parts and right)
        shutil.rmtree(manifest.place_of(folder, 20), ignore_errors=True)
    print(json.dumps({"corrupt": 0, **found}))


if __name__ == "__main__":
    main()
