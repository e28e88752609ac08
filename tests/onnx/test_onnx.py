"""torch.onnx: exporting refuses by its name, and modules that ask whether they are exported get False."""

from __future__ import annotations

import pytest

import msadapter as torch


def test_export_refuses_and_writes_no_file(tmp_path):
    with pytest.raises(NotImplementedError, match=r"torch\.onnx\.export .*docs/coverage\.md"):
        torch.onnx.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_there_are_no_programs():
    with pytest.raises(NotImplementedError, match=r"torch\.onnx\.ONNXProgram"):
        torch.onnx.ONNXProgram()


def test_nothing_is_being_exported():
    assert torch.onnx.is_in_onnx_export() is False
