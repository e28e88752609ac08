"""What reaches MindSpore's operators on Ascend: kinds of operands by its headers, results by its own inference of shapes.

Each call runs twice here: once on the CPU, for our results, and once as if tensors lay on an NPU, up to MindSpore's operator,
whose operands are kept. A second process has MindSpore infer shapes and dtypes of the results from them; no device is needed.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import msadapter as torch
from kernels_ascend import (
    _mapping,
    activation,
    attention,
    collective,
    grouped,
    lightning_indexer,
    moe,
    norm,
    optimizer,
    ring,
    sparse_attention,
)
from msadapter import torch_npu
from tests.kernels.test_mapping import PYBOOST

MODULES = (
    activation,
    attention,
    collective,
    grouped,
    lightning_indexer,
    moe,
    norm,
    optimizer,
    ring,
    sparse_attention,
)


def half(*shape):
    return torch.zeros(*shape, dtype=torch.float16)


def single(*shape):
    return torch.ones(*shape)


def singles(count, *shape):
    return [single(*shape) for _ in range(count)]


def integers(*shape):
    return torch.zeros(*shape, dtype=torch.int32)


def leaf(*shape, dtype=torch.float16):
    return torch.ones(*shape, dtype=dtype).requires_grad_()


TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
ENDS = torch.tensor([2, 6])
TND = {"actual_seq_qlen": [2, 6], "actual_seq_kvlen": [3, 7]}

# Forward calls: MindSpore's operator, the call, how many of MindSpore's results are ours.
CALLS = [
    ("RmsNorm", lambda: torch_npu.npu_rms_norm(half(2, 3, 8), half(8), 1e-5)),
    ("RmsNorm", lambda: torch_npu.npu_rms_norm(half(2, 3, 8), half(3, 8))),
    ("AddRmsNorm", lambda: torch_npu.npu_add_rms_norm(half(2, 3, 8), half(2, 3, 8), half(8))),
    ("Swiglu", lambda: torch_npu.npu_swiglu(half(4, 8), -1)),
    ("Swiglu", lambda: torch_npu.npu_swiglu(half(4, 8), 0)),
    ("SwigluGrad", lambda: torch_npu.npu_swiglu_backward(half(4, 4), half(4, 8), -1)),
    *(
        (
            "RotaryPositionEmbedding",
            lambda mode=mode: torch_npu.npu_rotary_mul(
                half(2, 3, 4, 8), half(1, 1, 4, 8), half(1, 1, 4, 8), mode
            ),
        )
        for mode in ("half", "interleave")
    ),
    ("MoeTokenPermute", lambda: torch_npu.npu_moe_token_permute(half(4, 8), integers(4, 2))),
    ("MoeTokenPermute", lambda: torch_npu.npu_moe_token_permute(half(4, 8), integers(4, 2), 5)),
    ("MoeTokenPermute", lambda: torch_npu.npu_moe_token_permute(half(4, 8), integers(4))),
    (
        "MoeTokenUnpermute",
        lambda: torch_npu.npu_moe_token_unpermute(half(8, 8), torch.arange(8).int(), half(4, 2)),
    ),
    ("MoeTokenUnpermute", lambda: torch_npu.npu_moe_token_unpermute(half(4, 8), torch.arange(4).int())),
    ("MoeGatingTopKSoftmax", lambda: torch_npu.npu_moe_gating_top_k_softmax(half(4, 8), None, 2)),
    (
        "MoeInitRouting",
        lambda: torch_npu.npu_moe_init_routing(
            half(4, 8), torch.arange(8).int().view(4, 2), integers(4, 2), 3
        ),
    ),
    ("MoeComputeExpertTokens", lambda: torch_npu.npu_moe_compute_expert_tokens(integers(8), 3)),
    (
        "MoeFinalizeRouting",
        lambda: torch_npu.npu_moe_finalize_routing(
            half(8, 8), half(4, 8), None, half(3, 8), half(4, 2), torch.arange(8).int(), integers(4, 2)
        ),
    ),
    ("GroupedMatmulV4", lambda: torch_npu.npu_grouped_matmul([half(4, 8)], [half(8, 3)])),
    *(
        (
            "GroupedMatmulV4",
            lambda kind=kind, given=given: torch_npu.npu_grouped_matmul(
                [half(6, 8)],
                [half(2, 8, 3)],
                group_list=given,
                split_item=3,
                group_type=0,
                group_list_type=kind,
            ),
        )
        for kind, given in ((0, ENDS), (1, torch.tensor([2, 4])), (0, [2, 6]))
    ),
    (
        "GroupedMatmulV4",
        lambda: torch_npu.npu_grouped_matmul(
            [half(8, 6).t()], [half(8, 3)], group_list=torch.tensor([2, 8]), split_item=3, group_type=2
        ),
    ),
    (
        "GroupedMatmulV4",
        lambda: torch_npu.npu_grouped_matmul(
            [torch.zeros(6, 8, dtype=torch.int8)],
            [torch.zeros(2, 8, 4, dtype=torch.int8)],
            scale=[single(2, 4)],
            per_token_scale=[single(6)],
            group_list=ENDS,
            split_item=3,
            group_type=0,
            output_dtype=torch.float16,
        ),
    ),
    *(("AdamW", lambda last=last: adamw(last)) for last in (None, single(4))),
    (
        "RingAttentionUpdate",
        lambda: torch_npu.npu_ring_attention_update(
            half(3, 2, 8), *singles(2, 2, 2, 3, 8), half(3, 2, 8), *singles(2, 2, 2, 3, 8)
        ),
    ),
    (
        "RingAttentionUpdate",
        lambda: torch_npu.npu_ring_attention_update(
            half(6, 2, 8), *singles(2, 6, 2, 8), half(6, 2, 8), *singles(2, 6, 2, 8), ENDS, "TND"
        ),
    ),
    *(
        (
            "SpeedFusionAttention",
            lambda layout=layout, q=q, k=k: torch_npu.npu_fusion_attention(
                half(*q), half(*k), half(*k), 4, layout, keep_prob=0.9
            )[:3],
        )
        for layout, q, k in (
            ("BSH", (2, 6, 32), (2, 7, 16)),
            ("SBH", (6, 2, 32), (7, 2, 16)),
            ("BSND", (2, 6, 4, 8), (2, 7, 2, 8)),
            ("BNSD", (2, 4, 6, 8), (2, 2, 7, 8)),
        )
    ),
    (
        "SpeedFusionAttention",
        lambda: torch_npu.npu_fusion_attention(half(6, 4, 8), half(7, 2, 8), half(7, 2, 8), 4, "TND", **TND)[
            :3
        ],
    ),
    (
        "SpeedFusionAttention",
        lambda: torch_npu.npu_fusion_attention(
            half(2, 4, 6, 8),
            half(2, 4, 6, 8),
            half(2, 4, 6, 8),
            4,
            "BNSD",
            atten_mask=TRIANGLE,
            sparse_mode=3,
        )[:3],
    ),
    (
        "SpeedFusionAttention",
        lambda: torch_npu.npu_fusion_attention_v2(
            half(2, 4, 6, 8),
            half(2, 4, 6, 8),
            half(2, 4, 6, 8),
            4,
            "BNSD",
            pse=single(4),
            pse_type=2,
            q_start_idx=[1],
            kv_start_idx=[0],
        )[:3],
    ),
    (
        "SpeedFusionAttention",
        lambda: torch_npu.npu_fusion_attention(
            half(2, 4, 6, 8), half(2, 4, 6, 8), half(2, 4, 6, 8), 4, "BNSD", pse=half(2, 4, 6, 6)
        )[:3],
    ),
    *(
        (
            "LightningIndexer",
            lambda options=options: torch_npu.npu_lightning_indexer(
                half(2, 6, 64, 128), half(2, 7, 1, 128), half(2, 6, 64), sparse_count=4, **options
            ),
        )
        for options in (
            {"return_value": True},
            {"actual_seq_lengths_query": [6, 5], "actual_seq_lengths_key": integers(2), "return_value": True},
        )
    ),
    (
        "LightningIndexerGrad",
        lambda: torch_npu.npu_lightning_indexer_grad(
            half(2, 6, 64, 128), half(2, 7, 1, 128), half(2, 6, 1, 4), integers(2, 6, 1, 4), half(2, 6, 64)
        ),
    ),
    (
        "SparseFlashAttention",
        lambda: torch_npu.npu_sparse_flash_attention(
            half(2, 6, 4, 512),
            half(2, 7, 1, 512),
            half(2, 7, 1, 512),
            integers(2, 6, 1, 3),
            0.1,
            query_rope=half(2, 6, 4, 64),
            key_rope=half(2, 7, 1, 64),
            attention_mode=2,
            return_softmax_lse=True,
        ),
    ),
    (
        "SparseFlashAttentionGrad",
        lambda: torch_npu.npu_sparse_flash_attention_grad(
            half(2, 6, 4, 512),
            half(2, 7, 1, 512),
            half(2, 7, 1, 512),
            integers(2, 6, 1, 3),
            half(2, 6, 4, 512),
            half(2, 6, 4, 512),
            *singles(2, 2, 1, 6, 4),
            0.1,
            1,
            query_rope=half(2, 6, 4, 64),
            key_rope=half(2, 7, 1, 64),
            attention_mode=2,
        ),
    ),
    ("AllGatherMatmul", lambda: torch_npu.npu_all_gather_base_mm(half(4, 8), half(8, 3), "g", 1)),
    ("MatmulReduceScatter", lambda: torch_npu.npu_mm_reduce_scatter_base(half(4, 8), half(8, 3), "g", 1)),
]

# Gradients: the forward runs on the CPU, backward() goes to MindSpore's operator.
GRADIENTS = [
    ("RmsNormGrad", lambda *x: torch_npu.npu_rms_norm(*x)[0], lambda: [leaf(2, 3, 8), leaf(8)]),
    ("SwigluGrad", torch_npu.npu_swiglu, lambda: [leaf(4, 8)]),
    (
        "RotaryPositionEmbeddingGrad",
        torch_npu.npu_rotary_position_embedding,
        lambda: [leaf(2, 3, 4, 8), leaf(1, 1, 4, 8), leaf(1, 1, 4, 8)],
    ),
    (
        "MoeTokenPermuteGrad",
        lambda x: torch_npu.npu_moe_token_permute(x, integers(4, 2))[0],
        lambda: [leaf(4, 8)],
    ),
    (
        "MoeTokenUnpermuteGrad",
        lambda x, p: torch_npu.npu_moe_token_unpermute(x, torch.arange(8).int(), p),
        lambda: [leaf(8, 8), leaf(4, 2)],
    ),
    (
        "LightningIndexerGrad",
        lambda *x: torch_npu.npu_lightning_indexer(*x, sparse_count=4, return_value=True)[1],
        lambda: [leaf(2, 6, 64, 128), leaf(2, 7, 1, 128), leaf(2, 6, 64)],
    ),
    (
        "SparseFlashAttentionGrad",
        lambda q, k, v, a, b: torch_npu.npu_sparse_flash_attention(
            q,
            k,
            v,
            integers(2, 6, 1, 3),
            0.1,
            query_rope=a,
            key_rope=b,
            attention_mode=2,
            return_softmax_lse=True,
        )[0],
        lambda: [
            leaf(2, 6, 4, 512),
            leaf(2, 7, 1, 512),
            leaf(2, 7, 1, 512),
            leaf(2, 6, 4, 64),
            leaf(2, 7, 1, 64),
        ],
    ),
    (
        "SpeedFusionAttentionGrad",
        lambda *x: torch_npu.npu_fusion_attention(*x, 4, "BSH")[0],
        lambda: [leaf(2, 6, 32), leaf(2, 7, 16), leaf(2, 7, 16)],
    ),
    (
        "SpeedFusionAttentionGrad",
        lambda *x: torch_npu.npu_fusion_attention(*x, 4, "TND", **TND)[0],
        lambda: [leaf(6, 4, 8), leaf(7, 2, 8), leaf(7, 2, 8)],
    ),
]


def into(x, run):
    """The operands that are changed in place."""
    assert run(x) is None
    return x


def adamw(last):
    state = [single(4), single(4), single(4)]
    torch_npu.npu_apply_fused_adamw_v2(
        state[0], single(4), state[1], state[2], last, torch.ones(1), 0.1, amsgrad=last is not None
    )
    return tuple(state)


class Reached(Exception):
    """Raised when a call reaches MindSpore's operator."""


