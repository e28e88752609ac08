"""The command `status`."""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands import add_overrides
from ..errors import UserError

if TYPE_CHECKING:
    from ..training.folder import RunFolder
    from .checkpoints import Checkpoint
    from .report import Entry

HELP = "list runs: state, step, last losses, checkpoints with their size and whether their files are complete or damaged"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder",
        nargs="?",
        default="runs",
        metavar="FOLDER or CONFIG.yaml",
        help="the folder of the runs, or a configuration, whose runs are shown (default: runs)",
    )
    add_overrides(parser)
    parser.add_argument("--name", help="only runs of this name; of a configuration it is its own")
    parser.add_argument("--losses", type=int, default=3, metavar="N", help="last losses to show (default: 3)")
    parser.add_argument(
        "--verify",
        action="store_true",
        help="read all files of the checkpoints and compare their sha256 with the manifests, as a start of a run does",
    )
    parser.add_argument("--report", metavar="FILE.html", help="also write a page that compares the runs")


def run(arguments: argparse.Namespace) -> int:
    """Prints the runs, the oldest first.

    A checkpoint that is damaged, or with --verify one that cannot be verified, gives exit code 1.
    """
    from ..training import folder as folders

    root, name = _asked(arguments)
    if not root.is_dir():
        raise UserError(f"there is no folder {root}: name the one of run.folder")
    found = folders.runs(root, name)
    if not found:
        raise UserError(f"{root} has no runs" + ("" if name == "*" else f" of the name {name}"))
    if arguments.report:
        _report(Path(arguments.report), root, found)
    shown = [_show(one, arguments.losses, arguments.verify) for one in found]
    if not arguments.verify and any(shown):
        print(
            "The files of checkpoints are there and have the right sizes. Their content is checked with --verify."
        )
    if arguments.report:
        print(f"{arguments.report}: {len(found)} runs")
    return int(any(each.fault for one in shown for each in one))


def _asked(arguments: argparse.Namespace) -> tuple[Path, str]:
    """The folder of the runs, and their name or a star for all."""
    place = Path(arguments.folder)
    if place.suffix not in (".yaml", ".yml"):
        if arguments.overrides:
            raise UserError(f"{arguments.overrides[0]}: changes a configuration, and {place} is none")
        return place, arguments.name or "*"
    from .. import config
    from ..config.training import Run
    from ..training.settings import name_of

    document = config.load(place, arguments.overrides)
    return Path(document.section("run", Run).folder), arguments.name or name_of(document)


def _report(place: Path, root: Path, found: list[RunFolder]) -> None:
    """Writes the page that compares the runs.

    Raises:
        UserError: the file exists, or has no folder.
    """
    from ..convert.steps import write_atomically
    from . import report

    if place.exists():
        raise UserError(f"--report {place}: the file exists and is not overwritten: name another")
    if not place.absolute().parent.is_dir():
        raise UserError(f"--report {place}: there is no folder {place.parent}")
    write_atomically(place, report.page([_entry(one, root) for one in found], f"Runs in {root}"))


def _entry(one: RunFolder, root: Path) -> Entry:
    """A run as the page shows it."""
    from .. import config
    from ..training import lines
    from . import report

    status, place = one.status(), one.path / "config.yaml"
    losses = [(int(r["iteration"]), loss) for r in one.records() if (loss := lines.loss_of(r)) is not None]
    seconds = (status.get("ended") or time.time()) - status["started"] if "started" in status else 0.0
    try:
        keys = report.flat(config.load(place).values) if place.is_file() else {}
    except UserError:  # it is said where the run is printed
        keys = {}
    name = os.path.relpath(one.path, root.absolute())
    return report.Entry(name, str(status.get("state", "unknown")), losses, seconds, keys)


def _show(one: RunFolder, losses: int, verify: bool) -> list[Checkpoint]:
    """Prints a run and returns its checkpoints. verify: whether their content is compared with the manifests."""
    from ..training import lines
    from . import checkpoints

    status = one.status()
    ended = status.get("ended") or time.time()
    step = f"{status['iteration']}/{status['iterations']}" if "iteration" in status else "no step"
    seconds = f"{ended - status['started']:.0f} s" if "started" in status else ""
    print(
        f"{os.path.relpath(one.path)}  {status.get('state', 'unknown')}  {status.get('task', '')}  {step}  {seconds}"
    )
    if "reason" in status:
        print(f"  {status['reason']}")
    last = [
        (record["iteration"], loss) for record in one.records() if (loss := lines.loss_of(record)) is not None
    ]
    if last and losses > 0:
        print("  losses  " + "  ".join(f"{number}: {loss:.4f}" for number, loss in last[-losses:]))
    try:
        parts = _parts(one)
    except UserError as error:  # the other runs are still to be shown
        print(f"  {error}")
        parts = 0
    found = checkpoints.of(one.checkpoints, parts, verify)
    good = "whole" if verify else "complete"
    for each in found:
        print(f"  checkpoint {each.iteration}  {each.format}  {each.size / 1e6:.1f} MB  {each.fault or good}")
    return found


def _parts(one: RunFolder) -> int:
    """How many parts a checkpoint of this run has in the format torch; 0 without its configuration."""
    from .. import config
    from ..config.training import Parallel

    if not (one.path / "config.yaml").is_file():
        return 0
    parallel = config.load(one.path / "config.yaml").section("parallel", Parallel)
    return parallel.tensor * parallel.pipeline * parallel.expert
