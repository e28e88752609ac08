"""Adapters of peft as matrices of Megatron: what is put where, and what Megatron's LoRA does not have."""

from __future__ import annotations

import json

import pytest

from megatron_ms.conversion import adopt
from megatron_ms.conversion.adapting_program import adapted
from megatron_ms.conversion.coding import decode, encode
from megatron_ms.errors import UserError
from megatron_ms.inference.engine import provide_torch

RANK, WIDTH = 2, 24
MODULES = {
    "self_attn.q_proj": (24, WIDTH), "self_attn.k_proj": (12, WIDTH), "self_attn.v_proj": (12, WIDTH),
    "self_attn.o_proj": (WIDTH, 24), "mlp.gate_proj": (30, WIDTH), "mlp.up_proj": (30, WIDTH), "mlp.down_proj": (WIDTH, 30),
}  # fmt: skip


@pytest.fixture
def torch(torch_by_name):
    provide_torch()
    import torch

    return torch


@pytest.fixture
def folder(torch, tmp_path):
    """A model of one layer, and an adapter for five of its seven modules, of which two share a matrix A."""
    from safetensors.torch import save_file

    torch.manual_seed(1)
    weights = {f"model.layers.0.{name}.weight": torch.randn(*shape) for name, shape in MODULES.items()}
    (tmp_path / "base").mkdir()
    save_file({**weights, "model.norm.weight": torch.ones(WIDTH)}, tmp_path / "base" / "model.safetensors")
    made = {}
    for name in (
        "self_attn.q_proj",
        "self_attn.k_proj",
        "self_attn.v_proj",
        "self_attn.o_proj",
        "mlp.up_proj",
    ):
        rows, columns = MODULES[name]
        module = f"base_model.model.model.layers.0.{name}"
        made[f"{module}.lora_A.weight"] = torch.randn(RANK, columns)
        made[f"{module}.lora_B.weight"] = torch.randn(rows, RANK)
    first = "base_model.model.model.layers.0.self_attn."
    made[f"{first}v_proj.lora_A.weight"] = made[f"{first}q_proj.lora_A.weight"].clone()
    (tmp_path / "adapter").mkdir()
    save_file(made, tmp_path / "adapter" / "adapter_model.safetensors")
    facts = {
        "peft_type": "LORA",
        "r": RANK,
        "lora_alpha": 3,
        "base_model_name_or_path": str(tmp_path / "base"),
    }
    (tmp_path / "adapter" / adopt.adapter.CONFIG).write_text(json.dumps(facts))
    return tmp_path


def test_each_module_gets_its_own_product(torch, folder):
    """Also where several modules share a layer of Megatron, and where the adapter has nothing for one of them."""
    from safetensors.torch import load_file

    found = adopt._read(folder / "adapter")
    blocks = adopt._blocks(found)
    assert (found.rank, found.alpha, blocks) == (RANK, 3.0, 2)
    adopt._encode(folder / "base", found, blocks, folder / "coded", folder / "others.safetensors")
    coded, base = (load_file(folder / name / "model.safetensors") for name in ("coded", "base"))
    others = load_file(folder / "others.safetensors")
    assert torch.equal(coded["model.norm.weight"], base["model.norm.weight"])
    touched = set()
    for name in MODULES:
        weight = f"model.layers.0.{name}.weight"
        carried = decode(coded[weight], blocks * RANK)
        if carried is None:
            assert torch.equal(coded[weight], base[weight])
            continue
        touched.add(name)
        number, by_rows, matrix = carried
        a, b = (others[f"{number}.A"], matrix) if by_rows else (matrix, others[f"{number}.B"])
        own = found.layers["model.layers.0"].get(name)
        expected = own[1] @ own[0] if own else torch.zeros(MODULES[name])
        torch.testing.assert_close(b @ a, expected)
    assert touched == set(MODULES) - {"mlp.down_proj"}


def test_matrices_stand_beside_their_weights(torch):
    torch.manual_seed(2)
    layer, b = "decoder.layers.0.self_attention.linear_qkv", torch.randn(6, RANK)
    weights = {
        f"{layer}.weight": torch.randn(6, 8),
        f"{layer}.bias": torch.randn(6),
        "norm.weight": torch.ones(8),
    }
    coded = {**weights, f"{layer}.weight": encode(weights[f"{layer}.weight"], b, 4, True)}
    others = {"4.A": torch.randn(RANK, 8)}
    found = adapted(weights, coded, others, RANK)
    assert set(found) == {
        "norm.weight",
        *(
            f"{layer}.{end}"
            for end in (
                "base_layer.weight",
                "base_layer.bias",
                "lora_A.default.weight",
                "lora_B.default.weight",
            )
        ),
    }
    assert torch.equal(found[f"{layer}.lora_B.default.weight"], b)
    assert torch.equal(found[f"{layer}.lora_A.default.weight"], others["4.A"])
    coded[f"{layer}.weight"] = encode(weights[f"{layer}.weight"], torch.randn(RANK, 8), 4, False)
    with pytest.raises(ValueError, match="has not split the matrices of LoRA as Megatron does"):
        adapted(weights, coded, {"4.B": b}, RANK)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("use_dora", True),
        ("use_rslora", True),
        ("bias", "all"),
        ("rank_pattern", {"q_proj": 4}),
        ("modules_to_save", ["lm_head"]),
    ],
)
def test_what_megatrons_matrices_cannot_be_is_named(folder, name, value):
    place = folder / "adapter" / adopt.adapter.CONFIG
    place.write_text(json.dumps(json.loads(place.read_text()) | {name: value}))
    with pytest.raises(UserError, match=f"{name} is .*merge it instead"):
        adopt._read(folder / "adapter")


def test_damaged_adapters_are_named(torch, folder):
    from safetensors.torch import load_file, save_file

    file = folder / "adapter" / "adapter_model.safetensors"
    whole = load_file(file)
    q = "base_model.model.model.layers.0.self_attn.q_proj.lora_"
    for content, said in (
        (
            {**whole, "base_model.model.lm_head.lora_A.weight": torch.ones(RANK, 2)},
            "lm_head.* has no place in Megatron",
        ),
        (
            {n: v for n, v in whole.items() if n != f"{q}A.weight"},
            "self_attn.q_proj has no matrices A and B of rank 2",
        ),
        (
            {**whole, f"{q}A.weight": torch.ones(RANK + 1, WIDTH)},
            "self_attn.q_proj has no matrices A and B of rank 2",
        ),
    ):
        save_file(content, file)
        with pytest.raises(UserError, match=said):
            adopt._read(folder / "adapter")
    file.write_bytes(b"damaged")
    with pytest.raises(UserError, match="is not a complete adapter"):
        adopt._read(folder / "adapter")