class Raw:
    """Stands for MindSpore's operators: stores the name and the operands of a call, and ends it."""

    def __init__(self):
        self.call = None

    def __getattr__(self, name):
        def run(*operands):
            self.call = name, operands
            raise Reached

        return run


class Device:
    """After switch(), calls go to MindSpore's operators. The last call is in .call."""

    def __init__(self, monkeypatch):
        self.monkeypatch, self.raw = monkeypatch, Raw()

    def switch(self):
        self.monkeypatch.setattr(_mapping, "raw", self.raw)
        for module in MODULES:
            self.monkeypatch.setattr(module, "on_ascend", lambda x: True)

    @property
    def call(self):
        return self.raw.call


@pytest.fixture
def device(monkeypatch):
    return Device(monkeypatch)


def described(x):
    """The description of an operand for the other process."""
    if isinstance(x, torch.Tensor):
        return {"shape": list(x.shape), "dtype": str(x.dtype).removeprefix("torch.").replace("bool", "bool_")}
    if isinstance(x, torch.dtype):
        return {"dtype": str(x).removeprefix("torch.")}
    if isinstance(x, (list, tuple)) and x and isinstance(x[0], torch.Tensor):
        return {"tensors": [described(one) for one in x]}
    return x


def of_results(x) -> list:
    x = x if isinstance(x, (tuple, list)) else (x,)
    return [[list(one.shape), str(one.dtype).removeprefix("torch.")] for one in x]


