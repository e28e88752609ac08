"""What the rows of the fault suite share: the runs of a toy with and without a fault, and what they must show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.megatron.faulty_runs import INTERVAL, ITERATIONS, Run, is_llm, toy_of

MEMORY = "recovery.memory=1"
PROMISED = 10.0  # seconds to replace a rank, or a machine, from a checkpoint in memory, on a machine with nothing else to do
# Seconds from the begin of an attempt to its first step on two idle cores, for Megatron-LM and for MindSpeed-LLM. Where the machine
# is busy, the first attempt of the same run takes longer, and the promise is longer by the same factor.
IDLE_START = {False: 2.5, True: 7.5}


class Missing(Exception):
    """A fault did not show what it must."""


class Forbidden(Exception):
    """This machine does not allow to inject the fault."""


def must(fact: bool, what: str) -> None:
    if not fact:
        raise Missing(what)


@dataclass(frozen=True)
class Row:
    """A line of the table: count, lost steps, the time to the first step after the fault, and what was seen."""

    count: int
    lost: int | None
    recovery: str
    seen: str


class Suite:
    """Runs faults. The run without a fault is computed once. timed: a row demands its time to recover, which no test does."""

    def __init__(self, folder: Path, tree: Path, timed: bool = False) -> None:
        self.toy, self.llm, self.timed = toy_of(folder, tree), is_llm(tree), timed
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

    def recovered(
        self,
        name: str,
        *words: str,
        most: int = INTERVAL,
        where: str = "",
        survivors: bool = False,
        **fault: Any,
    ) -> Row:
        """A failure after which the run goes on by itself and ends with the curve of the uninterrupted one.

        most: so many finished steps may be lost. where: the rank says this of the place in which it was ended. survivors: the ranks
        that are left have written a checkpoint.
        """
        base = self.base(*(word for word in words if word.startswith(("save.format", "parallel", "train"))))
        run = self.run(name, *words, **fault)
        must(run.code == 0, run.output[-3000:])
        must(len(run.told("restart")) == 1, f"restarts: {run.told('restart')}")
        must(run.curve() == base.curve(), f"the curve differs: {run.curve()} {base.curve()}")
        must(run.logged() == base.logged(), f"the log differs: {run.logged()} {base.logged()}")
        must(run.lost() <= most, f"{run.lost()} steps were lost")
        if survivors:
            must(len(run.told("kept")) == 1 and "put together" in run.told("kept")[0], str(run.told("kept")))
        seconds = run.recovery()
        assert seconds is not None
        if MEMORY in words:
            self.kept_promise(seconds, run.start())
        said = "; ".join([run.told("failure")[0][:90], *(run.told("kept") if survivors else ())])
        if where:
            assert run.marks is not None
            must((run.marks / "where").is_file(), run.output[-3000:])
            found = (run.marks / "where").read_text()
            must(where in found, found)
            said += f"; `{found}`"
        return Row(1, run.lost(), time_of(seconds, run), f"curve equal bit for bit; {said}")

    def kept_promise(self, seconds: float, start: float) -> None:
        """The time to recover is the promised one, longer by the factor by which this run's first start is longer than idle."""
        if not self.timed:
            return
        most = PROMISED * max(1.0, start / IDLE_START[self.llm])
        must(
            seconds < most,
            f"recovery took {seconds:.1f} s, more than {most:.1f} s (first start {start:.1f} s)",
        )


def time_of(seconds: float, run: Run) -> str:
    """The cell of a time to recover, with what says how busy the machine was."""
    return f"{seconds:.1f} s (first start {run.start():.1f} s, load {run.load:.1f})"
