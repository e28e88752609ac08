"""torch._jit_internal: the marks of functions, and functions that choose by an argument. The answers are PyTorch 2.13's."""

from __future__ import annotations

import subprocess
import sys
import typing

import pytest

import msadapter as torch
from msadapter.jit import _internal as internal

Modifiers = internal.FunctionModifiers


class Marked(torch.nn.Module):
    def forward(self, x):
        return x

    @torch.jit.export
    def exported(self, x):
        return x + 1

    @torch.jit.unused
    def unused(self, x):
        return x + 2

    @torch.jit.ignore
    def ignored(self, x):
        return x + 3

    @torch.jit.ignore(drop=True)
    def dropped(self, x):
        return x + 4

    @internal._copy_to_script_wrapper
    def copied(self, x):
        return x + 5


@pytest.mark.parametrize(
    ("name", "mark", "drop", "ignored", "result"),
    [
        ("forward", Modifiers.DEFAULT, False, False, 0),
        ("exported", Modifiers.EXPORT, False, False, 1),
        ("unused", Modifiers.UNUSED, True, True, 2),
        ("ignored", Modifiers.IGNORE, False, True, 3),
        ("dropped", Modifiers.UNUSED, True, True, 4),
        ("copied", Modifiers.COPY_TO_SCRIPT_WRAPPER, False, False, 5),
    ],
)
def test_a_mark_stays_on_its_function(name, mark, drop, ignored, result):
    method = getattr(Marked(), name)
    assert internal.get_torchscript_modifier(method) == mark
    assert (internal.should_drop(method), internal.is_ignored_fn(method)) == (drop, ignored)
    assert method(0) == result


def test_what_cannot_be_marked():
    assert internal.get_torchscript_modifier(3) is None and not internal.should_drop(3)
    with pytest.raises(
        RuntimeError, match="Argument to @torch.jit.ignore must be a bool or a function but got 3"
    ):
        torch.jit.ignore(3)


def test_a_module_has_exports():
    assert internal.module_has_exports(Marked()) and not internal.module_has_exports(torch.nn.Linear(1, 1))


def _with_indices(x, flag=False):
    return x, 0


def _without_indices(x, flag=False):
    """Return the value."""
    return x


def test_an_argument_chooses_the_function():
    chosen = internal.boolean_dispatch(
        "flag",
        1,
        False,
        if_true=_with_indices,
        if_false=_without_indices,
        module_name="here",
        func_name="both",
    )
    assert (chosen(3), chosen(3, True), chosen(3, flag=True), chosen(3, False)) == (3, (3, 0), (3, 0), 3)
    assert (chosen.__name__, chosen.__module__, chosen.__doc__) == ("both", "here", "Return the value.")
    assert internal.boolean_dispatched[chosen]["if_true"] is _with_indices
    with pytest.raises(RuntimeError, match="only one function can have a docstring"):
        internal.boolean_dispatch(
            "flag", 1, False, _without_indices, test_an_argument_chooses_the_function.__class__, "", ""
        )


@pytest.mark.parametrize("name", ["Any", "Dict", "Final", "List", "Optional", "Tuple", "Union"])
def test_the_names_of_typing_are_there(name):
    assert getattr(internal, name) is getattr(typing, name)


def test_a_program_imports_it_first():
    code = (
        "import msadapter; msadapter.install()\n"
        "from torch._jit_internal import BroadcastingList2, Future, _disable_emit_hooks, is_scripting\n"
        "import torch\n"
        "with _disable_emit_hooks():\n"
        "    print(is_scripting(), Future is torch.futures.Future, torch._jit_internal.export is torch.jit.export)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    assert done.stdout.split() == ["False", "True", "True"]
