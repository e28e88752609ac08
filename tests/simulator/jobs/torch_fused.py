"""Fused operators on the simulated NPU beside the CPU: run by test_torch.py. Prints "ok" and a name for each that agrees.

Each case is computed from the same operands on both devices, with the gradients of those that have them.
"""

import functools
import sys

import torch
import torch.nn.functional as F
import torch_npu
from checks import run_checks
from torch.utils._pytree import tree_map

from msadapter._host import simulator
from msadapter._host.native import load

CASES = {}
LAUNCHED = {}  # the aclnn operators that a case must launch


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


# ---- PyTorch's attention
def scaled_dot_product(queries=12, keys=12, heads=4, kv_heads=4, mask=None, dtype=torch.bfloat16, **options):
    def compute(on):
        tensors = [
            on(draw(2, *size, 16, dtype=dtype)) for size in ((heads, queries), *[(kv_heads, keys)] * 2)
        ]
        given = None if mask is None else on(mask)
        return F.scaled_dot_product_attention(*tensors, given, enable_gqa=kv_heads != heads, **options)

    return compute


FUSED = ("FlashAttentionScoreV2", "FlashAttentionScoreGradV2")
SOME = torch.rand(2, 1, 12, 20, generator=torch.Generator().manual_seed(0)) > 0.4
SOME[0, 0, 3] = False  # a query that sees no key
for _name, _compute in {
    "sdpa": scaled_dot_product(scale=0.5),
    "sdpa, causal, float16": scaled_dot_product(is_causal=True, dtype=torch.float16),
    "sdpa, more keys": scaled_dot_product(keys=20, is_causal=True),
    "sdpa, mask": scaled_dot_product(keys=20, mask=SOME),
    "sdpa, two masks": scaled_dot_product(keys=20, mask=SOME, is_causal=True),
    "sdpa, mask of two dims, grouped heads": scaled_dot_product(keys=20, kv_heads=2, mask=SOME[1, 0]),
}.items():
    CASES[_name] = _compute
    LAUNCHED[_name] = FUSED
CASES["sdpa, float32"] = scaled_dot_product(is_causal=True, dtype=torch.float32)
CASES["sdpa, mask of numbers"] = scaled_dot_product(keys=20, mask=SOME.bfloat16())


@case
def sdpa_with_a_long_causal_mask(on):
    parts = [on(draw(1, 1, 2060, 8, dtype=torch.float16)) for _ in range(3)]
    return F.scaled_dot_product_attention(*parts, is_causal=True)


LAUNCHED["sdpa_with_a_long_causal_mask"] = FUSED


# ---- operators that MindSpore does not have for an NPU, made of others (msadapter/ops/_on_npu.py)
SPECIAL = torch.tensor([-float("inf"), -2.5, -1.0, -0.0, 0.0, 0.3, 0.7, 1.0, 2.5, float("inf"), float("nan")])


def composites(function):
    CASES[f"made of others: {function.__name__}"] = function
    return function


@composites
def predicates(on):
    x = on(SPECIAL)
    return [f(y) for y in (x, x.half(), x.bfloat16()) for f in (torch.isnan, torch.isposinf, torch.signbit)]


@composites
def signs(on):
    x, y = on(SPECIAL), on(SPECIAL.flip(0))
    whole = on(torch.arange(-3, 3))
    return [
        torch.sgn(x[:-1]),
        torch.angle(x),
        torch.copysign(x, y),
        torch.copysign(x, -0.0),
        torch.signbit(whole),
        torch.sgn(whole),
    ]


@composites
def pairs_of_numbers(on):
    x, y = on(SPECIAL)[:, None], on(SPECIAL)
    found = [f(x, y) for f in (torch.fmax, torch.fmin, torch.heaviside, torch.hypot, torch.nextafter)]
    low, high = on(torch.tensor([0.0, -0.0, 1e-45, 3.0])), on(torch.tensor([1.0, -1.0, 0.0, 3.0]))
    return [*found, torch.nextafter(low, high), torch.hypot(x.half(), y.half())]


