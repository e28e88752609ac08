"""python -m megatron_ms evaluate: runs benchmarks and writes their scores."""

from __future__ import annotations

import argparse
import sys
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
    output = Path(keys.output)
    if output.exists():
        raise UserError(f"evaluate.output: {output} exists and is not overwritten: name another folder")
    if not output.parent.is_dir():
        raise UserError(f"evaluate.output: there is no folder {output.parent}")
    from ..inference.engine import Engine

    engine = Engine(model)  # before the tasks, because it makes `import torch` answered
    from . import harness, report
    from .scorer import Scorer

    tasks = harness.make_tasks(keys, arguments.allow_code)
    try:
        scores, records = harness.run(Scorer(engine, keys.batch_size), tasks, keys)
    except RuntimeError as error:
        print(f"evaluate: {error}", file=sys.stderr)
        return 1
    output.mkdir()
    report.write(output, scores, records, {"model": model.model, "shots": keys.shots, "limit": keys.limit})
    print(report.table(scores))
    print(f"written to {output}")
    return 0
