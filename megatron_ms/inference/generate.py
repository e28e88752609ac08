"""python -m megatron_ms generate: continues prompts."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

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

    keys = config.load(arguments.config, arguments.overrides).section("generate", Generate)
    prompts = _prompts(keys)
    output = None if keys.output is None else _free(Path(keys.output))
    from .engine import Engine

    engine = Engine(keys)
    if output is None:
        for prompt, text in _pairs(engine, prompts):
            print(f"{prompt}{text}", flush=True)
        return 0
    # The file gets its name when it is whole.
    part = output.with_name(output.name + ".part")
    try:
        with part.open("x", encoding="utf-8") as file:
            for number, (prompt, text) in enumerate(_pairs(engine, prompts), 1):
                file.write(json.dumps({"prompt": prompt, "text": text}, ensure_ascii=False) + "\n")
                print(f"\r{number} of {len(prompts)} texts", end="", flush=True)
            file.flush()
            os.fsync(file.fileno())
        os.link(part, output)  # fails if somebody has made the file meanwhile
    finally:
        part.unlink(missing_ok=True)
    print(f"\r{output}: {len(prompts)} texts")
    return 0


def _prompts(keys: Generate) -> list[str]:
    from ..errors import UserError

    found = list(keys.prompts)
    if keys.prompt_file is not None:
        try:
            text = Path(keys.prompt_file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"generate.prompt_file: {keys.prompt_file} cannot be read: {error}") from None
        found += [line for line in text.splitlines() if line.strip()]
    if not found:
        raise UserError("generate.prompts: give at least one, or name a file with generate.prompt_file")
    return found


def _free(output: Path) -> Path:
    from ..errors import UserError

    if output.exists():
        raise UserError(f"generate.output: {output} exists and is not overwritten: name another file")
    if not output.parent.is_dir():
        raise UserError(f"generate.output: there is no folder {output.parent}")
    return output


def _pairs(engine: Engine, prompts: list[str]) -> Iterator[tuple[str, str]]:
    size = engine.keys.batch_size
    for start in range(0, len(prompts), size):
        batch = prompts[start : start + size]
        yield from zip(batch, engine.texts(batch), strict=True)
