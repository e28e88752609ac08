"""docs/mindspeed_targets.md is what its table and its records say; each of the 88 names has a line."""

from __future__ import annotations

import json

from tests.npu import entered, targets


def test_the_page_is_that_of_the_table_and_the_records() -> None:
    known = json.loads(targets.KNOWN.read_text(encoding="utf-8"))
    assert targets.PAGE.read_text(encoding="utf-8") == targets.page(known)
    names = [row["name"] for row in entered.targets()]
    assert len(names) == len(set(names)) == 88 and known.keys() <= set(names)
    assert all(row["why"] for row in entered.targets())


def _outer(function):
    def wrapper():
        return function()

    return wrapper


def _plain():
    return 1


class _Both:
    @staticmethod
    def one():
        return 1


def test_the_code_of_a_wrapper_is_not_that_of_what_it_wraps() -> None:
    """Wrappers share their code, so a wrapper that ran does not show that another one did."""
    assert list(entered._codes(_outer(_plain))) == [_plain.__code__]
    assert list(entered._codes(_Both)) == [_Both.one.__code__]
    assert list(entered._codes(None)) == [] and entered._object("no.such.module.name") is None
