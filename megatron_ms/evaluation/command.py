"""python -m megatron_ms evaluate: runs benchmarks and writes their scores."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..commands import add_config_arguments

HELP = "score a model on benchmarks, with data from local files"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser, optional=True)
    parser.add_argument(
        "--list", action="store_true", help="list the benchmarks and the files that they need"
    )
    parser.add_argument(
        "--allow-code",
        action="store_true",
        help="run programs that the model writes (HumanEval), in processes with limits but with your rights",
    )


def run(arguments: argparse.Namespace) -> int:
    from ..errors import UserError
    from .benchmarks import BENCHMARKS

    if arguments.list:
        for name, benchmark in sorted(BENCHMARKS.items()):
            print(f"{name:10} {benchmark.about}\n{'':10} files: {benchmark.layout}")
        return 0
    if arguments.config is None:
        raise UserError("name a configuration; `--help` says more")
    from .. import config
    from ..inference.section import Generate
    from .section import Evaluate

    document = config.load(arguments.config, arguments.overrides)
    keys, model = document.section("evaluate", Evaluate), document.section("generate", Generate)
    if model.checkpoint is not None:
        message = "has no meaning here: make a folder of transformers from it with `convert`"
        raise document.error("generate.checkpoint", message)
    from . import harness

    harness.check_places(keys, arguments.allow_code)
    with _new_folder(Path(keys.output)) as work:
        from ..inference.engine import Engine

        engine = Engine(model)  # before the tasks, because it makes `import torch` answered
        from . import report
        from .scorer import Scorer

        tasks = harness.make_tasks(keys)
        try:
            scores, records = harness.run(Scorer(engine, keys.batch_size), tasks, keys)
        except RuntimeError as error:
            print(f"evaluate: {error}", file=sys.stderr)
            return 1
        report.write(work, scores, records, {"model": model.model, "shots": keys.shots, "limit": keys.limit})
        work.chmod(0o755)
        work.rename(keys.output)
    print(report.table(scores))
    print(f"written to {keys.output}")
    return 0


@contextmanager
def _new_folder(output: Path) -> Iterator[Path]:
    """A folder beside the output. It is made before the work, so that a place that cannot be written costs no hours.

    The caller gives it the name of the output; otherwise it is removed.

    Raises:
        UserError: the output exists, or the folder of which it would be a part does not.
    """
    from ..errors import UserError

    if os.path.lexists(output):
        raise UserError(f"evaluate.output: {output} exists and is not overwritten: name another folder")
    if not output.parent.is_dir():
        raise UserError(f"evaluate.output: there is no folder {output.parent}")
    work = Path(tempfile.mkdtemp(prefix=f".{output.name}.", suffix=".part", dir=output.parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)
