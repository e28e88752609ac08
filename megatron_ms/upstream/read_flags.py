"""Prints the flags of an upstream program as JSON. Run in the environment of its tree, with the program's path.

The program itself is run until it parses its command line. The parser that then knows `--num-layers` is Megatron's, with
everything that MindSpeed and MindSpeed-LLM add to it; one that knows `--max_steps` is that of transformers. Nothing else of the
program runs.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
from types import FrameType
from typing import Any, NoReturn

MARK = "upstream's flags: "
_WHOLE = {"--num-layers", "--max_steps"}


def described(action: argparse.Action) -> dict[str, Any]:
    """What a flag takes."""
    choices = None if action.choices is None else [_plain(choice) for choice in action.choices]
    return {
        "names": list(action.option_strings),
        "dest": action.dest,
        "nargs": action.nargs,
        "type": getattr(action.type, "__name__", None) if action.type else None,
        "choices": choices,
        "default": _plain(action.default),
        "both": isinstance(action, argparse.BooleanOptionalAction),
        "help": (action.help or "").strip(),
    }


def _plain(value: Any) -> Any:
    """The value if JSON has it, else what the command line would contain."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else str(value)


def _registers() -> bool:
    """True while upstream still registers flags. A feature of MindSpeed-LLM looks at the command line when it registers its own."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "register_args":
            return True
        frame = frame.f_back
    return False


def main() -> None:
    program = sys.argv[1]
    parse = argparse.ArgumentParser.parse_known_args

    def stop_at_upstream(parser: argparse.ArgumentParser, *args: Any, **options: Any) -> Any:
        if _WHOLE & set(parser._option_string_actions) and not _registers():
            return finish(parser)
        return parse(parser, *args, **options)

    def finish(parser: argparse.ArgumentParser) -> NoReturn:
        found = [described(action) for action in parser._actions if action.option_strings]
        print("\n" + MARK + json.dumps([flag for flag in found if flag["dest"] != "help"]), flush=True)
        os._exit(0)  # upstream has initialised devices and threads, which an orderly end would wait for

    setattr(argparse.ArgumentParser, "parse_known_args", stop_at_upstream)  # noqa: B010  (mypy knows no such assignment)
    sys.argv = [program]
    # The program finds its own folder first, as under plain Python, and the folder of this file not at all.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.path.dirname(program), *(place for place in sys.path if place != here)]
    runpy.run_path(program, run_name="__main__")
    raise SystemExit(f"{program} ended without parsing its command line")


if __name__ == "__main__":
    main()
