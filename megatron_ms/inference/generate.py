"""python -m megatron_ms generate: continues prompts."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ..commands import add_config_arguments

if TYPE_CHECKING:
    from .engine import Engine
    from .section import Generate

HELP = "continue prompts with a model: greedy, sampled, or by beams"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    from .. import config
    from .section import Generate

    document = config.load(arguments.config, arguments.overrides)
    keys = document.section("generate", Generate)
    prompts = _prompts(keys)
    output = None if keys.output is None else _free(Path(keys.output))
    from .opening import engine_of

    engine = engine_of(document)
    if output is None:
        for prompt, text in _pairs(engine, prompts):
            print(f"{prompt}{text}", flush=True)
        return 0
    _write(engine, prompts, output)
    return 0


def _write(engine: Engine, prompts: list[str], output: Path) -> None:
    """Write the texts to `output`, which exists only once all of them are written.

    Until then they are in a file beside it, whose name contains a hash of everything that the texts depend on. A later run of the
    same work continues that file.
    """
    from .. import locks
    from ..convert.steps import digest
    from ..errors import UserError

    states = [(file, file.stat()) for file in engine.files()]
    files = [(file.name, state.st_size, state.st_mtime_ns) for file, state in states]
    work = digest(engine.keys.model_dump_json(), json.dumps(prompts), repr(files))[:12]
    part = output.with_name(f"{output.name}.{work}.part")
    with part.open("a+", encoding="utf-8") as file:
        if not locks.take(file):
            raise UserError(f"{part}: another process writes these texts: wait until it ends")
        done = _kept(file, prompts, engine.keys.batch_size)
        if done:
            print(f"{part}: has {done} texts of an ended process; going on behind them", flush=True)
        for number, (prompt, text) in enumerate(_pairs(engine, prompts[done:]), done + 1):
            file.write(json.dumps({"prompt": prompt, "text": text}, ensure_ascii=False) + "\n")
            file.flush()
            print(f"\r{number} of {len(prompts)} texts", end="", flush=True)
        os.fsync(file.fileno())
        os.link(part, output)  # fails if the file exists by now
        part.unlink()
    print(f"\r{output}: {len(prompts)} texts")


def _kept(file: IO[str], prompts: list[str], batch: int) -> int:
    """How many texts of an unfinished file are kept: whole lines of whole batches. Cuts off the rest."""
    file.seek(0)
    done, end = 0, 0
    for number, line in enumerate(iter(file.readline, ""), 1):
        if not line.endswith("\n") or number > len(prompts):
            break
        try:
            if json.loads(line)["prompt"] != prompts[number - 1]:
                break
        except (ValueError, KeyError, TypeError):
            break  # a page that was not written when the machine stopped
        if number % batch == 0:
            done, end = number, file.tell()
    file.truncate(end)
    return done


def _prompts(keys: Generate) -> list[str]:
    from ..errors import UserError

    found = list(keys.prompts)
    if keys.prompt_file is not None:
        try:
            text = Path(keys.prompt_file).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"generate.prompt_file: {keys.prompt_file} cannot be read: {error}") from None
        found += [line.removesuffix("\r") for line in text.split("\n") if line.strip()]
    if not found:
        raise UserError("generate.prompts: give at least one, or name a file with generate.prompt_file")
    return found


def _free(output: Path) -> Path:
    from ..errors import UserError

    if os.path.lexists(output):
        raise UserError(f"generate.output: {output} exists and is not overwritten: name another file")
    if not output.parent.is_dir():
        raise UserError(f"generate.output: there is no folder {output.parent}")
    return output


def _pairs(engine: Engine, prompts: list[str]) -> Iterator[tuple[str, str]]:
    size = engine.keys.batch_size
    for start in range(0, len(prompts), size):
        batch = prompts[start : start + size]
        yield from zip(batch, engine.texts(batch), strict=True)
