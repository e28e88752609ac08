"""The command `grpo`: `train` with run.backend: hf and run.task: grpo."""

from __future__ import annotations

import argparse

from . import command

HELP = "reinforcement learning from rules (GRPO), with trl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Trains as the command `train` does. The file may name another task, such as the sft that came before."""
    arguments.overrides = [*arguments.overrides, "run.backend=hf", "run.task=grpo"]
    return command.run(arguments)
