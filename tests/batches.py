"""Many small cases in one test: pytest spends five milliseconds on a test, which is more than most golden cases take.

`pytest --case TEXT` runs those cases alone whose name has this text, and `--every N` a part of them (sampling.py).
"""

from __future__ import annotations

import functools
import inspect
import traceback
from collections.abc import Callable, Iterable

import pytest

from tests.sampling import sampled

SIZE = 20  # cases of a test, if nothing else groups them
_every, _text = 1, ""


def choose(every: int, text: str) -> None:
    """Set what the options of the command line say. This precedes the import of every test."""
    global _every, _text
    _every, _text = every, text


def operator(name: str) -> str:
    """Return the operator in the name of a recorded sample, such as `add-float32-3`."""
    return name.partition("-")[0]


def _groups(names: list[str], key: Callable[[str], str] | None) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for number, name in enumerate(names):
        groups.setdefault(key(name) if key else f"{number // SIZE * SIZE} and on", []).append(name)
    return groups


def together(names: Iterable[str], key: Callable[[str], str] | None = None):
    """Return a decorator for a test of one case, whose first argument is its name. It becomes a test of many cases.

    names: of all cases.
    key: cases for which it returns the same are one test, which has this name. By default, a test has SIZE cases in a row.

    All cases of a test run. It fails with the names and errors of all that failed.
    """
    identifiers = {f"cases[{name}]": name for name in names}
    kept = sampled(identifiers, _every)
    chosen = [name for one, name in identifiers.items() if one in kept and _text in name]
    groups = _groups(chosen, key)

    def decorate(function):
        @functools.wraps(function)
        def test(cases, **fixtures):
            run(cases, functools.partial(function, **fixtures))

        first, *others = inspect.signature(function).parameters.values()
        test.__signature__ = inspect.Signature([first.replace(name="cases"), *others])
        return pytest.mark.parametrize("cases", groups.values(), ids=groups)(test)

    return decorate


def run(cases: list[str], function: Callable[[str], None]) -> None:
    """Call a function with each case, and fail with the errors of all that failed."""
    if len(cases) == 1:
        function(cases[0])
        return
    failed = []
    for case in cases:
        try:
            function(case)
        except (AssertionError, pytest.fail.Exception) as error:  # the second is no Exception
            failed.append(f"{case}\n{error}")
        except Exception:
            failed.append(f"{case}\n{traceback.format_exc()}")
    if failed:
        pytest.fail(f"{len(failed)} of {len(cases)} cases:\n" + "\n".join(failed), pytrace=False)
