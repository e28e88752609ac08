"""The choice of experts, rotary angles of several positions, tensors in parts: against formulas written out here."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter import torch_npu


def _chosen(row, k, groups, kept, two):
    """The experts of one token, found by sorting Python numbers."""
    size = len(row) // groups
    parts = [row[i * size : (i + 1) * size] for i in range(groups)]
    worth = [sum(sorted(p)[-2:]) if two else max(p) for p in parts]
    stay = sorted(range(groups), key=lambda i: -worth[i])[:kept]
    allowed = [e for e in range(len(row)) if e // size in stay]
    return sorted(allowed, key=lambda e: -row[e])[:k]


@pytest.mark.parametrize("norm_type", [0, 1])
@pytest.mark.parametrize("groups, kept, mode", [(1, 1, 0), (4, 2, 0), (4, 2, 1), (4, 4, 1)])
def test_experts_and_weights(norm_type, groups, kept, mode):
    generator = torch.Generator().manual_seed(norm_type + groups)
    x, bias = torch.randn(5, 16, generator=generator), torch.randn(16, generator=generator) * 0.1
    weights, experts, scores = torch_npu.npu_moe_gating_top_k(
        x,
        3,
        bias=bias,
        k_group=kept,
        group_count=groups,
        group_select_mode=mode,
        norm_type=norm_type,
        out_flag=True,
        routed_scaling_factor=2.5,
    )
    expected = x.softmax(-1) if norm_type == 0 else x.sigmoid()
    torch.testing.assert_close(scores, expected)
    want = [_chosen(row, 3, groups, kept, mode == 1) for row in (expected + bias).tolist()]
    assert experts.tolist() == want and experts.dtype == torch.int32
    taken = expected.gather(1, torch.tensor(want))
    if norm_type == 1:
        taken = taken / taken.sum(-1, keepdim=True)
    torch.testing.assert_close(weights, taken * 2.5)


def test_gating_has_the_gradient_of_its_weights():
    x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda v: torch_npu.npu_moe_gating_top_k(v, 2, norm_type=1)[0], (x,))
    with pytest.raises(RuntimeError, match="group_count = 3"):
        torch_npu.npu_moe_gating_top_k(x, 2, group_count=3)


def _turn(x, cos, sin, mode):
    """Rotates the pairs of each row, written as complex products."""
    pairs = x.unflatten(-1, (2, -1)).transpose(-1, -2) if mode == "half" else x.unflatten(-1, (-1, 2))
    turned = torch.view_as_complex(pairs.contiguous()) * torch.complex(cos, sin).unsqueeze(1)
    pairs = torch.view_as_real(turned)
    return pairs.transpose(-1, -2).flatten(-2) if mode == "half" else pairs.flatten(-2)


@pytest.mark.parametrize("mode", ["half", "interleave"])
@pytest.mark.parametrize("sections", [None, [1, 1, 2]])
def test_angles_of_three_positions(mode, sections):
    generator = torch.Generator().manual_seed(1)
    angles = torch.randn(10, 4, generator=generator)
    cache = torch.cat([angles.cos(), angles.sin()], -1)
    query, key = torch.randn(6, 2 * 8, generator=generator), torch.randn(6, 8, generator=generator)
    positions = torch.randint(0, 10, (3, 6) if sections else (6,), generator=generator)
    if sections:
        owner = torch.tensor([row for row, n in enumerate(sections) for _ in range(n)])
        mine = torch.stack([angles[positions[owner[i]], i] for i in range(4)], -1)
    else:
        mine = angles[positions]
    found = torch_npu.npu_mrope(positions, query, key, cache, 8, mrope_section=sections, rotary_mode=mode)
    for have, x in zip(found, (query, key), strict=True):
        want = _turn(x.reshape(6, -1, 8), mine.cos(), mine.sin(), mode).reshape(x.shape)
        torch.testing.assert_close(have, want)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("fixed_bytes", [0, 100, 4096])
def test_parts_give_the_same_bits(dtype, fixed_bytes):
    x = torch.randn(64, 16, generator=torch.Generator().manual_seed(2)).to(dtype)
    x.view(-1)[:4] = torch.tensor([float("nan"), float("-inf"), -0.0, 1e-7]).to(dtype)
    size = x.element_size()
    pdf = torch.zeros(1, 256, dtype=torch.int32)
    mantissa = torch.zeros(x.numel() * (size - 1) // size, dtype=dtype)
    fixed, var = torch.zeros(fixed_bytes // size, dtype=dtype), torch.zeros(x.numel(), dtype=dtype)
    parts = torch_npu.npu_hans_encode(x, True, False, out=(pdf, mantissa, fixed, var))
    assert parts[0] is pdf and pdf.sum() == x.numel() and (pdf > 0).sum() > 3
    back = torch.empty_like(x)
    assert torch_npu.npu_hans_decode(mantissa, fixed, var, pdf, False, out=back) is back
    words = torch.int32 if size == 4 else torch.int16
    assert torch.equal(back.view(words), x.view(words))
    turned = torch.empty(16, 64, dtype=dtype).t()
    assert torch_npu.npu_hans_decode(mantissa, fixed, var, pdf, False, out=turned) is turned
    assert torch.equal(turned.contiguous().view(words), x.view(words))
    with pytest.raises(RuntimeError, match="do not fit"):
        torch_npu.npu_hans_encode(x, out=(pdf, mantissa[:3], fixed, var))
    with pytest.raises(RuntimeError, match="contiguous"):
        torch_npu.npu_hans_encode(x, out=(pdf, torch.zeros(4 * x.numel(), dtype=dtype)[::2], fixed, var))


def test_exchange_fused_with_routing_is_refused_by_name():
    for name in (
        "npu_moe_distribute_dispatch",
        "npu_moe_distribute_dispatch_v2",
        "npu_moe_distribute_combine",
        "npu_moe_distribute_combine_v2",
    ):
        with pytest.raises(NotImplementedError, match=f"torch_npu.{name}"):
            getattr(torch_npu, name)(torch.ones(2, 2))


@pytest.mark.parametrize("shape", [(6, 5), (2, 3, 5), (3, 1, 2, 5)])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("some_finished", [False, True])
def test_gating_of_tokens_in_several_dimensions(shape, k, some_finished):
    """Tokens in several dimensions get what they get in one row. Copy j of token t is row j T + t."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(k))
    finished = torch.arange(6).reshape(shape[:-1]) % 3 == 1 if some_finished else None
    values, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(x, finished, k)
    assert values.shape == experts.shape == rows.shape == (*shape[:-1], k)
    assert experts.dtype == rows.dtype == torch.int32 and rows.is_contiguous()
    for t, row in enumerate(x.reshape(6, 5).softmax(-1).tolist()):
        best = sorted(range(5), key=lambda e, row=row: -row[e])[:k]
        if some_finished and t % 3 == 1:
            assert experts.reshape(6, k)[t].tolist() == [5] * k
        else:
            assert experts.reshape(6, k)[t].tolist() == best
        torch.testing.assert_close(values.reshape(6, k)[t], torch.tensor([row[e] for e in best]))
        assert rows.reshape(6, k)[t].tolist() == [j * 6 + t for j in range(k)]
