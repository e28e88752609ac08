"""torch.jit.annotations: what programs import from it, and its answers about annotations."""

from __future__ import annotations

import typing

import pytest

from msadapter.jit import annotations

NAMES = "Any Dict List Optional Tuple Union"


@pytest.mark.parametrize("name", NAMES.split())
def test_the_names_of_typing_are_there(name):
    assert getattr(annotations, name) is getattr(typing, name)


# PyTorch 2.13's answers
KINDS = {
    "is_list": [typing.List[int], list[int]],  # noqa: UP006
    "is_dict": [typing.Dict[int, str], dict[int, str]],  # noqa: UP006
    "is_tuple": [typing.Tuple[int], tuple[int, ...]],  # noqa: UP006
    "is_union": [typing.Optional[int], typing.Union[int, str, None], int | None, int | str],  # noqa: UP007, UP045
    "is_optional": [typing.Optional[int], int | None],  # noqa: UP045
}


@pytest.mark.parametrize("name", KINDS)
def test_kinds_of_annotations(name):
    every = [kind for kinds in KINDS.values() for kind in kinds] + [int, list, dict, tuple, None]
    assert [kind for kind in every if getattr(annotations, name)(kind)] == [
        kind for kind in every if kind in KINDS[name]
    ]


@pytest.mark.parametrize("name", ["List", "Dict", "Tuple", "Union", "Optional"])
def test_a_container_without_types_is_refused(name):
    with pytest.raises(RuntimeError, match=f"{name} is used without"):
        getattr(annotations, f"is_{name.lower()}")(getattr(typing, name))


def test_functions_of_any_number_of_arguments():
    class Callable:
        def __call__(self, *args):
            return args

    found = [annotations.is_vararg(f) for f in (lambda *x: x, lambda x: x, Callable(), 3)]
    assert found == [True, False, True, False]
