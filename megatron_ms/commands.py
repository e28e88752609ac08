"""The table of the toolkit's commands, and the command line that runs them.

A command is a module with `HELP` (one line), `add_arguments(parser)` and `run(arguments) -> int`, which returns the exit
code. Its name is its key in `COMMANDS`. `python -m megatron_ms --help` imports the module of every command, and running a
command imports its own module. The top of such a module therefore has only fast imports: neither torch nor
MindSpore, pydantic, OmegaConf, pandas or transformers. `run` imports what it needs.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import sys
from types import ModuleType

from .errors import UserError

COMMANDS: dict[str, str] = {
    "data": "megatron_ms.data.command",
    "train": "megatron_ms.training.command",
    "grpo": "megatron_ms.training.grpo",
    "plan": "megatron_ms.plan.command",
    "convert": "megatron_ms.conversion.command",
    "models": "megatron_ms.models.command",
    "status": "megatron_ms.status.command",
    "generate": "megatron_ms.inference.generate",
    "chat": "megatron_ms.inference.chat",
    "evaluate": "megatron_ms.evaluation.command",
}

_PROGRAM = "python -m megatron_ms"
_DESCRIPTION = """\
The life of a model from one YAML file: data, training, conversion, generation and evaluation, run by upstream's own programs
(MindSpeed-LLM, Megatron-LM, transformers) on MindSpore.
"""
_EPILOG = """\
`COMMAND --help` describes the arguments of a command. Most commands take a YAML file and then KEY=VALUE, which change single
values of the file, such as train.lr=1e-4.

exit code: 0 success, 1 the work failed (the last lines say why), 2 wrong input, 3 a rule of health or recovery stopped the
training, 130 stopped by Ctrl-C
"""
WRONG_INPUT, INTERRUPTED = 2, 130
# Packages of pyproject.toml's extra `toolkit` and what they bring, by the names that Python imports.
_INSTALLED_BY_EXTRA = {
    "datasets",
    "jinja2",
    "lm_eval",
    "omegaconf",
    "pandas",
    "prometheus_client",
    "pyarrow",
    "pydantic",
    "yaml",
}


def add_config_arguments(parser: argparse.ArgumentParser, optional: bool = False) -> None:
    """Adds the arguments `config` (a path) and `overrides` (a list of KEY=VALUE), which `config.load` reads.

    optional: the command has options that need no configuration; `config` is None without one.
    """
    parser.add_argument(
        "config", nargs="?" if optional else None, metavar="CONFIG.yaml", help="the configuration"
    )
    add_overrides(parser)


def add_overrides(parser: argparse.ArgumentParser) -> None:
    """Adds the argument `overrides`, a list of KEY=VALUE."""
    parser.add_argument(
        "overrides",
        nargs="*",
        metavar="KEY=VALUE",
        help="change a value of the file, for example train.lr=1e-4",
    )


def main(arguments: list[str] | None = None) -> int:
    """Runs the command that the arguments name and returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] not in COMMANDS:
        _overview().parse_args(words)  # prints the help, or says that there is no such command, and exits
    name = words[0]
    try:
        module = importlib.import_module(COMMANDS[name])
        return module.run(_parse(name, module, words[1:]))
    except UserError as error:
        return _wrong(name, str(error))
    except ModuleNotFoundError as error:
        if error.name not in _INSTALLED_BY_EXTRA:
            raise
        return _wrong(name, f"the package {error.name} is not installed: pip install 'msadapter[toolkit]'")
    except KeyboardInterrupt:
        print(f"\n{_PROGRAM} {name}: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as head, has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _wrong(name, _of_the_system(error))


def _overview() -> argparse.ArgumentParser:
    """The parser of the command line without a command: it knows the names and the help of all."""
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    added = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, place in COMMANDS.items():
        added.add_parser(name, help=importlib.import_module(place).HELP)
    return parser


def _parse(name: str, module: ModuleType, words: list[str]) -> argparse.Namespace:
    """The arguments of one command."""
    parser = argparse.ArgumentParser(
        prog=f"{_PROGRAM} {name}",
        description=module.HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    try:
        # KEY=VALUE may stand before and after options, which parse_args does not allow.
        return parser.parse_intermixed_args(words)
    except TypeError:  # raised before any word is read, for a command that has commands of its own
        return parser.parse_args(words)


def _wrong(command: str, message: str) -> int:
    print(f"{_PROGRAM} {command}: {message}", file=sys.stderr)
    return WRONG_INPUT


def _of_the_system(error: OSError) -> str:
    """The message for an error of the operating system that no command has foreseen."""
    hints = {
        errno.ENOSPC: "; free some space or name another folder",
        errno.EACCES: "; look at the rights of the file",
    }
    place = f": {error.filename}" if error.filename else ""
    return f"{error.strerror or error}{place}{hints.get(error.errno or 0, '')}"
