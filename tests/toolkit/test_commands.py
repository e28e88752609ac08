"""The command line: the table of commands, errors in one line, and imports that stay fast."""

from __future__ import annotations

import errno
import subprocess
import sys
import types

import pytest

from megatron_ms import commands
from megatron_ms.errors import UserError


@pytest.fixture
def one(monkeypatch):
    """A table with one command, whose work is the attribute `work`."""
    module = types.ModuleType("tests_one")
    module.HELP = "does one thing"
    module.work = lambda arguments: 0

    def add_arguments(parser):
        commands.add_config_arguments(parser)
        parser.add_argument("--fast", action="store_true")

    module.add_arguments = add_arguments
    module.run = lambda arguments: module.work(arguments)
    monkeypatch.setitem(sys.modules, "tests_one", module)
    monkeypatch.setattr(commands, "COMMANDS", {"one": "tests_one"})
    return module


def test_values_may_stand_before_and_after_options(one) -> None:
    seen = []
    one.work = lambda arguments: seen.append((arguments.config, arguments.overrides, arguments.fast)) or 3
    assert commands.main(["one", "a.yaml", "x=1", "--fast", "y=2"]) == 3
    assert seen == [("a.yaml", ["x=1", "y=2"], True)]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (UserError("a.yaml, line 3: x"), "python -m megatron_ms one: a.yaml, line 3: x\n"),
        (
            OSError(errno.ENOSPC, "No space left on device", "/full/x"),
            "python -m megatron_ms one: No space left on device: /full/x; free some space or name another folder\n",
        ),
        (
            ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow"),
            "python -m megatron_ms one: the package pyarrow is not installed: pip install 'msadapter[toolkit]'\n",
        ),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(one, capsys, error, line) -> None:
    def fail(arguments):
        raise error

    one.work = fail
    assert commands.main(["one", "a.yaml"]) == 2
    assert capsys.readouterr() == ("", line)


def test_a_fault_of_the_program_keeps_its_traceback(one) -> None:
    one.work = lambda arguments: {}["x"]
    with pytest.raises(KeyError):
        commands.main(["one", "a.yaml"])


def test_ctrl_c_is_130(one, capsys) -> None:
    def stop(arguments):
        raise KeyboardInterrupt

    one.work = stop
    assert commands.main(["one", "a.yaml"]) == 130


@pytest.mark.parametrize("words", [[], ["two"], ["one"], ["one", "a.yaml", "--fats"]])
def test_wrong_arguments_are_2(one, capsys, words) -> None:
    with pytest.raises(SystemExit) as end:
        commands.main(words)
    assert end.value.code == 2 and "usage: python -m megatron_ms" in capsys.readouterr().err


def test_help_lists_the_commands_and_imports_nothing_heavy() -> None:
    code = """
import sys
from megatron_ms import commands
try:
    commands.main(["--help"])
except SystemExit as end:
    assert end.code == 0
heavy = {"torch", "msadapter", "mindspore", "numpy", "pydantic", "omegaconf", "datasets", "pandas", "transformers"}
print("heavy", sorted(heavy & set(sys.modules)))
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.endswith("heavy []\n")
    for name in commands.COMMANDS:
        assert f"\n    {name} " in out