_KINDS = {
    "tensor::TensorPtr": lambda x: isinstance(x, torch.Tensor),
    "ValueTuplePtr": lambda x: (
        isinstance(x, (list, tuple)) and all(isinstance(one, (int, torch.Tensor)) for one in x)
    ),
    "Int64ImmPtr": lambda x: isinstance(x, (int, torch.dtype)) and not isinstance(x, bool),
    "FP32ImmPtr": lambda x: isinstance(x, (int, float)) and not isinstance(x, bool),
    "BoolImmPtr": lambda x: isinstance(x, bool),
    "StringImmPtr": lambda x: isinstance(x, str),
}


def kinds_of(name: str) -> list[tuple[str, bool]]:
    """For each operand: MindSpore's C++ type, and whether it may be missing."""
    for path in PYBOOST.glob("*.h"):
        text = path.read_text()
        if f"class PYBOOST_API {name} : public" in text:
            call = re.search(r"virtual [^;]*?\bCall\(([^;]*)\) = 0;", text).group(1)
            found = re.findall(r"const (std::optional<)?mindspore::([\w:]+)>? &", call)
            return [(kind, bool(optional)) for optional, kind in found]
    pytest.fail(f"MindSpore has no operator {name}")


def reached(device, run, name):
    """The operands with which a call reaches MindSpore's operator. Each has the type in MindSpore's header."""
    device.switch()
    with pytest.raises(Reached):
        run()
    called, operands = device.call
    assert called == name
    for (kind, optional), operand, label in zip(
        kinds_of(name), operands, _mapping.OPERATORS[name], strict=True
    ):
        fits = optional if operand is None else _KINDS[kind](operand)
        assert fits, f"{name}: operand {label} is {operand!r}, MindSpore takes {kind}"
    return operands


