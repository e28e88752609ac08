"""torch.export: nothing is traced, so every entry refuses by its name, and classes serve for annotations."""

from __future__ import annotations

import pytest

import msadapter as torch


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("export", (torch.nn.Linear(2, 2), (torch.ones(1, 2),))),
        ("save", (None, "program.pt2")),
        ("load", ("program.pt2",)),
        ("unflatten", (None,)),
        ("Dim", ("batch",)),
        ("ExportedProgram", ()),
    ],
)
def test_every_entry_names_itself_and_the_page(name, arguments):
    with pytest.raises(NotImplementedError, match=rf"torch\.export\.{name} .*docs/coverage\.md"):
        getattr(torch.export, name)(*arguments)


def test_no_file_is_written(tmp_path):
    with pytest.raises(NotImplementedError):
        torch.export.save(None, tmp_path / "program.pt2")
    assert list(tmp_path.iterdir()) == []


def test_classes_can_be_asked_for():
    assert not isinstance(torch.nn.Linear(2, 2), torch.export.ExportedProgram)
