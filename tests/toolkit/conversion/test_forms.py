"""Families whose code transformers does not have: their folders compute what the class in their place computes, and come back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

from megatron_ms import commands
from megatron_ms.conversion import checkpoints, forms, forward, reference, weights
from megatron_ms.conversion.work import ProofError
from megatron_ms.errors import UserError
from megatron_ms.models.foreign import FOREIGN, VARIANTS
from megatron_ms.training.folder import LATEST
from tests.toolkit import fake_upstream

pytest.importorskip("transformers", reason="needs the extra hf")


def opened(model: Path, family: str) -> tuple[forms.Form, dict]:
    form = forms.form_of(checkpoints.raw_facts_of(model), family, model)
    assert form is not None
    return form, checkpoints.facts_of(model)


def in_form(model: Path, family: str, folder: Path) -> Path:
    """The model as transformers loads it."""
    form, facts = opened(model, family)
    folder.mkdir()
    forms.write(model, folder, form, facts)
    (folder / "config.json").write_text(json.dumps(facts))
    return folder


@pytest.mark.parametrize("family", FOREIGN)
def test_the_class_in_its_place_computes_the_same(family, tmp_path) -> None:
    """The code that config.json names is not there, so this also tells that it is not looked for."""
    model = FOREIGN[family].make(tmp_path / "model")
    made = forward.logits(forward.load(in_form(model, family, tmp_path / "form")))
    ids = forward.sample(FOREIGN[family].build().config.vocab_size)
    expected = reference.logits(model, ids, family == "Baichuan2")
    assert forward.compare(expected, made, "F32", family) < 1e-5
    form, facts = opened(model, family)
    (tmp_path / "back").mkdir()
    forms.restore(tmp_path / "form", tmp_path / "back", form, facts)
    before, after = weights.tensors(model), weights.tensors(tmp_path / "back")
    if family == "Baichuan2":
        assert before.pop(forms.HEAD) != after.pop(forms.HEAD)
        forms.check_head(tmp_path / "back", form)
        with pytest.raises(ProofError, match="rows whose length is not one"):
            forms.check_head(model, form)
    assert weights.difference(before, after) == ""


def test_slopes_of_linear_biases() -> None:
    """8 heads and 12 heads, by hand from the paper."""
    eight = [2.0**-n for n in range(1, 9)]
    assert reference._slopes(8) == eight
    assert reference._slopes(12) == [*eight, *(2.0**-n for n in (0.5, 1.5, 2.5, 3.5))]


@pytest.mark.parametrize("family", VARIANTS)
def test_linear_biases_change_what_is_computed(family, tmp_path) -> None:
    """The 13B models of Baichuan: a token far away counts less, and ids have no other position."""
    (toy,) = VARIANTS[family]
    model = toy.make(tmp_path / "model")
    assert checkpoints.facts_of(model)[forms.ALIBI] is True
    linear = reference.logits(model, [5, 9, 5, 9])
    changed(model, max_position_embeddings=64)
    assert forms.ALIBI not in checkpoints.facts_of(model)
    rotated = reference.logits(model, [5, 9, 5, 9])
    assert numpy.allclose(linear[0], rotated[0]) and not numpy.allclose(linear[1], rotated[1])


@pytest.mark.parametrize("family", ["Baichuan", "InternLM2", "Qwen"])
def test_parts_of_a_packed_tensor_may_be_in_several_files(family, tmp_path) -> None:
    from safetensors.torch import load_file, save_file

    model = FOREIGN[family].make(tmp_path / "model")
    whole = load_file(in_form(model, family, tmp_path / "form") / "model.safetensors")
    (tmp_path / "form/model.safetensors").unlink()
    places = {
        name: f"model-0000{1 + number % 3}-of-00003.safetensors" for number, name in enumerate(sorted(whole))
    }
    for file in sorted(set(places.values())):
        save_file(
            {name: value for name, value in whole.items() if places[name] == file}, tmp_path / "form" / file
        )
    (tmp_path / "form" / weights.INDEX).write_text(json.dumps({"weight_map": places}))
    form, facts = opened(model, family)
    (tmp_path / "back").mkdir()
    forms.restore(tmp_path / "form", tmp_path / "back", form, facts)
    assert weights.difference(weights.tensors(model), weights.tensors(tmp_path / "back")) == ""
    index = json.loads((tmp_path / "back" / weights.INDEX).read_text())["weight_map"]
    assert set(index) == set(weights.tensors(model))
    (tmp_path / "back/config.json").write_text((model / "config.json").read_text())
    again = in_form(tmp_path / "back", family, tmp_path / "again")
    assert weights.difference(weights.tensors(tmp_path / "form"), weights.tensors(again)) == ""
    values = next(name for name in whole if name.endswith("v_proj.weight"))
    del whole[values]
    (tmp_path / "less").mkdir()
    save_file(whole, tmp_path / "less/model.safetensors")
    with pytest.raises(ProofError, match="has only a part of the weight of queries, keys and values"):
        forms.restore(tmp_path / "less", tmp_path / "back", form, facts)


def changed(model: Path, **keys: object) -> Path:
    facts = json.loads((model / "config.json").read_text()) | keys
    (model / "config.json").write_text(
        json.dumps({key: value for key, value in facts.items() if value is not None})
    )
    return model


@pytest.mark.parametrize(
    ("family", "keys", "said"),
    [
        ("Baichuan", {"max_position_embeddings": None}, "config.json: has no model_max_length"),
        ("Aquila", {"hidden_act": "gelu"}, "hidden_act is gelu, and only silu is known"),
        ("Aquila", {"hidden_size": None}, "config.json: has no hidden_size"),
        ("InternLM2", {"bias": True}, "bias is true, and InternLM2's published models have none"),
        ("Qwen", {"no_bias": False}, "no_bias is False"),
        ("ChatGLM3", {"rope_ratio": 50}, "rope_ratio is 50, and ChatGLM3's published models have 1"),
        ("ChatGLM3", {"padded_vocab_size": None}, "config.json: has no padded_vocab_size"),
        ("Qwen", {"kv_channels": 16}, "kv_channels is 16, which is not hidden_size / heads"),
    ],
)
def test_other_models_are_refused(family, keys, said, tmp_path) -> None:
    model = changed(FOREIGN[family].make(tmp_path / "model"), **keys)
    with pytest.raises(UserError, match=said):
        checkpoints.facts_of(model)


def test_a_tensor_without_a_place_is_named(tmp_path) -> None:
    from safetensors.numpy import save_file

    model = FOREIGN["Qwen"].make(tmp_path / "model")
    save_file({"transformer.h.0.attn.bias_k": numpy.ones(2, numpy.float32)}, model / "more.safetensors")
    with pytest.raises(
        UserError,
        match=r"more.safetensors: has transformer.h.0.attn.bias_k, which models of Qwen do not have",
    ):
        in_form(model, "Qwen", tmp_path / "form")


@pytest.mark.parametrize(
    ("family", "name", "size"),
    [
        ("ChatGLM3", "transformer.rotary_pos_emb.inv_freq", 4),
        ("InternLM", "model.layers.0.self_attn.rotary_emb.inv_freq", 8),
    ],
)
def test_frequencies_are_compared_and_left_out(family, name, size, tmp_path) -> None:
    """Published folders have them among the weights."""
    from safetensors.numpy import save_file

    model = FOREIGN[family].make(tmp_path / "model")
    right = (1 / 1e4 ** (numpy.arange(0, size, 2) / size)).astype(numpy.float32)
    save_file({name: right}, model / "more.safetensors")
    found = weights.tensors(in_form(model, family, tmp_path / "form"))
    assert name in weights.tensors(model) and not any("inv_freq" in one for one in found)
    for wrong in (right * 2, right[:1]):
        save_file({name: wrong}, model / "more.safetensors")
        with pytest.raises(UserError, match=f"more.safetensors: {name} has other frequencies"):
            forms.write(model, tmp_path / "form", *opened(model, family))


def test_baichuan_without_its_family_is_refused(tmp_path) -> None:
    with pytest.raises(UserError, match="write `recipe: baichuan-7b` or `recipe: baichuan2-7b`"):
        forms.form_of({"model_type": "baichuan"}, "", tmp_path)
    assert forms.form_of({"model_type": "llama"}, "", tmp_path) is None


def test_frequencies_are_read_by_each_name(tmp_path) -> None:
    """Qwen-72B and InternLM2 have another base than Llama, and InternLM2.5 a factor for longer texts."""
    model = FOREIGN["Qwen"].make(tmp_path / "qwen")
    changed(model, rotary_emb_base=1000000)
    assert checkpoints.facts_of(model)["rope_parameters"] == {"rope_type": "default", "rope_theta": 1e6}
    other = changed(
        FOREIGN["InternLM2"].make(tmp_path / "internlm2"), rope_scaling={"type": "dynamic", "factor": 2.0}
    )
    wanted = {"rope_type": "dynamic", "rope_theta": 1e6, "factor": 2.0}
    assert checkpoints.facts_of(other)["rope_parameters"] == wanted


def test_rows_of_length_one_stay_as_they_are() -> None:
    """In each type: what was divided once is not divided again, so that a model comes back bit for bit."""
    import torch

    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        rows = (torch.randn(64, 96, generator=torch.Generator().manual_seed(3)) * 3).to(dtype)
        once = forms._with_unit_rows(rows)
        assert not torch.equal(once, rows)
        assert torch.equal(forms._with_unit_rows(once), once)
        assert torch.allclose(once.float().norm(dim=1), torch.ones(64), atol=4e-3)


def test_an_adapter_of_peft_is_refused(tmp_path, monkeypatch, capsys) -> None:
    """peft would need the class of the family. The message says what there is instead."""
    monkeypatch.chdir(tmp_path)
    toy = FOREIGN["Qwen"]
    toy.make(tmp_path / "model")
    named = [str(tree) for tree in fake_upstream.make_llm(tmp_path / "trees")]
    (tmp_path / "trees/llm/convert_ckpt.py").write_text("raise ValueError('a converter was started')\n")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / LATEST).write_text("4")
    keys = "source: old, output: there, to: adapter, like: model, forward: false"
    (tmp_path / "convert.yaml").write_text(
        f"recipe: {toy.recipe}\nrun: {{trees: {json.dumps(named)}}}\ndataset: {{sequence_length: 64}}\nconvert: {{{keys}}}\n"
    )
    assert commands.main(["convert", "convert.yaml", *toy.words()]) == 2
    said = capsys.readouterr().err
    assert "convert.to: peft cannot load a model of Qwen" in said and "convert.to=huggingface" in said
    assert not list(tmp_path.glob(".there*")) and not (tmp_path / "there").exists()
