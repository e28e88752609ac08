"""The page docs/reliability.md, made of the rows of the fault suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.megatron.fault_suite import IDLE_START, PROMISED, Row
from tests.megatron.faulty_runs import INTERVAL, ITERATIONS

MOST_GROWTH = (0.02, 0.0, 0.0)  # of the long run's memory, open files and threads, as parts of what they were

_COLUMNS = """\
| fault | count | lost | recovery | seen |
|---|---|---|---|---|
"""
_HEAD = f"""\
# Injected faults

`python -m tests.megatron.reliability TREE` injects these faults into trainings by `megatron_ms train`, and writes this page. TREE
is a checkout of an unmodified Megatron-LM (core_v0.12.1), or the folder that `auto_convert.sh llm` wrote. The model is a toy on two
CPU ranks with {ITERATIONS} steps, dropout, and a checkpoint after every {INTERVAL} steps; faults are in step 7 or 8. The
injection is in `tests/megatron/faults`. Each row was checked: the run ended as it must, and neither processes nor anything in
shared memory were left. Curves are losses and gradient norms in all digits, compared with those of an uninterrupted run. A fault
without a line has not been run to its end. A line stays until its fault is injected again, so lines may be of different versions
of the toolkit. [What the toolkit does](toolkit_recovery.md) has its own page.

"Lost" are finished steps that were computed again. "Recovery" is the time from the fault, which leaves a file, to the first step
after it. Almost all of it is the start of Python and upstream. How busy the machine was is beside it: the time from the start of
the run to its first step, and the load of two cores. With checkpoints in memory the recovery must take less than {PROMISED:.0f} s
if a first step comes in {IDLE_START[False]} s ({IDLE_START[True]} s with MindSpeed-LLM), as on two idle cores; where that takes
longer, longer by the same factor.

A save is ended at a random byte of each of its files and of its manifest by the kernel (SIGXFSZ), or by SIGKILL when it opens,
makes or renames a file. Disks that become full are file systems of some megabytes, mounted for the run. The last line compares the
second tenth of its steps with the last tenth: resident memory may grow by {MOST_GROWTH[0]:.0%}, open files and threads not at all.

"""
_LLM_HEAD = """
## With MindSpeed-LLM

The same with the programs of MindSpeed-LLM 26.1.0 and a toy of Qwen2.5. Saves that are ended at random bytes do not depend on
upstream, so they are above alone. Its own flags for recovery have [a section](toolkit_recovery.md#mindspeeds-own-recovery).

"""


def line(what: str, row: Row) -> str:
    """A line of a table."""
    lost = "" if row.lost is None else str(row.lost)
    return f"| {what} | {row.count:,} | {lost} | {row.recovery} | {row.seen.replace('|', ' ')} |"


def merged(old: str, rows: Mapping[str, str | None], order: Sequence[str], llm: bool = False) -> str:
    """The page with new lines of one of the tables. Faults without a new line keep their old one; None removes it.

    rows: lines by faults. order: all faults, as the tables show them; a line of another fault is left out. llm: the lines are those
    of MindSpeed-LLM.
    """
    tables = [_lines(part) for part in (*old.split(_LLM_HEAD.strip().partition("\n")[0]), "")[:2]]
    tables[llm] |= {what: text or "" for what, text in rows.items()}
    found = ["".join(f"{table[what]}\n" for what in order if table.get(what)) for table in tables]
    return "".join(
        head + _COLUMNS + text for head, text in zip((_HEAD, _LLM_HEAD), found, strict=True) if text
    )


def _lines(table: str) -> dict[str, str]:
    """The lines of a table by their faults."""
    return {one.split(" | ")[0].removeprefix("| "): one for one in table.splitlines() if one.startswith("| ")}
