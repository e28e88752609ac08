"""torch.library: overloads, and the older form of impl."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter.library import Library, impl


@pytest.fixture
def library():
    made = Library("toy", "DEF")
    yield made
    made._destroy()


def test_overloads_are_chosen_by_the_arguments(library):
    library.define("scale.Tensor(Tensor x, Tensor by, *, int? times=None) -> Tensor")
    library.define("scale.List(Tensor x, int[] by, *, int? times=None) -> Tensor")

    @impl(library, "scale.Tensor", "CompositeExplicitAutograd")
    def of_tensor(x, by, *, times=None):
        return x * by

    @impl(library, "scale.List", "CompositeExplicitAutograd")
    def of_list(x, by, *, times=None):
        return x * sum(by) * (times or 1)

    x = torch.ones(2)
    assert torch.ops.toy.scale(x, torch.tensor(3.0)).tolist() == [3, 3]
    assert torch.ops.toy.scale(x, [1, 4], times=2).tolist() == [10, 10]
    assert torch.ops.toy.scale.List(x, [2]).tolist() == [2, 2]
    assert torch.ops.toy.scale.overloads() == ["Tensor", "List"]
    with pytest.raises(RuntimeError, match="no overload takes these arguments"):
        torch.ops.toy.scale(x, "three")
    with pytest.raises(AttributeError, match="no overload"):
        torch.ops.toy.scale.Scalar  # noqa: B018


def test_a_name_is_either_overloaded_or_not(library):
    library.define("plain(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="without overloads"):
        library.define("plain.Tensor(Tensor x) -> Tensor")


def test_nothing_is_left_of_a_library():
    made = Library("other", "DEF")
    made.define("f.A(Tensor x) -> Tensor")
    made._destroy()
    with pytest.raises(AttributeError):
        torch.ops.other.f  # noqa: B018


def test_numbers_of_any_kind_are_scalars():
    """torch.types.Number is the union of the kinds of numbers, and one of them more would be another type."""

    def scaled(
        x: torch.Tensor, by: torch.types.Number, more: torch.types.Number | None = None
    ) -> torch.Tensor:
        return x * by * (more or 1)

    text = torch.library.infer_schema(scaled, mutates_args=())
    assert text == "(Tensor x, Scalar by, Scalar? more=None) -> Tensor"
    operator = torch.library.custom_op("numbers_of_any_kind::scaled", scaled, mutates_args=())
    assert operator(torch.ones(2), 2.5, more=2).tolist() == [5, 5]

    def refused(x: int | float) -> torch.Tensor: ...

    with pytest.raises(ValueError, match="unsupported type"):
        torch.library.infer_schema(refused, mutates_args=())
