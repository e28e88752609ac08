"""python -m megatron_ms data: makes data sets, shows what would be learned, and checks finished files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..commands import add_config_arguments

if TYPE_CHECKING:
    from .pipeline import Made

HELP = "make data sets for pretraining, instruction tuning and preference pairs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser, optional=True)
    parser.add_argument(
        "--show", type=_count, metavar="N", help="write nothing; print N samples and what is learned of them"
    )
    parser.add_argument(
        "--check",
        type=Path,
        metavar="PREFIX",
        help="write nothing; check PREFIX.bin and PREFIX.idx, which need no CONFIG",
    )
    parser.add_argument("--templates", action="store_true", help="list the names of the chat templates")


def run(arguments: argparse.Namespace) -> int:
    from ..errors import UserError

    if arguments.templates:
        from .templates import names

        print("\n".join(names()))
        return 0
    if arguments.check is not None:
        return _check(arguments.check)
    if arguments.config is None:
        raise UserError("name a configuration; `--help` says more")
    from .. import config
    from .section import Data

    data = config.load(arguments.config, arguments.overrides).section("data", Data)
    if arguments.show is not None:
        from .show import show

        return 1 if show(data, arguments.show, sys.stdout, sys.stdout.isatty()) else 0
    from .pipeline import make_all
    from .reading import megatron_data_path

    for made in make_all(data):
        _print_made(made)
    if data.format == "megatron":
        print("for training    --data-path " + " ".join(megatron_data_path(data)))
    return 0


def _count(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _print_made(made: Made) -> None:
    stamp = made.stamp
    state = "made before from the same input, nothing to do" if made.already else "made"
    if made.resumed and not made.already:
        state += f", continued after {made.resumed} entries"
    print(f"{made.prefix}: {state}")
    names = sorted({path.name.removesuffix(".bin").removesuffix(".idx") for path in made.files})
    print(f"  files      {', '.join(names)}")
    counts = {
        name: count for name, count in stamp["counts"].items() if count and not name.startswith("left out")
    }
    print(f"  counts     {', '.join(f'{count} {name}' for name, count in counts.items())}")
    if "rows" in stamp:
        print(f"  packed     {stamp['rows']} rows, filled to {100 * stamp['filled']:.1f} %")
    for reason, places in stamp["left_out"].items():
        print(f"  left out   {stamp['counts'][f'left out: {reason}']}: {reason} (first: {', '.join(places)})")
    for ratio in made.ratios:
        print(
            f"  source     {ratio.name}: {ratio.samples} entries, {ratio.share:.4f} wanted {ratio.wanted:.4f}"
        )


def _check(prefix: Path) -> int:
    from ..convert.steps import file_sha256
    from ..errors import UserError
    from .indexed import bin_path, idx_path, open_indexed
    from .work import STAMP, read_stamp

    found = open_indexed(prefix)
    print(
        f"{found.prefix}: {found.documents} documents, {len(found)} sequences, {len(found.ids)} ids ({found.dtype}), "
        f"the largest {found.largest()}"
    )
    paths = [bin_path(found.prefix), idx_path(found.prefix)]
    for path in sorted(found.prefix.parent.glob(f"*{STAMP}")):
        stamp = read_stamp(path)
        if stamp is None or not all(file.name in stamp["files"] for file in paths):
            continue
        for file in paths:
            if file_sha256(file) != stamp["files"][file.name][1]:
                raise UserError(f"{file}: has changed since it was made: its hash is not that of {path.name}")
        print(f"  both files are as they were made ({path.name})")
    return 0
