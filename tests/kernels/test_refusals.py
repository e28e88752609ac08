"""Arguments that the fused operators refuse, each by itself, with the sentence that says why."""

from __future__ import annotations

import pytest

import msadapter as torch
from kernels_ascend import adaptive_cp, attention_calls, batched, collective, grouped, mindspeed
from msadapter import torch_npu


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


def _packed(**options):
    x, mask = ones(3, 2, 4), torch.ones(2048, 2048, dtype=torch.bool).triu(1)
    return torch_npu.npu_fusion_attention(
        x, x, x, 2, "TND", atten_mask=mask, actual_seq_qlen=[3], actual_seq_kvlen=[3], **options
    )


def _gradient(change=None, layout="BNSD"):
    """The gradient of a call, with one of its saved tensors replaced."""
    q = ones(2, 2, 3, 4)
    found = torch_npu.npu_fusion_attention(q, q, q, 2, layout)
    saved = {
        "dy": ones(2, 2, 3, 4), "softmax_max": found[1], "softmax_sum": found[2], "attention_in": found[0]
    } | (change or {})  # fmt: skip
    return torch_npu.npu_fusion_attention_grad(q, q, q, saved.pop("dy"), 2, layout, **saved)


def _prompt(queries=3, keys=3, **options):
    q, k = ones(1, queries, 8), ones(1, keys, 8)
    return torch_npu.npu_prompt_flash_attention(q, k, k, num_heads=2, **options)


def _to_experts(x=(2, 3, 4), weight=(2, 4, 5), **options):
    return batched.npu_alltoall_allgather_bmm(ones(*x), ones(*weight), None, "", 1, "", 1, **options)


def _from_experts(x=(2, 4, 4), weight=(2, 4, 5), ep=1, tp=1, **options):
    return batched.npu_bmm_reducescatter_alltoall(ones(*x), ones(*weight), None, "", ep, "", tp, **options)


def _grouped(count=1, **options):
    x, weight = [ones(4, 3)] * count, [ones(3, 2)] * count
    return grouped.npu_grouped_matmul(x, weight, **options)


def _permuted(**options):
    chosen = torch.tensor([[True, False], [True, True]])
    return torch_npu.npu_moe_token_permute_with_routing_map(ones(2, 3), chosen, **options)


def _restored(**options):
    places = torch.tensor([0, 1, 2, 3], dtype=torch.int32)
    return torch_npu.npu_moe_token_unpermute_with_routing_map(ones(4, 3), places, [2, 3], **options)


def _mrope(mode):
    return torch_npu.npu_mrope(
        torch.arange(2), ones(2, 4), ones(2, 4), ones(3, 4), 4, mrope_section=[2, 0, 0], rotary_mode=mode
    )