def assert_no_tensor_is_given_twice(name, operands):
    """The calls of this file give a tensor of its own for each operand, so that none may reach MindSpore in two places.

    AdamW without amsgrad does not read max_v and takes v in its place.
    """
    places: dict[tuple, str] = {}
    for label, operand in zip(_mapping.OPERATORS[name], operands, strict=True):
        for x in operand if isinstance(operand, (list, tuple)) else [operand]:
            if isinstance(x, torch.Tensor) and x.numel():
                other = places.setdefault((x.data_ptr(), x.shape, x.stride()), label)
                assert other == label or (other, label) == ("v", "max_v"), (
                    f"{name}: operands {other} and {label} are the same tensor"
                )


# What MindSpore's Python operators take as words, they hand on as numbers; the inference starts from the words.
_WORDS: dict[str, dict[int, str]] = {
    **dict.fromkeys(
        ("input_layout", "layout", "layout_query", "layout_key", "layout_kv"),
        {number: word for word, number in _mapping.LAYOUTS.items()},
    ),
    "reduce_op": {collective.SUM: "sum"},
}


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
@pytest.mark.parametrize("number", range(len(CALLS)), ids=[name for name, _ in CALLS])
def test_operands_of_a_call(device, number):
    kept_call(device, number)


def kept_call(device, number: int) -> list:
    """Operator, operands and our results of a call. The operands have the types in MindSpore's header."""
    name, run = CALLS[number]
    with torch.no_grad():
        ours = of_results(run())
        operands = reached(device, run, name)
    assert_no_tensor_is_given_twice(name, operands)
    return [name, described_operands(name, operands), ours]


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
@pytest.mark.parametrize("number", range(len(GRADIENTS)), ids=[name for name, *_ in GRADIENTS])
def test_operands_of_a_gradient(device, number):
    kept_gradient(device, number)


def kept_gradient(device, number: int) -> list:
    """The same for the operator that a backward pass reaches."""
    name, run, leaves = GRADIENTS[number]
    inputs, again = leaves(), leaves()
    out = run(*inputs)
    out.backward(torch.ones_like(out))
    out = run(*again)
    operands = reached(device, lambda: out.backward(torch.ones_like(out)), name)
    assert_no_tensor_is_given_twice(name, operands)
    return [name, described_operands(name, operands), of_results([x.grad for x in inputs])]


