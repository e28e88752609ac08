"""Matrices of LoRA carried by weights: they come through what a converter does to weights, and nothing else looks like one."""

from __future__ import annotations

import pytest

from megatron_ms.conversion.coding import decode, encode
from megatron_ms.conversion.coding_program import Coder
from megatron_ms.inference.engine import provide_torch

RANK, LAYER = 3, "decoder.layers.0.{}"


@pytest.fixture
def torch(torch_by_name):
    provide_torch()
    import torch

    return torch


@pytest.mark.parametrize("name", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("number", [0, 1, 127, 128, 16255])
def test_what_is_encoded_is_decoded(torch, name, number):
    torch.manual_seed(number)
    weight = torch.randn(12, 8, dtype=getattr(torch, name))
    for by_rows, matrix in ((True, torch.randn(12, RANK)), (False, torch.randn(RANK, 8))):
        matrix = matrix.to(weight.dtype)
        found = decode(encode(weight, matrix, number, by_rows), RANK)
        assert found is not None and found[:2] == (number, by_rows) and torch.equal(found[2], matrix)
        nothing = decode(encode(weight, torch.zeros_like(matrix), number, by_rows), RANK)
        assert nothing is not None and nothing[:2] == (number, by_rows) and not nothing[2].any()


def test_other_tensors_carry_nothing(torch):
    torch.manual_seed(0)
    coded = encode(torch.zeros(12, 8), torch.randn(12, RANK), 5, True)
    disturbed, mixed = coded.clone(), coded.clone()
    disturbed[3, 7] = 1.0  # a row was added to another
    mixed[3, RANK + 1] = 4.0  # rows of two layers
    for tensor in (
        torch.randn(12, 8),
        torch.zeros(12, 8),
        torch.ones(8),
        torch.randn(2, 2),
        disturbed,
        mixed,
    ):
        assert decode(tensor, RANK) is None


def test_what_cannot_be_carried_is_refused(torch):
    weight = torch.zeros(12, 8)
    for matrix, number, said in (
        (torch.zeros(11, RANK), 0, "cannot carry"),
        (torch.zeros(12, 7), 0, "cannot carry"),
        (torch.zeros(12, RANK, dtype=torch.float64), 0, "the matrix torch.float64"),
        (torch.zeros(12, RANK), 128 * 127, "too large"),
    ):
        with pytest.raises(ValueError, match=said):
            encode(weight, matrix, number, True)


def _part(torch, rank: int, ranks: int) -> dict:
    """What a tensor parallel rank has of fused queries, keys and values, and of the layer that joins them."""
    generator = torch.Generator().manual_seed(7)
    found = {}
    for kind, rows, columns in (("linear_qkv", 24, 16), ("linear_proj", 16, 24)):
        layer = LAYER.format(kind)
        weight, a, b = (
            torch.randn(*shape, generator=generator)
            for shape in ((rows, columns), (RANK, columns), (rows, RANK))
        )
        by_rows = kind == "linear_qkv"
        mine = slice(rank * 24 // ranks, (rank + 1) * 24 // ranks)
        found[f"{layer}.base_layer.weight"] = weight[mine] if by_rows else weight[:, mine]
        found[f"{layer}.lora_A.default.weight"] = a if by_rows else a[:, mine]
        found[f"{layer}.lora_B.default.weight"] = b[mine] if by_rows else b
        found[f"{layer}.lora_A.default._extra_state"] = None
    return found


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_matrices_of_all_ranks_are_those_of_one(torch, ranks):
    coder = Coder()
    parts = [coder.coded(_part(torch, rank, ranks), f"mp_rank_{rank:02}", "model") for rank in range(ranks)]
    assert sorted(coder.matrices) == ["0.B", "1.A"]
    whole = _part(torch, 0, 1)
    for kind, across in (("linear_qkv", 0), ("linear_proj", 1)):
        layer = LAYER.format(kind)
        joined = torch.cat([part[f"{layer}.weight"] for part in parts], across)
        if kind == "linear_qkv":
            joined = joined.flip(0)  # as a converter moves rows
        number, by_rows, matrix = decode(joined, RANK)
        a, b = (whole[f"{layer}.lora_{side}.default.weight"] for side in "AB")
        assert torch.equal(matrix, b.flip(0) if by_rows else a)
        assert torch.equal(coder.matrices[f"{number}.{'A' if by_rows else 'B'}"], a if by_rows else b)


def test_expert_parallel_ranks_have_the_same_layers(torch):
    coder = Coder(expert=2)
    first, second = (coder.coded(_part(torch, 0, 1), f"mp_rank_00_001_00{rank}", "model") for rank in (0, 1))
    assert sorted(coder.matrices) == ["0.B", "1.A"]
    assert all(torch.equal(first[name], second[name]) for name in first)
    coder.coded(_part(torch, 0, 1), "mp_rank_00_002_000", "model")
    assert sorted(coder.matrices) == ["0.B", "1.A", "2.B", "3.A"]


def test_ranks_that_disagree_and_other_layers_are_named(torch):
    coder, part = Coder(), _part(torch, 1, 2)
    coder.coded(_part(torch, 0, 2), "mp_rank_00", "model")
    part[LAYER.format("linear_qkv") + ".lora_A.default.weight"] += 1
    with pytest.raises(ValueError, match="linear_qkv: ranks have different copies"):
        coder.coded(part, "mp_rank_01", "model")
    for layer in (
        "decoder.layers.0.mlp.experts.linear_fc1",
        "decoder.layers.0.self_attention.linear_kv_up_proj",
    ):
        strange = {f"{layer}.lora_A.default.weight": torch.zeros(RANK, 4)}
        with pytest.raises(
            ValueError, match="cannot be put into an adapter of peft; convert.to: huggingface adds"
        ):
            coder.coded(strange, "mp_rank_00", "model")
