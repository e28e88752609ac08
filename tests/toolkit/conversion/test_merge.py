"""LoRA in a Megatron checkpoint: the parts are merged by themselves, and what does not belong together is named."""

from __future__ import annotations

import argparse
import json
import sys

import pytest

from megatron_ms.conversion import arguments_program
from megatron_ms.conversion.merge_program import merged
from megatron_ms.inference.engine import provide_torch


@pytest.fixture
def torch(torch_by_name):
    provide_torch()
    import torch

    return torch


def _part(torch, rows: int, columns: int, dtype) -> dict:
    torch.manual_seed(rows)
    layer = "decoder.layers.0.self_attention.linear_qkv"
    return {
        "embedding.word_embeddings.weight": torch.randn(4, columns, dtype=dtype),
        f"{layer}.base_layer.weight": torch.randn(rows, columns, dtype=dtype),
        f"{layer}.base_layer.bias": torch.randn(rows, dtype=dtype),
        f"{layer}.lora_A.default.weight": torch.randn(2, columns, dtype=dtype),
        f"{layer}.lora_B.default.weight": torch.randn(rows, 2, dtype=dtype),
        f"{layer}.lora_A.default._extra_state": None,
    }


@pytest.mark.parametrize("name", ["float32", "bfloat16"])
def test_a_weight_gets_the_product_and_a_bias_stays(torch, name):
    part = _part(torch, 6, 5, getattr(torch, name))
    layer = "decoder.layers.0.self_attention.linear_qkv"
    before = {key: value.clone() for key, value in part.items() if value is not None}
    found = merged(part, 0.5)
    assert set(found) == {"embedding.word_embeddings.weight", f"{layer}.weight", f"{layer}.bias"}
    wide = {key: value.double() for key, value in before.items()}
    product = wide[f"{layer}.lora_B.default.weight"] @ wide[f"{layer}.lora_A.default.weight"]
    expected = wide[f"{layer}.base_layer.weight"] + 0.5 * product
    assert found[f"{layer}.weight"].dtype == getattr(torch, name)
    torch.testing.assert_close(
        found[f"{layer}.weight"].double(), expected, rtol=8e-3 if name != "float32" else 1e-6, atol=1e-6
    )
    assert torch.equal(found[f"{layer}.bias"], before[f"{layer}.base_layer.bias"])


@pytest.mark.parametrize("across", [0, 1], ids=["rows of B", "columns of A"])
def test_two_parts_merged_alone_are_the_whole_merged(torch, across):
    """Tensor parallelism divides B where the weight's rows are divided, and A where its columns are."""
    whole = _part(torch, 6, 4, torch.float32)
    layer = "decoder.layers.0.self_attention.linear_qkv"
    weight, a, b = (
        f"{layer}.base_layer.weight",
        f"{layer}.lora_A.default.weight",
        f"{layer}.lora_B.default.weight",
    )
    divided = {weight: across, (b if across == 0 else a): across}
    parts = []
    for rank in range(2):
        part = {key: whole[key] for key in (weight, a, b)}
        parts.append(part | {key: whole[key].chunk(2, dim)[rank] for key, dim in divided.items()})
    joined = torch.cat([merged(part, 2.0)[f"{layer}.weight"] for part in parts], across)
    torch.testing.assert_close(joined, merged(whole, 2.0)[f"{layer}.weight"])


def test_what_cannot_be_merged_is_named(torch):
    part = _part(torch, 6, 4, torch.float32)
    layer = "decoder.layers.0.self_attention.linear_qkv"
    alone = {key: value for key, value in part.items() if "lora_B" not in key}
    with pytest.raises(ValueError, match="there is no .*lora_B"):
        merged(alone, 1.0)
    with pytest.raises(ValueError, match="there is no .*linear_qkv.weight"):
        merged({key: value for key, value in part.items() if "base_layer" not in key}, 1.0)
    with pytest.raises(ValueError, match=r"weight1_lora_a: matrices of this kind cannot be merged"):
        merged(
            {**part, "decoder.layers.0.mlp.experts.weight1_lora_a": part[f"{layer}.lora_A.default.weight"]},
            1.0,
        )


def test_a_copy_has_other_arguments_and_the_same_weights(torch, tmp_path, monkeypatch):
    """The source stays as it is, and optimizer and random state are left out."""
    weights = _part(torch, 6, 4, torch.float32)
    state = {
        "args": argparse.Namespace(swiglu=False, seed=3),
        "model": weights,
        "optimizer": {},
        "rng_state": [],
    }
    file = tmp_path / "iter_0000004/mp_rank_00/model_optim_rng.pt"
    file.parent.mkdir(parents=True)
    torch.save(state, file)
    torch.save({}, file.with_name("distrib_optim.pt"))
    before = file.read_bytes()
    words = [tmp_path / "iter_0000004", tmp_path / "made", json.dumps({"swiglu": True})]
    monkeypatch.setattr(sys, "argv", ["arguments_program.py", *map(str, words)])
    arguments_program.main()
    (made,) = (tmp_path / "made").rglob("*.pt")
    found = torch.load(made, weights_only=False)
    assert made.relative_to(tmp_path / "made") == file.relative_to(tmp_path / "iter_0000004")
    assert found.keys() == {"args", "model"} and (found["args"].swiglu, found["args"].seed) == (True, 3)
    assert all(value is None or torch.equal(found["model"][name], value) for name, value in weights.items())
    assert file.read_bytes() == before
