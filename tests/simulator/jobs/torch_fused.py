"""Fused operators on the simulated NPU beside the CPU: run by test_torch.py. Prints "ok" and a name for each that agrees.

Each case is computed from the same operands on both devices, with the gradients of those that have them.
"""

import sys
import traceback

import torch
import torch_npu
from torch.utils._pytree import tree_map

CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def draw(*shape, grad=True, dtype=torch.float32):
    return torch.randn(*shape).to(dtype).requires_grad_(grad)


@case
def swiglu(on):
    return torch_npu.npu_swiglu(on(draw(3, 5, 8)), -1)


@case
def rms_norm(on):
    return torch_npu.npu_rms_norm(on(draw(4, 6)), on(draw(6)), 1e-5)[0]


@case
def add_rms_norm(on):
    y, _, x = torch_npu.npu_add_rms_norm(on(draw(4, 6)), on(draw(4, 6)), on(draw(6)))
    return y, x


@case
def rotary(on):
    x, cos, sin = on(draw(2, 3, 4, 8)), on(draw(1, 3, 1, 8, grad=False)), on(draw(1, 3, 1, 8, grad=False))
    return torch_npu.npu_rotary_mul(x, cos, sin), torch_npu.npu_rotary_position_embedding(x, cos, sin, 1)


@case
def rotary_of_two(on):
    query, key = on(draw(2, 3, 4, 8)), on(draw(2, 3, 2, 8))
    cos, sin = (on(draw(2, 3, 1, 8, grad=False)) for _ in range(2))
    return torch_npu.npu_apply_rotary_pos_emb(query, key, cos, sin)


@case
def scaled_masked_softmax(on):
    mask = torch.rand(2, 1, 32, 32) > 0.7
    return torch_npu.npu_scaled_masked_softmax(
        on(draw(2, 3, 32, 32, dtype=torch.float16)), on(mask), 0.5, False
    )


def attention(layout, shapes, heads, **options):
    def compute(on):
        tensors = [on(draw(*shape, dtype=torch.bfloat16)) for shape in shapes]
        given = {name: on(value) for name, value in options.items()}
        return torch_npu.npu_fusion_attention(*tensors, heads, layout, scale=0.3, **given)[0]

    return compute


CAUSAL = torch.ones(16, 16).triu(1).bool()
CASES["attention BSH"] = attention("BSH", [(2, 16, 32)] * 3, 4)
CASES["attention SBH, causal"] = attention("SBH", [(16, 2, 32)] + [(16, 2, 16)] * 2, 4, atten_mask=CAUSAL)
CASES["attention BNSD, band"] = attention(
    "BNSD", [(2, 4, 16, 8)] * 3, 4, atten_mask=CAUSAL, sparse_mode=0, pre_tockens=5, next_tockens=0
)
CASES["attention BSND, compressed mask"] = attention(
    "BSND", [(2, 16, 4, 8)] * 3, 4, atten_mask=torch.ones(2048, 2048).triu(1).bool(), sparse_mode=2
)
CASES["attention TND"] = attention(
    "TND", [(20, 4, 8)] * 3, 4, actual_seq_qlen=[7, 20], actual_seq_kvlen=[7, 20]
)


@case
def grouped_rows(on):
    x, weight = on(draw(10, 8, grad=False)), on(draw(3, 8, 6, grad=False))
    ends = on(torch.tensor([3, 5, 10]))
    with torch.no_grad():
        return torch_npu.npu_grouped_matmul([x], [weight], group_list=ends, split_item=2, group_type=0)


@case
def grouped_columns(on):
    x, weight = on(draw(8, 10, grad=False)), on(draw(10, 6, grad=False))
    sizes = on(torch.tensor([3, 2, 5]))
    with torch.no_grad():
        return torch_npu.npu_grouped_matmul(
            [x], [weight], group_list=sizes, split_item=3, group_type=2, group_list_type=1
        )


