"""Runs of the toolkit with injected faults, and what they leave behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from megatron_ms import commands
from megatron_ms.models.prove_megatron import make_tokenizer
from megatron_ms.monitor import events, outputs
from megatron_ms.recovery import manifest, memory
from megatron_ms.training import folder as folders
from megatron_ms.upstream import trees
from tests.distributed.ranks import left
from tests.megatron import lm_checkout as tools
from tests.megatron import shared_memory

INJECTOR = Path(__file__).with_name("faults")
ITERATIONS, INTERVAL = 12, 4
PATIENCE = 900  # seconds after which a run is given up; many times what it takes
_SCHEDULE: dict[str, Any] = {
    "train": {"iterations": ITERATIONS, "global_batch": 4, "lr": 1e-3},
    "save": {"interval": INTERVAL},
    "recovery": {"restarts": 2, "backoff": 0.1},
}
_SIZES: dict[str, Any] = {"num_layers": 2, "hidden_size": 32, "num_attention_heads": 4}
# MindSpeed-LLM has no random data, and its recipe no dropout.
_QWEN: dict[str, Any] = {
    "ffn_hidden_size": 64, "num_query_groups": 2, "vocab_size": 256, "max_position_embeddings": 64,
    "hidden_dropout": 0.1, "attention_dropout": 0.1,
}  # fmt: skip


@dataclass(frozen=True)
class Run:
    """A run that has ended.

    records: the last one of each iteration. left: processes and shared memory that remain. marks: the folder in which injected
    faults leave files. load: how many processes wanted to run on average in the minute before its end.
    """

    code: int
    output: str
    folder: Path
    records: dict[int, dict[str, Any]] = field(repr=False)
    events: list[dict[str, Any]] = field(repr=False)
    left: list[str] = field(default_factory=list)
    marks: Path | None = None
    load: float = 0.0

    def curve(self) -> list[tuple[float, float]]:
        """Loss and gradient norm of all iterations, with all digits."""
        return [(one["loss"], one["grad norm"]) for _, one in sorted(self.records.items())]

    def logged(self, *more: str) -> dict[int, dict[str, float]]:
        """The learning rate and the norm of all iterations, and further numbers, as upstream's log has them.

        The "lm loss" of core_v0.16.1 is in its second line after a start the mean of two steps.
        """
        names = ("learning rate", "grad norm", *more)
        lines = folders.RunFolder(self.folder).records()
        return {line["iteration"]: {name: line[name] for name in names} for line in lines if "of" in line}

    def told(self, kind: str) -> list[str]:
        return [event["text"] for event in self.events if event["kind"] == kind]

    def lost(self) -> int:
        """Finished steps that had to be computed again after a failure."""
        lines = events.read(self.folder, outputs.MEASURED)
        return len(lines) - len(self.records)

    def fault_time(self) -> float | None:
        """When the first fault was injected; None without one."""
        found = [] if self.marks is None else [mark.stat().st_mtime for mark in self.marks.glob("*-*")]
        return min(found, default=None)

    def recovery(self) -> float | None:
        """Seconds from the first fault to the first step after it."""
        began = self.fault_time()
        steps = [event["time"] for event in self.events if event["kind"] == "step"]
        return None if began is None else next((when - began for when in steps if when > began), None)

    def start(self) -> float:
        """Seconds that the first attempt needed from its begin to its first step."""
        times = {
            kind: [one["time"] for one in self.events if one["kind"] == kind] for kind in ("attempt", "step")
        }
        return times["step"][0] - times["attempt"][0]


class Toy:
    """A folder with the configuration of a toy model on two ranks. tree: a checkout of Megatron-LM."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.folder, self.tree = folder, tree
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def megatron(self) -> Path:
        """The tree of Megatron-LM, into which faults are injected."""
        return self.tree

    def settings(self, name: str, **run: Any) -> dict[str, Any]:
        """The configuration. run: further settings of the section of this name."""
        model = {**_SIZES, "vocab_size": 4096}
        run |= {"trees": [str(self.tree)], "folder": str(self.folder)}
        return {
            "name": name,
            "run": run,
            "model": model,
            "dataset": {"mock": True, "sequence_length": 32},
            **_SCHEDULE,
        }

    def run(
        self,
        *words: str,
        fault: dict[str, Any] | None = None,
        processes: int = 2,
        name: str = "run",
        patience: float = PATIENCE,
        before: Sequence[str] = (),
    ) -> Run:
        """Trains with KEY=VALUE and a fault. A second run of the same name begins in another folder.

        before: words of a command that starts the toolkit.
        """
        content = self.settings(name, processes=processes)
        place = self.folder / f"{name}.yaml"
        place.write_text(yaml.safe_dump(content))
        mark = f"fault-{os.getpid()}-{time.monotonic_ns()}"
        shared = shared_memory.entries()
        done = subprocess.run(
            [*before, sys.executable, "-m", "megatron_ms", "train", str(place), *words],
            env=self._environment(mark, fault, name),
            cwd=tools.ROOT,
            capture_output=True,
            text=True,
            timeout=patience,
        )
        found = folders.runs(self.folder, name)
        assert found, done.stdout + done.stderr
        chosen = found[-1].path
        lines = {line["iteration"]: line for line in events.read(chosen, outputs.MEASURED)}
        remains = _remaining(mark) + shared_memory.left_since(shared, memory.place_for(chosen).name)
        marks = None if fault is None else self._marks(name)
        told = (lines, events.read(chosen), remains, marks, os.getloadavg()[0])
        return Run(done.returncode, done.stdout + done.stderr, chosen, *told)

    def _marks(self, name: str) -> Path:
        """Where the faults of a run leave files."""
        return self.folder / f"marks-{name}"

    def _environment(self, mark: str, fault: dict[str, Any] | None, name: str) -> dict[str, str]:
        clean = {
            key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "FAULT")
        }
        clean |= {"MSADAPTER_TEST_JOB": mark}
        if fault is None:
            return clean
        marks = self._marks(name)
        marks.mkdir(exist_ok=True)
        whole = {"tree": str(self.megatron), "marks": str(marks), "rank": 1, "iteration": 7, **fault}
        paths = [str(INJECTOR), *filter(None, [os.environ.get("PYTHONPATH")])]
        return clean | {"FAULT": json.dumps(whole), "PYTHONPATH": os.pathsep.join(paths)}


