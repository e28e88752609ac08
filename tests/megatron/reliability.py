"""The fault suite: injects each fault into a training of Megatron-LM or MindSpeed-LLM and writes docs/reliability.md.

    python -m tests.megatron.reliability TREE [NAME ...]

TREE is a checkout of Megatron-LM core_v0.12.1, or the folder that `auto_convert.sh llm` wrote, whose lines are in a table of their
own. With names, only these faults are run, and the other lines of the page stay. A fault that did not show what it must loses its
line, and the exit code is 1.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from megatron_ms.recovery import manifest
from tests.megatron import lm_checkout as tools
from tests.megatron.faulty_runs import INJECTOR, INTERVAL, ITERATIONS, Run, is_llm, toy_of, whole_checkpoints
from tests.megatron.growth import NAMES, Growth
from tests.megatron.machines import Machines

PAGE = tools.ROOT / "docs" / "reliability.md"
CUTS = 1000  # kills of a save, for each format
MEMORY = "recovery.memory=1"
SAFETENSORS = ("save.format=safetensors", "parallel.distributed_optimizer=true", "train.precision=bf16")
LONG = 20_000  # steps of the long run
MOST_GROWTH = (0.02, 0.0, 0.0)  # of the long run's memory, open files and threads, as parts of what they were


class Missing(Exception):
    """A fault did not show what it must."""


def must(fact: bool, what: str) -> None:
    if not fact:
        raise Missing(what)


@dataclass(frozen=True)
class Row:
    """A line of the table: count, lost steps, seconds to the first step after the failure, and what was seen."""

    count: int
    lost: int | None
    recovery: float | None
    seen: str


class Suite:
    """Runs faults. The run without a fault is computed once."""

    def __init__(self, folder: Path, tree: Path) -> None:
        self.toy = toy_of(folder, tree)
        self._bases: dict[tuple[str, ...], Run] = {}

    def base(self, *words: str) -> Run:
        """The uninterrupted run."""
        if words not in self._bases:
            run = self.toy.run(*words, name=f"base{len(self._bases)}")
            must(run.code == 0 and len(run.records) == ITERATIONS, run.output[-3000:])
            self._bases[words] = run
        return self._bases[words]

    def run(self, name: str, *words: str, **fault: Any) -> Run:
        run = self.toy.run(*words, fault=fault or None, name=name)
        must(not run.left, f"left behind: {run.left}")
        return run

    def recovered(self, name: str, *words: str, most: int = INTERVAL, **fault: Any) -> Row:
        """A failure after which the run goes on by itself and ends with the curve of the uninterrupted one."""
        base = self.base(*(word for word in words if word.startswith(("save.format", "parallel", "train"))))
        run = self.run(name, *words, **fault)
        must(run.code == 0, run.output[-3000:])
        must(len(run.told("restart")) == 1, f"restarts: {run.told('restart')}")
        must(run.curve() == base.curve(), f"the curve differs: {run.curve()} {base.curve()}")
        must(run.lost() <= most, f"{run.lost()} steps were lost")
        return Row(1, run.lost(), run.recovery(), f"curve equal bit for bit; {run.told('failure')[0][:90]}")


def killed(
    place: str, what: str = "kill", iteration: int = 7, *words: str, **more: Any
) -> Callable[[Suite], Row]:
    def check(suite: Suite) -> Row:
        name = f"{place}-{what}-{len(words)}".replace(" ", "-")
        most = 1 if MEMORY in words else INTERVAL
        return suite.recovered(name, *words, most=most, place=place, what=what, iteration=iteration, **more)

    return check


def asked(what: str) -> Callable[[Suite], Row]:
    """A signal to the toolkit: a checkpoint of the step is written, and the run goes on from it."""

    def check(suite: Suite) -> Row:
        first = suite.run(what, place="forward", what=what)
        must(first.code == 0 and max(first.records) == 7, first.output[-3000:])
        must(whole_checkpoints(first) == [4, 7], str(whole_checkpoints(first)))
        second = suite.run(what, "--resume")
        must(second.code == 0 and second.curve() == suite.base().curve(), second.output[-3000:])
        return Row(
            1,
            second.lost(),
            None,
            "exit code 0; checkpoint of the same step; resumed curve equal bit for bit",
        )

    return check


def stopped(suite: Suite) -> Row:
    row = suite.recovered("stopped", "recovery.silence=8", place="forward", what="stop")
    must("rank 1 (pid" in row.seen and "stopped by a signal" in row.seen, row.seen)
    return row


def slow(suite: Suite) -> Row:
    run = suite.run(
        "slow", "train.iterations=16", place="forward", what="slow", iteration=3, steps=14, times=14
    )
    named = run.told("straggler")
    must(run.code == 0 and len(named) == 1 and named[0].startswith("straggler: rank 1 works "), str(named))
    return Row(1, 0, None, named[0])


def large_once(suite: Suite, *words: str) -> Row:
    name = f"large-{len(words)}"
    words += ("health.skip_norm=100", "monitor.weights=true", "monitor.parameters=[.]")
    run = suite.run(name, *words, place="all-reduce", what="large")
    must(
        run.code == 0 and run.records[ITERATIONS]["skipped"] == 1 and len(run.told("skip")) == 1,
        run.output[-3000:],
    )
    for before, after in zip(run.records[6]["ranks"], run.records[7]["ranks"], strict=True):
        must(before["weight"] == after["weight"], "a parameter has changed")
    return Row(1, 0, None, "weights of both ranks unchanged, counted; " + run.told("skip")[0])


def large_often(suite: Suite) -> Row:
    words = ("health.skip_norm=100", "health.skip_limit=3")
    run = suite.run("often", *words, place="all-reduce", what="large", steps=9, times=9)
    must(run.code == 3 and max(run.records) == 9, run.output[-3000:])
    return Row(3, 0, None, "exit code 3; " + run.told("end")[0])


def spike(suite: Suite) -> Row:
    """The checkpoint after a spike is unhealthy, and a run goes on from the one before."""
    first = suite.run(
        "spike", "health.spike=3", "health.window=4", place="all-reduce", what="large", iteration=11
    )
    must(first.code == 0 and len(first.told("spike")) == 2, str(first.told("spike")))
    must(whole_checkpoints(first) == [4, 8], str(whole_checkpoints(first)))
    second = suite.run("spike", "--resume")
    refused = second.told("refused")
    must(len(refused) == 1 and "it is unhealthy: gradient norm" in refused[0], str(refused))
    must(second.code == 0 and second.curve() == suite.base().curve(), second.output[-3000:])
    return Row(1, second.lost(), None, f"{refused[0]}; curve equal bit for bit")


def nan(suite: Suite) -> Row:
    run = suite.run("nan", "recovery.restarts=0", place="layer", what="nan")
    text = "rank 1, iteration 7: the first tensor with NaN or infinity is the output of decoder.layers.0.self_attention.linear_qkv"
    must(run.code == 1 and run.told("failure") == [text], str(run.told("failure")))
    return Row(1, None, None, text)


def same_step(suite: Suite) -> Row:
    run = suite.run("same", "recovery.restarts=9", place="forward", what="error", times=99)
    text = (
        "two attempts in a row failed in iteration 7: rank 1, iteration 7: RuntimeError: the device was lost"
    )
    must(run.code == 3 and run.told("end") == [text], str(run.told("end")))
    return Row(2, None, None, f"exit code 3; {text}")


def disk_full(suite: Suite) -> Row:
    run = suite.run(
        "full", "recovery.restarts=0", place="save", what="full", rank=0, iteration=8, bytes=100_000
    )
    must(run.code == 1 and whole_checkpoints(run) == [4], run.output[-3000:])
    said, _, _ = run.told("failure")[0].partition(": '/")
    must("File too large" in said, said)
    return Row(1, None, None, f"checkpoint 4 is whole; {said}")


def flip(place: Path) -> None:
    file = next(place.rglob("*.pt"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def cut(place: Path) -> None:
    file = next(place.rglob("*.pt"))
    os.truncate(file, file.stat().st_size // 2)


def lose(place: Path) -> None:
    next(place.rglob("*.pt")).unlink()


def unhealthy(place: Path) -> None:
    manifest.write(place, manifest.measure(place), manifest.Health(False, ("loss 99 at iteration 7",)))


def bad(damage: Callable[[Path], None], said: str) -> Callable[[Suite], Row]:
    """A run whose newest checkpoint is damaged goes on from the one before."""

    def check(suite: Suite) -> Row:
        name = f"bad-{damage.__name__}"
        first = suite.run(name, place="forward", what="terminate", iteration=8)
        must(first.code == 0 and whole_checkpoints(first) == [4, 8], first.output[-3000:])
        damage(manifest.place_of(first.folder / "checkpoints", 8))
        second = suite.run(name, "--resume")
        refused = second.told("refused")
        must(len(refused) == 1 and said in refused[0], str(refused))
        must(second.code == 0 and second.curve() == suite.base().curve(), second.output[-3000:])
        return Row(1, second.lost(), None, f"{refused[0]}; curve equal bit for bit")

    return check


def cuts(kind: str) -> Callable[[Suite], Row]:
    def check(suite: Suite) -> Row:
        found = cut_saves(kind, CUTS, suite.toy.folder / f"cuts-{kind}")
        must(not found["corrupt"], str(found))
        return Row(CUTS, None, None, f"{found['corrupt']} corrupt loads; {found['killed']} saves were killed")

    return check


def cut_saves(kind: str, count: int, folder: Path, seed: int = 5) -> dict[str, int]:
    """Kills so many saves and returns what was counted."""
    folder.mkdir()
    words = ["-m", "msadapter", INJECTOR / "cut_saves.py", kind, count, folder, seed]
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=tools.ROOT, capture_output=True, text=True, check=False
    )
    must(done.returncode == 0, done.stderr[-3000:])
    return json.loads(done.stdout.splitlines()[-1])


def machine_lost(number: int) -> Callable[[Suite], Row]:
    """One of two machines ends, with its memory. The other one has a copy, and a machine in its place goes on."""

    def check(suite: Suite) -> Row:
        machines = Machines(suite.toy, f"machine{number}")
        words = (
            MEMORY,
            "recovery.restarts=9",
            "recovery.backoff=0.1",
            "train.iterations=40",
            "save.interval=100",
        )
        base = suite.toy.run("train.iterations=40", "save.interval=100", name=f"alone{number}")
        must(base.code == 0, base.output[-3000:])
        for one in range(machines.count):
            machines.start(one, *words)
        machines.reached(7)
        when = time.time()
        machines.running[number].lose(machines.run)
        machines.start(number, *words)
        run = machines.ended()
        must(run.code == 0 and not run.left, f"{run.left} {run.output}")
        must(run.curve() == base.curve(), f"the curve differs: {run.curve()} {base.curve()}")
        must(run.lost() <= 1, f"{run.lost()} steps were lost")
        steps = [event["time"] for event in run.events if event["kind"] == "step" and event["time"] > when]
        goes_on = [text for text in run.told("resume") if text != "goes on from checkpoint 0"]
        must(len(goes_on) == 1, f"{goes_on} {run.output}")
        return Row(
            1,
            run.lost(),
            steps[0] - when,
            f"curve equal bit for bit; {goes_on[0]}, of which no disk had a copy",
        )

    return check


def flat(suite: Suite, steps: int = LONG) -> Row:
    """A long run in which everything that observes and saves is on. What its processes have must not grow."""
    words = [f"train.iterations={steps}", f"save.interval={steps // 20}", "recovery.memory=20"]
    words += ["monitor.weights=true", "monitor.optimizer=true", "monitor.parameters=[linear_qkv.weight]"]
    words += ["monitor.prometheus=0", "health.skip_norm=1000", "health.spike=1000", "health.window=20"]
    with Growth(suite.toy.folder, "flat") as growth:
        run = suite.toy.run(*words, name="flat", patience=24 * 3600)
    must(not run.left and run.code == 0 and len(run.records) == steps, run.output[-3000:])
    compared = growth.compared(steps)
    must(set(compared) == {"rank 0", "rank 1", "the toolkit"}, str(compared))
    shown = []
    for who, (early, late) in compared.items():
        for name, before, after, most in zip(NAMES, early, late, MOST_GROWTH, strict=True):
            must(after <= before * (1 + most), f"{who}: {before} {name} became {after}")
        shown.append(f"{who}: " + ", ".join(_change(*one) for one in zip(early, late, NAMES, strict=True)))
    return Row(steps, None, None, "; ".join(shown))


def _change(before: float, after: float, name: str) -> str:
    return f"{before:.0f} {name}" if round(before) == round(after) else f"{before:.0f} to {after:.0f} {name}"


@dataclass(frozen=True)
class Fault:
    what: str
    check: Callable[[Suite], Row] = field(repr=False)


FAULTS = {
    "forward": Fault("SIGKILL of a rank in the forward pass", killed("forward")),
    "all-reduce": Fault("SIGKILL of a rank before the all-reduce of gradients", killed("all-reduce")),
    "optimizer": Fault("SIGKILL of a rank after its optimizer step", killed("optimizer", "kill_after")),
    "save": Fault("SIGKILL of a rank in a save, at byte 100,000 of a file", killed("save", "cut", 8, rank=0, bytes=100_000)),
    "memory": Fault("SIGKILL of a rank, with checkpoints in memory", killed("optimizer", "kill_after", 7, MEMORY)),
    "machine": Fault("machine 1 of 2 is lost, with its memory", machine_lost(1)),
    "machine-0": Fault("machine 0 of 2 is lost, with its memory and the store", machine_lost(0)),
    "error": Fault("a fatal error of a rank, with checkpoints in memory", killed("forward", "error", 7, MEMORY)),
    "torch_dist": Fault("SIGKILL of a rank, format torch_dist", killed("forward", "kill", 7, "save.format=torch_dist")),
    "safetensors": Fault("SIGKILL of a rank, format safetensors", killed("forward", "kill", 7, *SAFETENSORS)),
    "SIGTERM": Fault("SIGTERM", asked("terminate")),
    "SIGUSR1": Fault("SIGUSR1", asked("user_signal")),
    "SIGSTOP": Fault("SIGSTOP of a rank", stopped),
    "slow": Fault("a rank at least twice as slow", slow),
    "large": Fault("gradient x 1e6 on one rank, once", large_once),
    "often": Fault("gradient x 1e6 on one rank, at each step", large_often),
    "spike": Fault("gradient x 1e6 on one rank, and the checkpoint after it", spike),
    "nan": Fault("NaN on one rank", nan),
    "flip": Fault("a bit of the newest checkpoint is wrong", bad(flip, "has another content")),
    "cut": Fault("the newest checkpoint is truncated", bad(cut, " bytes")),
    "lose": Fault("a file of the newest checkpoint is missing", bad(lose, "is missing")),
    "unhealthy": Fault("the newest checkpoint is unhealthy", bad(unhealthy, "it is unhealthy: loss 99")),
    "full": Fault("files cannot grow, as on a full disk", disk_full),
    "same": Fault("a failure in the same step each time", same_step),
    "cuts-torch": Fault("SIGKILL at random bytes of a save, torch", cuts("torch")),
    "cuts-torch_dist": Fault("SIGKILL at random bytes of a save, torch_dist", cuts("torch_dist")),
    "cuts-safetensors": Fault("SIGKILL at random bytes of a save, safetensors", cuts("safetensors")),
    "flat": Fault("no fault: steps with all of monitoring, health and checkpoints in memory", flat),
}  # fmt: skip

_COLUMNS = """\
| fault | count | lost | recovery | seen |
|---|---|---|---|---|
"""
_HEAD = f"""\
# Injected faults

