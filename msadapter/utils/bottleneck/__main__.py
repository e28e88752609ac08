"""Runs a script twice and shows where it spends its time: in which Python functions, and in which operators.

python -m torch.utils.bottleneck SCRIPT [argument ...]

The first run is measured by cProfile and the second by torch.autograd.profiler. Both make a script slower, so take one that ends
after some seconds. Time for which a script waits for an accelerator is that of the operator at which it waits.
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import sys
from collections.abc import Callable
from types import CodeType

from ...autograd import profiler
from ..collect_env import get_pretty_env_info

ROWS = 15  # of each table


def _arguments() -> argparse.Namespace:
    about, _, notes = (__doc__ or "").split("\n\n")
    parser = argparse.ArgumentParser(prog="python -m torch.utils.bottleneck", description=about, epilog=notes)
    parser.add_argument("script", help="the Python script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of the script")
    options = parser.parse_args()
    if not os.path.isfile(options.script):
        parser.error(f"there is no file {options.script}")
    return options


def _run(code: CodeType, script: str) -> None:
    """Run the code as the main program. Its exit is not that of this program, so that the other run follows."""
    try:
        exec(code, {"__name__": "__main__", "__file__": script, "__package__": None, "__cached__": None})
    except SystemExit as end:
        if end.code:
            print(f"{script} ended with exit code {end.code}", file=sys.stderr)


def _python_functions(run: Callable[[], None]) -> None:
    measured = cProfile.Profile()
    measured.runcall(run)
    pstats.Stats(measured, stream=sys.stdout).sort_stats("tottime").print_stats(ROWS)


def _operators(run: Callable[[], None]) -> None:
    with profiler.profile() as measured:
        run()
    print(measured.key_averages().table(sort_by="self_cpu_time_total", row_limit=ROWS))


def _section(title: str) -> None:
    print(f"\n{title}\n{'-' * len(title)}", flush=True)


def main() -> None:
    """Run the script that the command line names, and print three sections: environment, functions, operators."""
    options = _arguments()
    with open(options.script, "rb") as file:
        code = compile(file.read(), options.script, "exec")
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))

    _section("Environment")
    print(get_pretty_env_info())
    _section(f"Python functions, by the time in themselves (cProfile, the first {ROWS})")
    _python_functions(lambda: _run(code, options.script))
    _section(f"Operators, by the time in themselves (autograd profiler, the first {ROWS})")
    _operators(lambda: _run(code, options.script))


if __name__ == "__main__":
    main()