class LlmToy(Toy):
    """The same with MindSpeed-LLM's programs and Qwen2.5's architecture. tree: the folder that `auto_convert.sh llm` wrote."""

    def __init__(self, folder: Path, tree: Path) -> None:
        super().__init__(folder, tree)
        rows = [" ".join(str(3 + (start + 5 * step) % 200) for step in range(64)) for start in range(40)]
        (folder / "rows.jsonl").write_text("".join(json.dumps({"text": row}) + "\n" for row in rows))
        make_tokenizer(folder / "model", _QWEN["vocab_size"])
        place = folder / "data.yaml"
        place.write_text(yaml.safe_dump(self.settings("data", processes=1)))
        assert commands.main(["data", str(place)]) == 0

    @property
    def megatron(self) -> Path:
        return self.tree / trees.MEGATRON

    def settings(self, name: str, **run: Any) -> dict[str, Any]:
        run |= {"trees": str(self.tree), "folder": str(self.folder), "device": "npu"}
        names = {"sources": "rows.jsonl", "tokenizer": "model", "output": "texts"}
        return {
            "recipe": "qwen2.5-0.5b",
            "name": name,
            "run": run,
            "model": {**_SIZES, **_QWEN},
            "data": {key: str(self.folder / value) for key, value in names.items()},
            "dataset": {"sequence_length": 32},
            **_SCHEDULE,
        }


def is_llm(tree: Path) -> bool:
    """True for a folder that `auto_convert.sh llm` wrote."""
    return (tree / trees.LLM).is_dir()


def toy_of(folder: Path, tree: Path) -> Toy:
    """A toy for the programs of a tree."""
    return (LlmToy if is_llm(tree) else Toy)(folder, tree)


def _remaining(mark: str) -> list[str]:
    """Processes of a run that are left some seconds after its end."""
    end = time.monotonic() + 30
    while (found := left(mark)) and time.monotonic() < end:
        time.sleep(0.05)
    return [str(one) for one in found]


def whole_checkpoints(run: Run) -> list[int]:
    """The checkpoints of a run that are whole and healthy."""
    place = run.folder / "checkpoints"
    return sorted(
        one for one in manifest.iterations(place) if not manifest.fault(manifest.place_of(place, one))
    )
