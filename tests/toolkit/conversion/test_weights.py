"""Tensors on disk are compared by name, type, shape and bytes, and damaged files are named."""

from __future__ import annotations

import json
import shutil

import numpy
import pytest
from safetensors.numpy import save_file

from megatron_ms.conversion import weights
from megatron_ms.errors import UserError

ONE = {"a": numpy.arange(6, dtype=numpy.float32).reshape(2, 3), "b": numpy.ones(2, numpy.float16)}


def stored(folder, values) -> dict[str, weights.Tensor]:
    folder.mkdir()
    save_file(values, folder / "model.safetensors")
    return weights.tensors(folder)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (ONE, ""),
        ({"a": ONE["a"]}, "b is missing"),
        (ONE | {"c": ONE["b"]}, "c is new"),
        (ONE | {"a": ONE["a"].reshape(3, 2)}, "a was F32 [2, 3] and is F32 [3, 2]"),
        (ONE | {"b": ONE["b"].astype(numpy.float32)}, "b was F16 [2] and is F32 [2]"),
        (ONE | {"a": -ONE["a"]}, "a has other values"),
    ],
)
def test_what_is_different_is_named(tmp_path, other, said) -> None:
    assert weights.difference(stored(tmp_path / "one", ONE), stored(tmp_path / "other", other)) == said


def test_damaged_files_are_named(tmp_path) -> None:
    folder = tmp_path / "model"
    stored(folder, ONE)
    shutil.copy(folder / "model.safetensors", folder / "more.safetensors")
    with pytest.raises(UserError, match="more.safetensors: has ., which another file has too"):
        weights.tensors(folder)
    (folder / "more.safetensors").write_bytes(b"\1")
    with pytest.raises(UserError, match="more.safetensors: is not a complete safetensors file"):
        weights.tensors(folder)
    index = folder / weights.INDEX
    index.write_text(json.dumps({"weight_map": {"a": "../model/model.safetensors"}}))
    with pytest.raises(UserError, match=r"names \.\./model/model.safetensors, which"):
        weights.files(folder)
    index.write_text(json.dumps({"weight_map": {"a": "model.safetensors"}}))
    assert set(weights.tensors(folder)) == {"a", "b"}
    for content in ("[]", "[" * 10**5):
        index.write_text(content)
        with pytest.raises(UserError, match="is not an index of weights"):
            weights.files(folder)
    with pytest.raises(UserError, match="has no safetensors files"):
        weights.files(tmp_path)


def test_a_tensor_is_removed(tmp_path) -> None:
    before = stored(tmp_path / "one", ONE)
    weights.remove(tmp_path / "one", "b")
    assert weights.tensors(tmp_path / "one") == {"a": before["a"]}