`python -m tests.megatron.reliability TREE` injects these faults into trainings by `megatron_ms train`, and writes this page. TREE
is a checkout of an unmodified Megatron-LM (core_v0.12.1), or the folder that `auto_convert.sh llm` wrote. The model is a toy on two
CPU ranks with {ITERATIONS} steps, dropout, and a checkpoint after every {INTERVAL} steps; faults are in step 7 or 8. The
injection is in `tests/megatron/faults`. Each row was checked: the run ended as it must, and neither processes nor checkpoints in
memory were left. Curves are losses and gradient norms in all digits, compared with those of an uninterrupted run. A fault without
a line has not been run to its end. [What the toolkit does](toolkit_recovery.md) has its own page.

"Lost" are finished steps that were computed again. "Recovery" is the time from the failure to the first step after it, almost all
of which is the start of Python and upstream on two cores. The line without a fault compares the second tenth of its steps with the
last tenth: resident memory may grow by {MOST_GROWTH[0]:.0%}, open files and threads not at all.

"""
_LLM_HEAD = """
## With MindSpeed-LLM

The same with the programs of MindSpeed-LLM 26.1.0 and a toy of Qwen2.5. Kills in the middle of a save do not depend on upstream, so
they are above alone. Its own flags for recovery have [a section](toolkit_recovery.md#mindspeeds-own-recovery).

"""


def line(fault: Fault, row: Row) -> str:
    lost = "" if row.lost is None else str(row.lost)
    recovery = "" if row.recovery is None else f"{row.recovery:.0f} s"
    return f"| {fault.what} | {row.count:,} | {lost} | {recovery} | {row.seen.replace('|', ' ')} |"


def merged(old: str, rows: dict[str, str | None], llm: bool = False) -> str:
    """The page with new lines of one of the tables. Faults without a new line keep their old one; None removes it.

    llm: the lines are those of MindSpeed-LLM.
    """
    tables = [_lines(part) for part in (*old.split(_LLM_HEAD.strip().partition("\n")[0]), "")[:2]]
    for name, text in rows.items():
        tables[llm][FAULTS[name].what] = text or ""
    found = [
        "".join(f"{table[one.what]}\n" for one in FAULTS.values() if table.get(one.what)) for table in tables
    ]
    return "".join(
        head + _COLUMNS + text for head, text in zip((_HEAD, _LLM_HEAD), found, strict=True) if text
    )


def _lines(table: str) -> dict[str, str]:
    """The lines of a table by their faults."""
    return {one.split(" | ")[0].removeprefix("| "): one for one in table.splitlines() if one.startswith("| ")}


def main() -> int:
    rows: dict[str, str | None] = {}
    tree = Path(sys.argv[1]).absolute()
    llm = is_llm(tree)
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        place = tree if llm else tools.scratch_copy(tree, Path(folder))
        suite = Suite(Path(folder) / "runs", place)
        for name in sys.argv[2:] or (one for one in FAULTS if not (llm and one.startswith("cuts-"))):
            try:
                rows[name] = line(FAULTS[name], FAULTS[name].check(suite))
                print(rows[name], flush=True)
            except Missing as missing:
                rows[name] = None
                print(f"{name}: MISSING: {missing}", flush=True)
            old = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
            PAGE.write_text(merged(old, rows, llm), encoding="utf-8")
    return int(None in rows.values())


if __name__ == "__main__":
    sys.exit(main())