ROWS = [
    (lambda: adaptive_cp.get_mask_list_without_remap(ones(4, 4), ones(2, 2), (0, 0), 0), "CP size must be positive|CP size"),
    (lambda: _packed(sparse_mode=7, pse=ones(1, 2, 1024, 3)), "sparse_mode 7 cannot be combined with pse|compressed pse"),
    (lambda: _gradient({"softmax_max": ones(2, 2, 3, 1)}), r"softmax_max must have the shape \[2, 2, 3, 8\]"),
    (lambda: _gradient({"softmax_sum": ones(2, 2, 4, 8)}), r"softmax_sum must have the shape \[2, 2, 3, 8\]"),
    (lambda: _gradient({"dy": ones(2, 2, 3, 5)}), "must have the shape of the forward's output"),
    (lambda: _gradient({"dy": ones(1, 2, 3, 4)}), "must have the shape of the forward's output"),
    (lambda: _gradient({"dy": ones(1, 2, 3, 4), "attention_in": ones(1, 2, 3, 4)}), "the shape of the forward's output"),
    (lambda: _gradient({"attention_in": None}), "pass softmax_max, softmax_sum and attention_in"),
    (lambda: _gradient({"softmax_max": None}), "pass softmax_max, softmax_sum and attention_in"),
    (lambda: _gradient({"softmax_sum": None}), "pass softmax_max, softmax_sum and attention_in"),
    *(
        (
            lambda o=o: attention_calls.npu_fusion_attention_v2(ones(2, 3, 8), ones(2, 3, 8), ones(2, 3, 8), 2, "BSH", **o),
            "query_rope and key_rope must be given together",
        )
        for o in ({"query_rope": ones(2, 3, 4)}, {"key_rope": ones(2, 3, 4)},
                  {"query_rope": ones(2, 3, 4), "key_rope": ones(2, 3, 4)})
    ),
    (lambda: torch_npu.npu_fusion_attention(ones(2, 3, 8), ones(2, 3, 6), ones(2, 3, 6), 2, "BSH"), "a whole number"),
    (lambda: torch_npu.npu_fusion_attention(ones(2, 3, 8), ones(2, 3, 8), ones(2, 3, 7), 2, "BSH"), "a whole number"),
    (lambda: torch_npu.npu_fusion_attention(ones(2, 3, 8), ones(2, 3, 0), ones(2, 3, 0), 2, "BSH"), "a whole number"),
    (lambda: _prompt(2, 3, actual_seq_lengths=[2]), "needs as many keys as queries, but got 2 queries and 3 keys"),
    (lambda: _to_experts((2, 3)), "x and weight must have 3 dimensions"),
    (lambda: _to_experts(weight=(4, 5)), "x and weight must have 3 dimensions"),
    (lambda: _to_experts(shard_type=2), "shard_type should be 0 or 1, but got 2"),
    (lambda: _to_experts(act_type=5), "act_type should be from 0 to 4, but got 5"),
    (lambda: _to_experts(act_type=-1), "act_type should be from 0 to 4, but got -1"),
    (lambda: _to_experts(weight=(2, 5, 5)), "does not fit weight"),
    (lambda: _to_experts(weight=(1, 4, 5)), "does not fit weight"),
    (lambda: _from_experts((2, 4)), "x and weight must have 3 dimensions"),
    (lambda: _from_experts(shard_type=-1), "shard_type should be 0 or 1, but got -1"),
    (lambda: _from_experts((2, 3, 4), ep=2), "cannot be divided among 2 x 1 processes"),
    (lambda: _from_experts(tp=2), "cannot be divided among 1 x 2 processes"),
    (lambda: _from_experts((2, 6, 4), ep=2, tp=2, shard_type=1), "cannot be divided among 2 x 2 processes"),
    (lambda: batched._exchanged(ones(3, 1), object(), 2), "3 blocks cannot be divided among 2 processes"),
    (lambda: collective._scattered(ones(3, 1), object(), 2), "3 rows cannot be divided among 2 processes"),
    (lambda: collective.npu_all_gather_base_mm(ones(2, 3), ones(3, 2), "", 1, gather_index=2), "must be 0 or 1, but got 2"),
    (lambda: _grouped(group_list=[4], group_type=0, group_list_type=2), "group_list_type must be 0 or 1, but got 2"),
    (lambda: _grouped(group_type=2), "takes one x, one weight and group_list"),
    (lambda: _grouped(2, group_type=2, group_list=[4]), "takes one x, one weight and group_list"),
    (lambda: _grouped(group_type=1), "group_type must be -1, 0 or 2, but got 1"),
    (lambda: _permuted(drop_and_pad=True), "drop_and_pad needs num_out_tokens"),
    (lambda: torch_npu.npu_moe_token_permute_with_routing_map(ones(2, 3), ones(2, 2)), "must be bool, int8 or uint8"),
    (lambda: _restored(probs=ones(2, 2)), "probs needs routing_map"),
    (lambda: _mrope("quarter"), "rotary_mode must be 'half' or 'interleave', but got 'quarter'"),
]  # fmt: skip