@case
def grouped_with_gradients(on):
    x, weight = on(draw(10, 8)), on(draw(3, 8, 6))
    return torch_npu.npu_grouped_matmul([x], [weight], group_list=[3, 5, 10], split_item=3, group_type=0)


@case
def tokens(on):
    rows, indices = on(draw(6, 8)), torch.stack([torch.randperm(4)[:2] for _ in range(6)])
    permuted, order = torch_npu.npu_moe_token_permute(rows, on(indices))
    return torch_npu.npu_moe_token_unpermute(permuted * 2, order, on(draw(6, 2)))


@case
def tokens_by_map(on):
    chosen = torch.zeros(6, 4).scatter_(1, torch.stack([torch.randperm(4)[:2] for _ in range(6)]), 1).bool()
    rows, probabilities = on(draw(6, 8)), on(draw(6, 4))
    found = torch_npu.npu_moe_token_permute_with_routing_map(
        rows, on(chosen), probs=probabilities, num_out_tokens=12
    )
    return found[0], found[1]


@case
def gating(on):
    return torch_npu.npu_moe_gating_top_k_softmax(on(draw(6, 8, grad=False)), k=2)[:2]


@case
def products_added(on):
    total, grad, into = (on(draw(*s, grad=False)) for s in ((5, 8), (5, 6), (6, 8)))
    torch_npu.npu_matmul_add_fp32(total, grad, into)
    return into


@case
def grouped_products_added(on):
    x, grad, into = on(draw(10, 8, grad=False)), on(draw(10, 6, grad=False)), on(draw(3, 8, 6, grad=False))
    x, grad = x.bfloat16(), grad.bfloat16()
    torch_npu.npu_groupmatmul_add_fp32(x, grad, on(torch.tensor([3, 5, 10])), into)
    return into


@case
def adamw(on):
    parts = [on(draw(4, 3, grad=False)) for _ in range(4)]
    parts[3] = parts[3].abs()
    torch_npu.npu_apply_fused_adamw_v2(*parts, None, on(torch.ones(1)), lr=0.1, weight_decay=0.1)
    return parts[0], parts[2], parts[3]


@case
def ring(on):
    def half():
        out, top = (
            on(draw(16, 2, 32, grad=False)),
            on(draw(2, 4, 16, 1, grad=False)).expand(-1, -1, -1, 8).contiguous(),
        )
        return out, top, on(torch.rand(2, 4, 16, 1) + 1).expand(-1, -1, -1, 8).contiguous()

    return torch_npu.npu_ring_attention_update(*half(), *half(), layout="SBH")


def answers(function, device):
    """The results of a case on a device, and the gradients of its operands, on the host."""
    torch.manual_seed(1)
    leaves = []

    def on(value):
        if not isinstance(value, torch.Tensor):
            return value
        moved = value.detach().to(device).requires_grad_(value.requires_grad)
        leaves.append(moved)
        return moved

    results = function(on)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    learned = [r for r in results if r.requires_grad]
    if learned:
        sum(
            (r.float() * torch.arange(r.numel()).view(r.shape).to(device).cos()).sum() for r in learned
        ).backward()
    found = results + [leaf.grad for leaf in leaves if leaf.requires_grad]
    return tree_map(lambda x: None if x is None else x.detach().cpu(), found)


def main() -> int:
    failed = []
    for name in sys.argv[1:] or CASES:
        try:
            ours, theirs = (answers(CASES[name], device) for device in ("npu", "cpu"))
            coarse = any(x is not None and x.dtype in (torch.bfloat16, torch.float16) for x in theirs)
            tolerance = 2e-2 if coarse else 1e-5
            for a, b in zip(ours, theirs, strict=True):
                assert (a is None) == (b is None)
                if a is not None:
                    torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)
            print("ok", name, flush=True)
        except Exception:
            traceback.print_exc()
            failed.append(name)
    print(f"{len(failed)} of {len(CASES)} failed: {failed}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