@composites
def integers(on):
    a, b = on(torch.tensor([-12, 0, 7, 18, -128, 127])), on(torch.tensor([8, 3, 0, -27, 1, 9]))
    found = [torch.lcm(a, b), a >> 1, a >> 3, torch.bitwise_right_shift(a, b), a >> 63]
    return found + [(a.to(d) >> 2) for d in (torch.int8, torch.int32)] + [a.clamp(0).to(torch.uint8) >> 1]


@composites
def functions_of_one_number(on):
    x = on(SPECIAL.nan_to_num(posinf=9.0, neginf=-9.0)).requires_grad_()
    p = on(torch.tensor([0.01, 0.2, 0.5, 0.999])).requires_grad_()
    found = [
        torch.special.entr(p),
        torch.special.ndtr(x),
        torch.logit(p),
        torch.logit(p, 0.1),
        F.celu(x, 0.7),
    ]
    return [*found, F.celu(x.half()), torch.special.xlog1py(x.abs(), p[:1]), F.selu(x)]


@composites
def along_a_dim(on):
    x = on(draw(3, 7))
    y = on(torch.tensor([[1, 2, 2, 3, 1], [5, 5, 4, 4, 4]]))
    holes = on(torch.tensor([[1.0, float("nan"), 3.0, 2.0], [float("nan")] * 4]))
    found = [x.cumprod(0), x.cumprod(1), y.cumprod(1), x.logcumsumexp(1), (x * 300).logcumsumexp(0)]
    found += [*y.mode(1), *y.mode(0, keepdim=True), *holes.nanmedian(1), holes.nanmedian()]
    minus = on(torch.full((4,), -float("inf")))
    return [*found, minus.logcumsumexp(0), x.half().cumprod(1)]


@composites
def by_index(on):
    x, source, index = on(draw(4, 3)), on(draw(2, 3)), on(torch.tensor([3, 0]))
    place = on(torch.tensor([[0, 1, 1], [2, 1, 0]]))
    found = [x.index_copy(0, index, source), x.put(on(torch.tensor([1, -1])), source[0, :2])]
    found.append(x.put(on(torch.tensor([1, 1])), source[0, :2], accumulate=True))
    for reduce in ("sum", "mean"):
        for kept in (True, False):
            found.append(x.scatter_reduce(0, place, source, reduce, include_self=kept))
    found.append(x.index_reduce(0, index, source, "mean"))
    whole = on(torch.arange(12)).view(4, 3)
    found.append(whole.scatter_reduce(0, place, on(torch.arange(-3, 3)).view(2, 3), "mean"))
    tested = on(torch.tensor([1, 5, 9]))
    return [*found, torch.isin(whole, tested), torch.isin(whole, tested, invert=True)]


@composites
def triangular_systems(on):
    matrix, right = on(draw(2, 3, 3) * 0.1 + 2 * torch.eye(3)), on(draw(2, 3, 4))
    solve = torch.linalg.solve_triangular
    found = [solve(matrix, right, upper=upper) for upper in (True, False)]
    found.append(solve(matrix, right, upper=True, unitriangular=True))
    return [*found, solve(matrix, right.mT.contiguous(), upper=False, left=False)]


@composites
def renormed_rows(on):
    table = on(draw(5, 3, grad=False))
    F.embedding(on(torch.tensor([[1, 4], [1, 0]])), table, max_norm=0.5)
    return table


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


def agree(name):
    """Compare a case on both devices. What runs on the NPU is not computed on the host."""
    before, calls = simulator.counters(), load().host_calls()
    ours = answers(CASES[name], "npu")
    assert load().host_calls() == calls, load().host_calls().keys() - calls.keys()
    launched = {key for key, n in simulator.counters().items() if n > before.get(key, 0)}
    missing = [key for key in LAUNCHED.get(name, ()) if f"aclnn{key}" not in launched]
    assert not missing, (missing, sorted(launched))
    theirs = answers(CASES[name], "cpu")
    coarse = any(x is not None and x.dtype in (torch.bfloat16, torch.float16) for x in theirs)
    tolerance = 2e-2 if coarse else 1e-5
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True)


if __name__ == "__main__":
    sys.exit(run_checks({name: functools.partial(agree, name) for name in CASES}))