UNSUPPORTED = [
    lambda: _prompt(atten_mask=torch.ones(2048, 2048, dtype=torch.bool).triu(1), sparse_mode=2, actual_seq_lengths_kv=[2]),
    lambda: _grouped(output_dtype=torch.int8, group_type=-1),
    lambda: mindspeed.ffn(ones(2, 3), ones(3, 4), ones(4, 3), "relu", None, None, None, None, ones(1)),
    lambda: torch_npu.npu_moe_finalize_routing(
        ones(2, 3), None, None, None, None, torch.tensor([0, 1], dtype=torch.int32), None, drop_pad_mode=1
    ),
    lambda: collective._no_scales(None, ones(1)),
    lambda: collective._no_count_tensors(None, ones(1)),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_refused(row):
    call, text = ROWS[row]
    with pytest.raises(RuntimeError, match=text) as caught:
        call()
    assert caught.type is RuntimeError  # a NotImplementedError is another answer


@pytest.mark.parametrize("row", range(len(UNSUPPORTED)))
def test_not_supported(row):
    with pytest.raises(NotImplementedError, match="coverage"):
        UNSUPPORTED[row]()


def test_what_is_refused_here_is_taken_in_the_right_form():
    """The calls above fail for the reason that they name, not for another one."""
    q = ones(1, 3, 8)
    assert _gradient()[0].shape == (2, 2, 3, 4) and _packed(sparse_mode=7)[0].shape == (3, 2, 4)
    assert torch.allclose(_prompt(actual_seq_lengths=[3]), q) and torch.allclose(_prompt(), q)
    assert _to_experts()[0].shape == (2, 3, 5) and _from_experts().shape == (2, 4, 5)
    assert _grouped(group_type=-1)[0].shape == (4, 2) and _mrope("half")[0].shape == (2, 4)
    assert _permuted()[0].shape == (3, 3) and _permuted(drop_and_pad=True, num_out_tokens=2)[0].shape == (
        2,
        3,
    )


@pytest.mark.parametrize("layout", ["BSH", "BNSD", "BSND"])
def test_lengths_of_queries_and_keys(layout):
    """The axis of the queries depends on the layout."""
    shape = {"BSH": (2, 3, 8), "BNSD": (2, 2, 3, 4), "BSND": (2, 3, 2, 4)}[layout]
    x = torch.arange(48.0).sin().reshape(shape)
    run = torch_npu.npu_prompt_flash_attention
    both = run(x, x, x, num_heads=2, input_layout=layout, actual_seq_lengths=[2, 3])
    keys = run(x, x, x, num_heads=2, input_layout=layout, actual_seq_lengths_kv=[2, 3])
    assert torch.equal(both, keys) and not torch.equal(both, run(x, x, x, num_heads=2, input_layout=layout))
    one = x.narrow(2 if layout == "BNSD" else 1, 0, 1).contiguous()
    step = torch_npu.npu_incre_flash_attention(one, x, x, num_heads=2, input_layout=layout)
    whole = run(x, x, x, num_heads=2, input_layout=layout)
    assert torch.allclose(step, whole.narrow(2 if layout == "BNSD" else 1, 0, 1), atol=1e-6)


def test_a_failed_step_changes_nothing():
    """The moments must not be those of the next step if the step was refused."""
    out = [torch.ones(2), torch.ones(2), torch.ones(2)]
    with pytest.raises(RuntimeError, match="amsgrad needs max_grad_norm"):
        torch_npu.npu_apply_adam_w(0.9, 0.99, 0.1, 0.0, 0.9, 0.99, 1e-8, torch.ones(2), None, True, out=out)
    assert all(torch.equal(x, torch.ones(2)) for x in out)


def test_second_derivatives_of_a_tail_without_a_sequence():
    """Rows after the last sequence are zeros, in the formula of the second derivatives too."""
    x = torch.arange(40.0, dtype=torch.float64).sin().reshape(5, 2, 4).requires_grad_()

    def run(v):
        return torch_npu.npu_fusion_attention(
            v, v, v, 2, "TND", actual_seq_qlen=[1, 3], actual_seq_kvlen=[1, 3]
        )[0]

    made = attention_calls.npu_fusion_attention(
        x, x, x, 2, "TND", actual_seq_qlen=[1, 3], actual_seq_kvlen=[1, 3]
    )[0]
    assert bool((made[3:] == 0).all())
    (first,) = torch.autograd.grad(made, x, torch.ones_like(made), create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    assert bool((first[3:] == 0).all()) and bool((second[3:] == 0).all()) and bool((second[:3] != 0).any())
    assert torch.autograd.gradgradcheck(run, (x,))


def test_copies_keep_the_order_of_their_tokens():
    """The rows of one token stay in the order of its experts, whatever the number of tokens."""
    chosen = torch.ones(40, 6, dtype=torch.bool)
    tokens = torch.arange(40.0).reshape(40, 1).expand(40, 2).contiguous()
    permuted, _, places = torch_npu.npu_moe_token_permute_with_routing_map(tokens, chosen)
    assert places.reshape(40, 6).tolist() == [[e * 40 + k for e in range(6)] for k in range(40)]
    _, order, rows, _ = torch_npu._npu_moe_token_unpermute_with_routing_map(
        permuted, places, [40, 2], routing_map=chosen
    )
    assert torch.equal(order, places) and rows.tolist() == [k for k in range(40) for _ in range(6)]