def described_operands(name: str, operands) -> list:
    return [
        {"word": _WORDS[label][x], "operand": label, "number": x} if label in _WORDS else described(x)
        for label, x in zip(_mapping.OPERATORS[name], operands, strict=True)
    ]


def _agree(found, ours, gradient: bool) -> bool:
    """Whether shapes and dtypes agree. Gradients may be float32, because they are cast to the dtype of their operand."""
    if isinstance(found, str) or len(found) < len(ours):
        return False
    return all(
        shape == own and (dtype == kind or (gradient and dtype == "float32"))
        for (shape, dtype), (own, kind) in zip(found, ours, strict=False)
    )


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
def test_results_are_those_that_mindspore_infers(tmp_path):
    """The calls of all tests above are inferred in one process."""
    kept = {}
    for kind, rows, keep in (("call", CALLS, kept_call), ("gradient", GRADIENTS, kept_gradient)):
        for number, (name, *_) in enumerate(rows):
            with pytest.MonkeyPatch.context() as monkeypatch:
                kept[f"{name} {kind} {number}"] = keep(Device(monkeypatch), number)
    calls = [[name, operands] for name, operands, _ in kept.values()]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("infer.py"))],
        input=json.dumps(calls),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=True,
    )
    results = json.loads(done.stdout.splitlines()[-1])
    wrong = {}
    for (key, (*_, ours)), found in zip(kept.items(), results, strict=True):
        if not _agree(found, ours, "gradient" in key):
            wrong[key] = {"MindSpore": found, "ours": ours}
    assert wrong == {}


def test_values_reach_their_operands(device):
    """Compares numbers, which shapes do not show."""
    q, s = half(1, 2, 4, 8), single(1, 2, 4, 8)
    saved = {
        "softmax_max": s,
        "softmax_sum": s,
        "attention_in": q,
        "keep_prob": 0.9,
        "seed": 5,
        "scale_value": 0.3,
    }

    def operands(name, run):
        return dict(zip(_mapping.OPERATORS[name], reached(device, run, name), strict=True))

    assert operands("RmsNorm", lambda: torch_npu.npu_rms_norm(half(2, 8), half(8), 1e-5))["epsilon"] == 1e-5
    assert (
        operands("RotaryPositionEmbedding", lambda: torch_npu.npu_rotary_mul(q, q, q, "interleave"))["mode"]
        == 1
    )
    found = operands(
        "SpeedFusionAttentionGrad",
        lambda: torch_npu.npu_fusion_attention_grad(q, q, q, q, 2, "BNSD", **saved),
    )
    assert found["seed"].tolist() == [5] and found["keep_prob"] == 0.9 and found["scale_value"] == 0.3
    assert found["input_layout"] == 1 and found["numels"].tolist() == [2 * 4 * 4]
    call = {"pre_tockens": 3, "next_tockens": 1, "atten_mask": TRIANGLE, "sparse_mode": 4}
    found = operands(
        "SpeedFusionAttention", lambda: torch_npu.npu_fusion_attention(q, q, q, 2, "BNSD", **call)
    )
    assert (found["pre_tokens"], found["next_tokens"], found["sparse_mode"]) == (3, 1, 4)
    packed = {"actual_seq_qlen": torch.tensor([2, 6]), "actual_seq_kvlen": [3, 7]}
    found = operands(
        "SpeedFusionAttention",
        lambda: torch_npu.npu_fusion_attention(
            half(6, 4, 8), half(7, 4, 8), half(7, 4, 8), 4, "TND", **packed
        ),
    )
    assert (found["actual_seq_qlen"], found["actual_seq_kvlen"]) == ((2, 6), (3, 7))


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_starts_of_positions_are_given_where_a_bias_is_made_of_them(device, kind):
    pse = {0: half(1, 2, 4, 4), 1: half(1, 2, 4, 4)}.get(kind, torch.ones(2))
    q, call = half(1, 2, 4, 8), {"pse": pse, "pse_type": kind, "q_start_idx": [3], "kv_start_idx": [5]}
    run = lambda: torch_npu.npu_fusion_attention_v2(q, q, q, 2, "BNSD", **call)  # noqa: E731
    found = reached(device, run, "SpeedFusionAttention")
    found = dict(zip(_mapping.OPERATORS["SpeedFusionAttention"], found, strict=True))
    assert (found["q_start_idx"], found["kv_start_idx"]) == (((3,), (5,)) if kind >= 2 else (None, None))
    assert found["pse_type"] == kind


def test_every_mapped_operator_is_called():
    assert {name for name, *_ in CALLS} | {name for name, *_ in GRADIENTS} == set(_mapping.OPERATORS)
