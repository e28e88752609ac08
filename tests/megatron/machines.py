"""Runs of the toolkit on several machines, which are launchers on the loopback address, each with a memory of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from megatron_ms.monitor import events, outputs
from megatron_ms.recovery import memory
from tests.distributed.ranks import left
from tests.megatron import lm_checkout as tools
from tests.megatron import shared_memory
from tests.megatron.faulty_runs import PATIENCE, Run, Toy
from tests.ports import free_port


@dataclass
class Machine:
    """What one machine runs. mark: of its processes."""

    number: int
    mark: str
    process: subprocess.Popen[str]

    def lose(self, run: Path) -> None:
        """The machine fails: its processes end at once, and its memory is lost."""
        while found := left(self.mark):
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    continue
        self.process.wait()
        shutil.rmtree(memory.place_for(run, self.number))


@dataclass
class Machines:
    """Machines with one rank each, which share a disk."""

    toy: Toy
    name: str
    count: int = 2
    running: dict[int, Machine] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.port = free_port()
        self._shared = shared_memory.entries()
        self.run = (self.toy.folder / self.name / "together").absolute()

    def start(self, number: int, *words: str) -> None:
        """Starts the toolkit on a machine."""
        place = self.toy.folder / f"{self.name}.yaml"
        run = {"processes": 1, "nodes": self.count, "port": self.port, "id": "together"}
        place.write_text(yaml.safe_dump(self.toy.settings(self.name, **run)))
        mark = f"machine-{os.getpid()}-{number}-{time.monotonic_ns()}"
        clean = {
            key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "FAULT")
        }
        command = [
            sys.executable,
            "-m",
            "megatron_ms",
            "train",
            str(place),
            f"run.node_rank={number}",
            *words,
        ]
        log = open(self.toy.folder / f"{self.name}-{number}.log", "a")  # noqa: SIM115  the process writes to it
        process = subprocess.Popen(
            command,
            env=clean | {"MSADAPTER_TEST_JOB": mark},
            cwd=tools.ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
            text=True,
        )
        log.close()
        self.running[number] = Machine(number, mark, process)

    def reached(self, iteration: int, ranks: int | None = None) -> int:
        """Waits until so many steps are done, the last of them on so many ranks, and returns how many are done then."""
        end = time.monotonic() + PATIENCE
        while True:
            lines = [one for one in events.read(self.run, outputs.MEASURED) if one["iteration"] >= iteration]
            if lines and ranks in (None, len(lines[-1]["ranks"])):
                return int(lines[-1]["iteration"])
            assert time.monotonic() < end, self.output()
            for machine in self.running.values():
                assert machine.process.poll() is None, self.output()
            time.sleep(0.02)

    def ended(self) -> Run:
        """Waits for the end on all machines."""
        codes = [machine.process.wait(PATIENCE) for machine in self.running.values()]
        lines = {line["iteration"]: line for line in events.read(self.run, outputs.MEASURED)}
        remains = [str(pid) for machine in self.running.values() for pid in left(machine.mark)]
        remains += shared_memory.left_since(self._shared, memory.place_for(self.run).name)
        told = (lines, events.read(self.run), remains)
        return Run(max(codes), self.output(), self.run, *told, load=os.getloadavg()[0])

    def output(self) -> str:
        files = sorted(self.toy.folder.glob(f"{self.name}-*.log"))
        return "\n".join(f"{file.name}:\n{file.read_text()[-3000:]}" for file in files)
