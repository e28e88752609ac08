"""The command `convert` merges an adapter, proves it, and leaves nothing behind when it fails."""

from __future__ import annotations

import json
import shutil

import numpy
import pytest

from megatron_ms import commands
from megatron_ms.conversion import forward, weights
from tests.toolkit.packages import needs_packages

pytest.importorskip("transformers", reason="needs the extra hf")


@pytest.fixture
def place(model_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "convert.yaml").write_text("convert: {source: adapter, output: merged}\n")
    return tmp_path


@pytest.fixture
def adapter(place, model_folder):
    """An adapter that changes the outputs."""
    import peft
    import torch

    torch.manual_seed(3)
    options = peft.LoraConfig(r=4, target_modules=["q_proj", "down_proj"], task_type="CAUSAL_LM")
    model = peft.get_peft_model(forward.load(model_folder), options)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(place / "adapter")
    return forward.logits(model.eval())


@needs_packages
def test_the_merged_model_has_the_adapters_output(place, model_folder, adapter, capsys) -> None:
    assert commands.main(["convert", "convert.yaml"]) == 0
    assert "changed: 4" in capsys.readouterr().out
    merged = forward.logits(forward.load(place / "merged"))
    numpy.testing.assert_allclose(merged, adapter, atol=1e-5 * numpy.abs(adapter).max())
    assert numpy.abs(merged - forward.logits(forward.load(model_folder))).max() > 0.1
    said = json.loads((place / "merged/manifest.json").read_text())
    assert said["kind"] == "adapter" and said["files"]["model.safetensors"]["bytes"] > 0
    assert said["proofs"]["tensors"] == 21 and said["proofs"]["unchanged"] == 17
    assert commands.main(["convert", "convert.yaml"]) == 2
    assert "merged exists and is not overwritten" in capsys.readouterr().err
    assert not list(place.glob(".merged*"))


@needs_packages
def test_a_proof_that_fails_leaves_nothing(place, adapter, capsys, monkeypatch) -> None:
    wrong = iter([numpy.ones((2, 2)), numpy.zeros((2, 2))])
    monkeypatch.setattr(forward, "logits", lambda model: next(wrong))
    assert commands.main(["convert", "convert.yaml"]) == 1
    assert (
        "not proven, and nothing is written: adapter and merged model: logits differ by 1"
        in capsys.readouterr().err
    )
    assert not (place / "merged").exists() and not list(place.glob(".merged*"))


def test_wrong_input_is_named(place, model_folder, capsys) -> None:
    (place / "adapter").mkdir()
    (place / "adapter/adapter_config.json").write_text("{}")
    (place / "none").mkdir()
    shutil.copytree(model_folder, place / "model")
    for words, said in (
        (["convert.source=nowhere"], "convert.source: there is no folder "),
        (["convert.source=none"], "latest_checkpointed_iteration.txt is in "),
        (["convert.source=model"], "model is a model of this format already"),
        (["convert.to=adapter"], "convert.to: the source is an adapter already"),
        (["convert.output=none/a/b"], "/none/a"),
        ([], "adapter_config.json: the file does not name the adapter's model"),
        (["convert.like=none"], "belongs to the model none, and there is no such folder"),
        (["convert.from=x"], "there is no such key of convert"),
    ):
        assert commands.main(["convert", "convert.yaml", *words]) == 2
        assert said in capsys.readouterr().err
        assert not list(place.glob(".merged*"))


def test_a_missing_weight_is_named(model_folder, place) -> None:
    from safetensors.numpy import load_file, save_file

    shutil.copytree(model_folder, place / "model")
    (file,) = weights.files(place / "model")
    values = load_file(file)
    del values["model.layers.1.mlp.up_proj.weight"]
    save_file(values, file, metadata={"format": "pt"})
    with pytest.raises(forward.ProofError, match="missing keys: model.layers.1.mlp.up_proj.weight"):
        forward.load(place / "model")
