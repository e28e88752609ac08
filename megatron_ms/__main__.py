"""python -m megatron_ms COMMAND ..."""

import io
import sys

from .commands import main


def _show_everything() -> None:
    """Lets a terminal of another encoding than UTF-8 show escapes for characters that it lacks. They would end the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


if __name__ == "__main__":
    _show_everything()
    sys.exit(main())
