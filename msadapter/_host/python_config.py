"""Answers the options of `python3-config` for the Python that runs this file; python3-config in the shim's bin calls it.

A virtual environment has no python3-config of its own, and the first one on PATH belongs to another Python.
"""

from __future__ import annotations

import shlex
import sys
import sysconfig
from collections.abc import Callable


def _variable(name: str) -> str:
    return str(sysconfig.get_config_var(name) or "")


def _includes() -> str:
    places = [sysconfig.get_path("include"), sysconfig.get_path("platinclude")]
    return " ".join(shlex.quote(f"-I{place}") for place in dict.fromkeys(places))


def _libs(embed: bool) -> str:
    own = [f"-lpython{_variable('VERSION')}{sys.abiflags}"] if embed else []
    return " ".join([*own, *_variable("LIBS").split(), *_variable("SYSLIBS").split()])


def _ldflags(embed: bool) -> str:
    places = [place for place in (_variable("LIBPL"), _variable("LIBDIR")) if place]
    return " ".join([*(shlex.quote(f"-L{place}") for place in places), _libs(embed)])


ANSWERS: dict[str, Callable[[bool], str]] = {
    "--prefix": lambda embed: _variable("prefix"),
    "--exec-prefix": lambda embed: _variable("exec_prefix"),
    "--includes": lambda embed: _includes(),
    "--cflags": lambda embed: f"{_includes()} {_variable('CFLAGS')}",
    "--libs": _libs,
    "--ldflags": _ldflags,
    "--extension-suffix": lambda embed: _variable("EXT_SUFFIX"),
    "--abiflags": lambda embed: sys.abiflags,
    "--configdir": lambda embed: _variable("LIBPL"),
}


def main(arguments: list[str]) -> int:
    asked = [word for word in arguments if word != "--embed"]
    if not asked or any(word not in ANSWERS for word in asked):
        wanted = [word for word in asked if word != "--help"]
        print(f"usage: python3-config {'|'.join([*ANSWERS, '--embed', '--help'])}", file=sys.stderr)
        return 1 if wanted or not asked else 0
    for word in asked:
        print(ANSWERS[word]("--embed" in arguments))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
