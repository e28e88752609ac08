"""Calls that a checkpoint may not make: torch.load(weights_only=True) runs nothing but what rebuilds tensors."""

from __future__ import annotations

import io
import pickle

import pytest

import msadapter as torch

from .pickle_ops import Call, Name, archive, legacy

LAYOUT = Name("torch.serialization._get_layout")
FROM_TYPE = Name("torch._tensor._rebuild_from_type_v2")
REFUSED = (pickle.UnpicklingError, RuntimeError)


def _refused(obj) -> None:
    for content in (archive(obj), legacy(obj)):
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(content), weights_only=True)


@pytest.mark.parametrize(
    "name",
    [
        "torch.load",
        "torch.save",
        "torch.builtins",
        "load",
        "os",
        "torch.__dict__",
        "__dict__",
        "torch.float32",
        3,
        (),
    ],
)
def test_only_layouts_are_found_by_the_name_of_a_layout(name):
    _refused(Call(LAYOUT, name))


def test_a_layout_is_found():
    assert torch.load(io.BytesIO(archive(Call(LAYOUT, "torch.sparse_coo")))) is torch.sparse_coo


def test_a_rebuilder_calls_rebuilders_only(tmp_path):
    target = tmp_path / "written"
    save = Call(LAYOUT, "torch.save")
    for function in (
        save,
        Name("torch.Size"),
        Name("collections.Counter"),
        Name("torch.device"),
        LAYOUT,
        FROM_TYPE,
    ):
        _refused(Call(FROM_TYPE, function, Name("torch.Tensor"), ([1], str(target)), {}))
    assert not target.exists()
