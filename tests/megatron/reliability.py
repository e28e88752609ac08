"""The fault suite: injects each fault into a training of Megatron-LM or MindSpeed-LLM and writes docs/reliability.md.

    python -m tests.megatron.reliability TREE [NAME ...]

TREE is a checkout of Megatron-LM core_v0.12.1, or the folder that `auto_convert.sh llm` wrote, whose lines are in a table of their
own. With names, only these faults are run, and the other lines of the page stay. A fault that did not show what it must loses its
line, and the exit code is 1. A fault that cannot be injected on this machine is skipped with the reason, and its line stays.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors

from megatron_ms.monitor import events, outputs
from megatron_ms.recovery import manifest
from tests.megatron import full_disk, shared_memory
from tests.megatron import lm_checkout as tools
from tests.megatron.fault_page import MOST_GROWTH, line, merged
from tests.megatron.fault_suite import MEMORY, Forbidden, Missing, Row, Suite, must, time_of
from tests.megatron.faulty_runs import INJECTOR, INTERVAL, ITERATIONS, Run, is_llm, whole_checkpoints
from tests.megatron.growth import NAMES, Growth
from tests.megatron.machines import Machines

PAGE = tools.ROOT / "docs" / "reliability.md"
CUTS = 1000  # kills of a save, for each format
SHARDS = ("save.format=torch_dist", "parallel.distributed_optimizer=true", "train.precision=bf16")
SAFETENSORS = ("save.format=safetensors", "parallel.distributed_optimizer=true", "train.precision=bf16")
LONG = 20_000  # steps of the long run


def killed(
    place: str, what: str = "kill", iteration: int = 7, *words: str, **more: Any
) -> Callable[[Suite], Row]:
    """A rank ends. Without words the other one has a copy of all and writes it."""

    def check(suite: Suite) -> Row:
        name = "-".join([place, what, *(["rank-0"] if more.get("rank") == 0 else []), *words])
        name = name.translate(str.maketrans(" .=_", "----"))
        survivors = not words
        most = 1 if survivors or MEMORY in words else INTERVAL
        fault = {"place": place, "what": what, "iteration": iteration, **more}
        return suite.recovered(name, *words, most=most, survivors=survivors, **fault)

    return check


def asked(what: str) -> Callable[[Suite], Row]:
    """A signal to the toolkit, or to a rank: a checkpoint of the step is written, and the run goes on from it."""

    def check(suite: Suite) -> Row:
        first = suite.run(what, place="forward", what=what)
        must(first.code == 0 and max(first.records) == 7, first.output[-3000:])
        must(whole_checkpoints(first) == [4, 7], str(whole_checkpoints(first)))
        second = suite.run(what, "--resume")
        must(second.code == 0 and second.curve() == suite.base().curve(), second.output[-3000:])
        return Row(
            1,
            second.lost(),
            "",
            "exit code 0; checkpoint of the same step; resumed curve equal bit for bit",
        )

    return check


def stopped(suite: Suite) -> Row:
    row = suite.recovered("stopped", "recovery.silence=8", place="forward", what="stop")
    must("rank 1 (pid" in row.seen and "stopped by a signal" in row.seen, row.seen)
    return row


def hung(suite: Suite) -> Row:
    row = suite.recovered("hung", "recovery.stall=15", place="forward", what="hang")
    must("rank 1 " in row.seen and "iteration 7" in row.seen and not row.lost, f"{row.lost} {row.seen}")
    return row


# A step of this toy takes so long that other work on the machine changes the ratio of two ranks little.
LARGER = (
    "model.hidden_size=256", "model.num_attention_heads=8", "dataset.sequence_length=256", "model.max_position_embeddings=256",
    "save.interval=1000",
)  # fmt: skip
SLOW = 400  # steps, which take longer than the time for which a rank must be slow, on fast machines too
QUIET = 600  # steps in which no rank may be named as straggler


def slow(suite: Suite) -> Row:
    """A rank that works exactly as long again in each step."""
    places = ["forward", "all-reduce", "optimizer"]
    words = (f"train.iterations={SLOW}", *LARGER)
    run = suite.run("slow", *words, place=places, what="double", iteration=3, steps=SLOW - 2, times=99)
    named = run.told("straggler")
    must(run.code == 0 and len(named) == 1, f"{named} {run.output[-2000:]}")
    found = re.match(r"straggler: rank 1 works ([\d.]+) times as long as the others", named[0])
    must(found is not None and 1.6 < float(found[1]) < 2.5, named[0])
    return Row(1, 0, "", named[0])


def quiet(suite: Suite) -> Row:
    """No rank of a run without a fault is named."""
    run = suite.run("quiet", f"train.iterations={QUIET}", *LARGER)
    must(run.code == 0 and len(run.records) == QUIET, run.output[-3000:])
    wrong = [text for kind in ("straggler", "silent", "spike", "nan", "skip") for text in run.told(kind)]
    must(not wrong, str(wrong))
    return Row(QUIET, None, "", f"none is named as straggler or silent (load {run.load:.1f})")


def large_once(suite: Suite, *words: str) -> Row:
    """Model and optimizer of the checkpoint after the step are those of the one before, bit for bit."""
    name = f"large-{len(words)}"
    words += ("health.skip_norm=100", "save.interval=1", "save.format=safetensors")
    observed = ("monitor.weights=true", "monitor.optimizer=true", "monitor.parameters=[.]")
    run = suite.run(name, *words, *observed, place="all-reduce", what="large")
    must(
        run.code == 0 and run.records[ITERATIONS]["skipped"] == 1 and len(run.told("skip")) == 1,
        run.output[-3000:],
    )
    for before, after in zip(run.records[6]["ranks"], run.records[7]["ranks"], strict=True):
        for what in ("weight", "state"):
            must(before[what] == after[what] and bool(before[what]), f"{what} of a rank has changed")
    before, after, later = (saved_tensors(run, number) for number in (6, 7, 8))
    kinds = {"exp_avg", "exp_avg_sq"}
    must(
        kinds <= {name.rpartition(".")[2] for name in before},
        f"there is no state of an optimizer: {list(before)}",
    )
    must(before == after, f"changed: {[name for name in before if before[name] != after.get(name)]}")
    must(before != later, "the step after it changes nothing either")
    return Row(
        1,
        0,
        "",
        f"{len(before)} tensors of model and optimizer equal bit for bit, counted; " + run.told("skip")[0],
    )


def saved_tensors(run: Run, iteration: int) -> dict[str, bytes]:
    """The content of each tensor of the model and of the optimizer in a checkpoint in safetensors."""
    place, found = manifest.place_of(run.folder / "checkpoints", iteration), {}
    for file in sorted(place.rglob("*.safetensors")):
        for name, about in safetensors.deserialize(file.read_bytes()):
            if name.startswith(("model", "optimizer")):
                found[f"{file.parent.name}.{name}"] = bytes(about["data"])
    return found


def large_often(suite: Suite) -> Row:
    words = ("health.skip_norm=100", "health.skip_limit=3")
    run = suite.run("often", *words, place="all-reduce", what="large", steps=9, times=9)
    must(run.code == 3 and max(run.records) == 9, run.output[-3000:])
    return Row(3, 0, "", "exit code 3; " + run.told("end")[0])


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
    return Row(1, second.lost(), "", f"{refused[0]}; curve equal bit for bit")


WEIGHT = "decoder.layers.1.mlp.linear_fc2.weight"
LAYER = "decoder.layers.0.self_attention.linear_qkv"
FIRST = "the first tensor with NaN or infinity is the"


def nan(suite: Suite) -> Row:
    run = suite.run("nan", "recovery.restarts=0", place="layer", what="nan")
    text = f"rank 1, iteration 7: {FIRST} output of {LAYER}"
    must(run.code == 1 and run.told("failure") == [text], str(run.told("failure")))
    return Row(1, None, "", text)


def nan_kind(what: str, tensor: str, *words: str, rank: int = 1, **fault: Any) -> Callable[[Suite], Row]:
    """A NaN of another kind, or in another layout. tensor: the one that must be named."""

    def check(suite: Suite) -> Row:
        name = f"{what}-{rank}-{len(words)}"
        run = suite.run(name, "recovery.restarts=0", *words, what=what, rank=rank, **fault)
        text = f"rank {rank}, iteration 7: {FIRST} {tensor}"
        must(run.code == 1 and run.told("failure") == [text], f"{run.told('failure')} {run.output[-2000:]}")
        return Row(1, None, "", text)

    return check


def nan_skipped(suite: Suite) -> Row:
    """With health.skip_norm the step changes nothing, and the run goes on."""
    words = ("health.skip_norm=100", "recovery.restarts=0", "monitor.weights=true", "monitor.parameters=[.]")
    run = suite.run("nan-skipped", *words, place="layer", what="nan")
    must(run.code == 0 and len(run.records) == ITERATIONS, run.output[-3000:])
    must(run.records[ITERATIONS]["skipped"] == 1 and len(run.told("skip")) == 1, str(run.told("skip")))
    text = run.told("skip")[0]
    must(text.endswith(f"; rank 1: {FIRST} output of {LAYER}"), text)
    for before, after in zip(run.records[6]["ranks"], run.records[7]["ranks"], strict=True):
        must(before["weight"] == after["weight"] and bool(before["weight"]), "a parameter has changed")
    return Row(1, 0, "", f"weights of both ranks unchanged, counted; {text}")


def same_step(suite: Suite) -> Row:
    run = suite.run("same", "recovery.restarts=9", place="forward", what="error", times=99)
    text = (
        "two attempts in a row failed in iteration 7: rank 1, iteration 7: RuntimeError: the device was lost"
    )
    must(run.code == 3 and run.told("end") == [text], str(run.told("end")))
    return Row(2, None, "", f"exit code 3; {text}")


def large_file(suite: Suite) -> Row:
    fault = {"place": "save", "what": "full", "rank": 0, "iteration": 8, "bytes": 100_000}
    run = suite.run("large-file", "recovery.restarts=0", **fault)
    must(run.code == 1 and whole_checkpoints(run) == [4, 8], run.output[-3000:])
    said, _, _ = run.told("failure")[0].partition(": '/")
    must("File too large" in said, said)
    return Row(1, None, "", f"checkpoint 4 is whole; {said}; {run.told('kept')[0]}")


def disk_full(suite: Suite) -> Row:
    """The disk of the checkpoints has space for one and a half."""
    if why := full_disk.forbidden():
        raise Forbidden(f"no file system can be mounted: {why}")
    base = suite.base()
    place = manifest.place_of(base.folder / "checkpoints", 4)
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    disk = suite.toy.folder / "disk" / "one" / "checkpoints"
    disk.mkdir(parents=True)
    kept = suite.toy.folder / "disk-kept"
    before = full_disk.on_disk_of(f"{size * 3 // 2048}k", disk, kept)
    run = suite.toy.run("run.id=one", "recovery.restarts=0", name="disk", before=before)
    must(not run.left, f"left behind: {run.left}")
    disk.rmdir()
    kept.rename(disk)
    must(run.code == 1 and whole_checkpoints(run) == [4], run.output[-3000:])
    said, _, _ = run.told("failure")[0].partition(": '/")
    must("No space left on device" in said, said)
    second = suite.toy.run("run.id=one", name="disk")  # with space again
    must(second.code == 0 and second.curve() == base.curve(), second.output[-3000:])
    return Row(
        1,
        second.lost(),
        "",
        f"checkpoint 4 is whole; {said}; with space again the curve is equal bit for bit",
    )


def memory_full(suite: Suite) -> Row:
    """Another program fills the shared memory in step 7, while a checkpoint is written into it after each step."""
    if why := full_disk.forbidden():
        raise Forbidden(f"no file system can be mounted: {why}")
    kept = suite.toy.folder / "memory-kept"
    before = full_disk.on_disk_of("64m", shared_memory.PLACE, kept)
    fault = {"place": "forward", "what": "fill", "rank": 0, "disk": str(shared_memory.PLACE)}
    run = suite.toy.run(MEMORY, "recovery.restarts=0", name="memory-full", fault=fault, before=before)
    must(not run.left, f"left behind: {run.left}")
    remains = [file.name for file in kept.iterdir() if file.name != "filling"]
    must(not remains, f"left in shared memory: {remains}")
    must(run.code == 1 and 4 in whole_checkpoints(run), run.output[-3000:])
    said, _, _ = run.told("failure")[0].partition(": '/")
    must("No space left on device" in said, said)
    return Row(1, None, "", f"checkpoints {whole_checkpoints(run)} are whole; {said}")


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
        return Row(1, second.lost(), "", f"{refused[0]}; curve equal bit for bit")

    return check


def cuts(kind: str) -> Callable[[Suite], Row]:
    def check(suite: Suite) -> Row:
        found = cut_saves(kind, CUTS, suite.toy.folder / f"cuts-{kind}")
        where = found.pop("where")
        must(not found["corrupt"], str(found))
        must(min(where.values()) >= CUTS // 50, f"a file was hardly hit: {where}")
        said = ", ".join(
            f"{count} {'at' if name == 'a call' else 'in'} {name}" for name, count in where.items()
        )
        return Row(
            CUTS, None, "", f"{found['corrupt']} corrupt loads; {found['ended']} saves were ended: {said}"
        )

    return check


def cut_saves(kind: str, count: int, folder: Path, seed: int = 5) -> dict[str, Any]:
    """Ends so many saves and returns what was counted."""
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
        suite.kept_promise(steps[0] - when, run.start())
        goes_on = [text for text in run.told("resume") if text != "goes on from checkpoint 0"]
        must(len(goes_on) == 1, f"{goes_on} {run.output}")
        return Row(
            1,
            run.lost(),
            time_of(steps[0] - when, run),
            f"curve equal bit for bit; {goes_on[0]}, of which no disk had a copy",
        )

    return check


def fewer_machines(suite: Suite) -> Row:
    """One of two machines ends and the other one goes on alone, until the first one comes back.

    Other ranks add up the gradients in another order, so the curves are not equal in the last bits.
    """
    machines = Machines(suite.toy, "fewer")
    words = (
        "train.iterations=800",
        "save.interval=20",
        "model.hidden_dropout=0",
        "model.attention_dropout=0",
    )
    recovery = (MEMORY, "recovery.restarts=9", "recovery.backoff=0.1", "run.min_nodes=1")
    base = suite.toy.run(*words, name="all-machines")
    must(base.code == 0, base.output[-3000:])
    for one in range(machines.count):
        machines.start(one, *words, *recovery)
    machines.reached(7, ranks=2)
    machines.running[1].lose(machines.run)
    del machines.running[1]
    before = max(line["iteration"] for line in events.read(machines.run, outputs.MEASURED))
    when = time.time()
    alone = machines.reached(before + 20, ranks=1)
    machines.start(1, *words, *recovery)
    machines.reached(alone, ranks=2)
    run = machines.ended()
    must(run.code == 0 and not run.left, f"{run.left} {run.output}")
    steps = [event for event in run.events if event["kind"] == "step" and event["time"] > when]
    must(len(steps) == 2 and steps[0]["iteration"] >= before, f"{before} {steps}")
    counts = {len(run.records[number]["ranks"]) for number in range(before + 1, steps[1]["iteration"])}
    must(counts == {1}, f"{counts} ranks between {before} and {steps[1]['iteration']}")
    must(len(run.records) == len(base.records) == 800, str(len(run.records)))
    apart = max(abs(one["loss"] / base.records[number]["loss"] - 1) for number, one in run.records.items())
    must(apart < 1e-3, f"losses differ by {apart:.1e}")
    seen = f"1 rank goes on in iteration {steps[0]['iteration']}, 2 in {steps[1]['iteration']}; losses within {apart:.0e}"
    return Row(1, run.lost(), time_of(steps[0]["time"] - when, run), seen)


def flat(suite: Suite, steps: int = LONG) -> Row:
    """A long run in which everything that observes and saves is on. What its processes have must not grow."""
    words = [f"train.iterations={steps}", f"save.interval={steps // 20}", "recovery.memory=20"]
    words += ["monitor.weights=true", "monitor.optimizer=true", "monitor.parameters=[linear_qkv.weight]"]
    words += ["monitor.prometheus=0", "health.skip_norm=1000", "health.spike=1000", "health.window=20"]
    with Growth(suite.toy.folder, "flat") as growth:
        run = suite.toy.run(*words, name="flat", patience=24 * 3600)
    must(not run.left and run.code == 0 and len(run.records) == steps, run.output[-3000:])
    must(not run.told("straggler"), str(run.told("straggler")))
    compared = growth.compared(steps)
    must(set(compared) == {"rank 0", "rank 1", "the toolkit"}, str(compared))
    shown = []
    for who, (early, late) in compared.items():
        for name, before, after, most in zip(NAMES, early, late, MOST_GROWTH, strict=True):
            must(after <= before * (1 + most), f"{who}: {before} {name} became {after}")
        shown.append(f"{who}: " + ", ".join(_change(*one) for one in zip(early, late, NAMES, strict=True)))
    return Row(steps, None, "", "; ".join(shown))


def _change(before: float, after: float, name: str) -> str:
    return f"{before:.0f} {name}" if round(before) == round(after) else f"{before:.0f} to {after:.0f} {name}"


@dataclass(frozen=True)
class Fault:
    what: str
    check: Callable[[Suite], Row] = field(repr=False)


PIPELINE = "parallel.pipeline=2"

IN_COLLECTIVE = killed("all-reduce", "kill_waiting", rank=[0, 1], where="< wait")
BETWEEN = killed("optimizer", "kill_between", where=" parameters are updated")
OPENING = killed("save", "kill_opening", 8, rank=0, where=" is opened")
IN_SHARDS = killed("forward", "error", 7, MEMORY, *SHARDS)
NAN_FIRST = nan_kind("nan", f"output of {LAYER}", PIPELINE, rank=0, place="layer")
NAN_LAST = nan_kind("nan", f"output of {LAYER}", PIPELINE, place="layer")
NAN_GRADIENT = nan_kind("nan_gradient", f"gradient of {LAYER}.bias", place="layer")
NAN_WEIGHT = nan_kind("nan_weight", f"weight {WEIGHT}", place="forward", weight=WEIGHT)

FAULTS = {
    "forward": Fault("SIGKILL of a rank in the forward pass", killed("forward")),
    "backward": Fault("SIGKILL of a rank in the backward pass", killed("layer", "kill_backward")),
    "all-reduce": Fault("SIGKILL of a rank before the all-reduce of gradients", killed("all-reduce")),
    "inside": Fault("SIGKILL of a rank inside the all-reduce of gradients", IN_COLLECTIVE),
    "between": Fault("SIGKILL of a rank between two parameters of its optimizer step", BETWEEN),
    "optimizer": Fault("SIGKILL of a rank after its optimizer step", killed("optimizer", "kill_after")),
    "optimizer-0": Fault("SIGKILL of rank 0 after its optimizer step", killed("optimizer", "kill_after", rank=0)),
    "log": Fault("SIGKILL of a rank after a step, before its line of the log", killed("log")),
    "save": Fault("SIGXFSZ of a rank in a save, at byte 100,000 of a file", killed("save", "cut", 8, rank=0, bytes=100_000)),
    "opening": Fault("SIGKILL of a rank in a save, when it opens a file", OPENING),
    "memory": Fault("SIGKILL of a rank, with checkpoints in memory", killed("optimizer", "kill_after", 7, MEMORY)),
    "machine": Fault("machine 1 of 2 is lost, with its memory", machine_lost(1)),
    "machine-0": Fault("machine 0 of 2 is lost, with its memory and the store", machine_lost(0)),
    "fewer": Fault("machine 1 of 2 is lost and comes back, with run.min_nodes 1", fewer_machines),
    "survivors": Fault("a fatal error of a rank", killed("forward", "error")),
    "error": Fault("a fatal error of a rank, with checkpoints in memory", killed("forward", "error", 7, MEMORY)),
    "shards": Fault("a fatal error of a rank, distributed optimizer, with checkpoints in memory", IN_SHARDS),
    "torch_dist": Fault("SIGKILL of a rank, format torch_dist", killed("forward", "kill", 7, "save.format=torch_dist")),
    "safetensors": Fault("SIGKILL of a rank, format safetensors", killed("forward", "kill", 7, *SAFETENSORS)),
    "SIGTERM": Fault("SIGTERM", asked("terminate")),
    "SIGUSR1": Fault("SIGUSR1", asked("user_signal")),
    "SIGTERM-rank": Fault("SIGTERM to one rank", asked("terminate_rank")),
    "SIGSTOP": Fault("SIGSTOP of a rank", stopped),
    "hung": Fault("the step of a rank does not end", hung),
    "slow": Fault("a rank exactly twice as slow", slow),
    "quiet": Fault("no fault: steps in which no rank may be named", quiet),
    "large": Fault("gradient x 1e6 on one rank, once", large_once),
    "often": Fault("gradient x 1e6 on one rank, at each step", large_often),
    "spike": Fault("gradient x 1e6 on one rank, and the checkpoint after it", spike),
    "nan": Fault("NaN on one rank", nan),
    "nan-first": Fault("NaN on the first stage of a pipeline", NAN_FIRST),
    "nan-last": Fault("NaN on the last stage of a pipeline", NAN_LAST),
    "nan-gradient": Fault("NaN in a gradient alone, on one rank", NAN_GRADIENT),
    "nan-weight": Fault("NaN in one number of a weight, on one rank", NAN_WEIGHT),
    "nan-skipped": Fault("NaN on one rank, with health.skip_norm", nan_skipped),
    "flip": Fault("a bit of the newest checkpoint is wrong", bad(flip, "has another content")),
    "cut": Fault("the newest checkpoint is truncated", bad(cut, " bytes")),
    "lose": Fault("a file of the newest checkpoint is missing", bad(lose, "is missing")),
    "unhealthy": Fault("the newest checkpoint is unhealthy", bad(unhealthy, "it is unhealthy: loss 99")),
    "full": Fault("the disk becomes full in a save", disk_full),
    "large-file": Fault("a file reaches the largest size that is allowed, in a save", large_file),
    "memory-full": Fault("shared memory becomes full, with checkpoints in memory", memory_full),
    "same": Fault("a failure in the same step each time", same_step),
    "cuts-torch": Fault("a save is ended at a random byte or call, torch", cuts("torch")),
    "cuts-torch_dist": Fault("a save is ended at a random byte or call, torch_dist", cuts("torch_dist")),
    "cuts-safetensors": Fault("a save is ended at a random byte or call, safetensors", cuts("safetensors")),
    "flat": Fault("no fault: steps with all of monitoring, health and checkpoints in memory", flat),
}  # fmt: skip


def main() -> int:
    rows: dict[str, str | None] = {}
    tree = Path(sys.argv[1]).absolute()
    llm = is_llm(tree)
    order = [fault.what for fault in FAULTS.values()]
    with tempfile.TemporaryDirectory(prefix="reliability-") as folder:
        place = tree if llm else tools.scratch_copy(tree, Path(folder))
        suite = Suite(Path(folder) / "runs", place, timed=True)
        for name in sys.argv[2:] or (one for one in FAULTS if not (llm and one.startswith("cuts-"))):
            what = FAULTS[name].what
            try:
                rows[what] = line(what, FAULTS[name].check(suite))
                print(rows[what], flush=True)
            except Forbidden as why:
                print(f"{name}: SKIPPED: {why}", flush=True)
            except Missing as missing:
                rows[what] = None
                print(f"{name}: MISSING: {missing}", flush=True)
            old = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
            PAGE.write_text(merged(old, rows, order, llm), encoding="utf-8")
    return int(None in rows.values())


if __name__ == "__main__":
    sys.exit(main())
