"""python -m megatron_ms chat: a conversation with a model in the terminal, or in a browser."""

from __future__ import annotations

import argparse
import sys
from typing import IO, TYPE_CHECKING

from ..commands import add_config_arguments
from ..errors import UserError

if TYPE_CHECKING:
    from .conversation import Conversation

HELP = "talk to a model, in the terminal or with --web in a browser"
_COMMANDS = "/clear forgets what was said, /exit or Ctrl-D ends, Ctrl-C stops an answer"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.add_argument(
        "--web", action="store_true", help="serve a page on this machine instead (loopback only)"
    )
    parser.add_argument("--port", type=int, default=0, help="the port of the page; by default a free one")


def run(arguments: argparse.Namespace) -> int:
    from .. import config
    from .conversation import Conversation
    from .opening import engine_of

    document = config.load(arguments.config, arguments.overrides)
    if arguments.web:
        from .web import bind, serve

        server = bind(arguments.port)  # before the model is loaded, because the port may be taken
        return serve(server, Conversation(engine_of(document)))
    talk(Conversation(engine_of(document)), sys.stdin, sys.stdout)
    return 0


def talk(conversation: Conversation, source: IO[str], out: IO[str]) -> None:
    """Read questions line by line and write the answers, until the input ends or says /exit.

    Raises:
        UserError: a question cannot be asked, and the input is no terminal. At a terminal the message is shown, and the next
            question can be asked.
    """
    terminal = source.isatty()
    if terminal:
        print(_COMMANDS, file=out)
    while True:
        if terminal:
            print("> ", end="", file=out, flush=True)
        try:
            line = _line(source)
            question = line.strip()
            if not line or question == "/exit":
                return
            if question == "/clear":
                conversation.clear()
                print("(nothing was said before)", file=out)
            elif question.startswith("/"):
                print(_COMMANDS, file=out)
            elif question:
                _answer(conversation, question, out)
        except UserError as error:
            if not terminal:
                raise
            print(f"({error})", file=out, flush=True)


def _line(source: IO[str]) -> str:
    try:
        return source.readline()
    except UnicodeDecodeError:
        raise UserError("the question has bytes that are not UTF-8 text") from None


def _answer(conversation: Conversation, question: str, out: IO[str]) -> None:
    def show(text: str) -> None:
        print(text, end="", file=out, flush=True)

    try:
        conversation.ask(question, show)
        print(file=out, flush=True)
    except KeyboardInterrupt:
        print("\n(stopped)", file=out, flush=True)
