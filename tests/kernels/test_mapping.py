"""The Ascend side without the device: our operand names against the headers of MindSpore's operators."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

import msadapter as torch
from kernels_ascend import _mapping
from msadapter import _native, torch_npu

HEADERS = Path(find_spec("mindspore").submodule_search_locations[0]) / "include"
PYBOOST = HEADERS / "mindspore/ccsrc/include/pynative/utils/pyboost/auto_generate"


def _operands(name: str) -> list[str]:
    for path in PYBOOST.glob("*.h"):
        text = path.read_text()
        if f"class PYBOOST_API {name} : public" in text:
            call = re.search(r"virtual [^;]*?\bCall\(([^;]*)\) = 0;", text)
            names = re.findall(r"&(\w+)", call.group(1))
            return [re.sub("_tensor_list$|_tensor$", "", one) for one in names]
    pytest.fail(f"MindSpore has no operator {name}")


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
@pytest.mark.parametrize("name", sorted(_mapping.OPERATORS))
def test_operands_are_those_of_mindspore(name):
    assert list(_mapping.OPERATORS[name]) == _operands(name)


def test_the_native_build_binds_all_of_them():
    assert _native.fused_names() == set(_mapping.OPERATORS)


@pytest.mark.skipif(not PYBOOST.is_dir(), reason="MindSpore's headers are not installed")
def test_layout_numbers_are_those_of_mindspore():
    text = (HEADERS / "mindspore/ops/include/op_enum.h").read_text()
    body = re.search(r"enum FASInputLayoutMode : int64_t \{(.*?)\}", text, re.DOTALL).group(1)
    numbers = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", body)}
    assert numbers.items() >= _mapping.LAYOUTS.items()


@pytest.fixture
def recorded(monkeypatch):
    """Calls of MindSpore's operators, as if tensors were on an NPU; results are made by the CPU's formula elsewhere."""
    calls = []

    class Raw:
        def __getattr__(self, name):
            def call(*operands):
                calls.append((name, dict(zip(_mapping.OPERATORS[name], operands, strict=True))))
                raise NotADirectoryError(name)  # stops the call: nothing can compute here

            return call

    monkeypatch.setattr(_mapping, "raw", Raw())
    monkeypatch.setattr(_mapping._accelerator, "on_host", lambda: False)
    return calls


def test_what_reaches_the_device(recorded, monkeypatch):
    """Every mapped operator gets all of its operands, by the same Python path that computes on the CPU."""
    from kernels_ascend import activation, attention, grouped, moe, norm, optimizer, ring

    for module in (activation, attention, grouped, moe, norm, optimizer, ring):
        monkeypatch.setattr(module, "on_ascend", lambda x: True)
    x, g = torch.zeros(4, 8), torch.ones(8)
    q = torch.zeros(1, 2, 4, 8)
    s = torch.zeros(1, 2, 4, 8)
    i = torch.zeros(4, 2, dtype=torch.int32)
    attention_in = {"softmax_max": s, "softmax_sum": s, "attention_in": q, "keep_prob": 0.9, "seed": 5}
    calls = {
        "RmsNorm": lambda: torch_npu.npu_rms_norm(x, g, 1e-5),
        "Swiglu": lambda: torch_npu.npu_swiglu(x, -1),
        "SwigluGrad": lambda: torch_npu.npu_swiglu_backward(x[:, :4], x, -1),
        "RotaryPositionEmbedding": lambda: torch_npu.npu_rotary_mul(q, q, q, "interleave"),
        "MoeTokenPermute": lambda: torch_npu.npu_moe_token_permute(x, i, 3),
        "MoeTokenUnpermute": lambda: torch_npu.npu_moe_token_unpermute(x, i.flatten()[:4]),
        "MoeGatingTopKSoftmax": lambda: torch_npu.npu_moe_gating_top_k_softmax(x, None, 2),
        "MoeInitRouting": lambda: torch_npu.npu_moe_init_routing(x, i, i, 4),
        "MoeComputeExpertTokens": lambda: torch_npu.npu_moe_compute_expert_tokens(i.flatten(), 3),
        "GroupedMatmulV4": lambda: torch_npu.npu_grouped_matmul([x], [x.t()]),
        "InplaceMatmulAdd": lambda: torch_npu.npu_matmul_add_fp32(x, x, torch.zeros(8, 8)),
        "InplaceGroupedMatmulAdd": lambda: torch_npu.npu_groupmatmul_add_fp32(
            x, x, i[0], torch.zeros(2, 8, 8)
        ),
        "AdamW": lambda: torch_npu.npu_apply_fused_adamw_v2(x, x, x, x, None, torch.ones(1)),
        "RingAttentionUpdate": lambda: torch_npu.npu_ring_attention_update(q[0], s, s, q[0], s, s),
        "SpeedFusionAttention": lambda: torch_npu.npu_fusion_attention(q, q, q, 2, "BNSD"),
        "SpeedFusionAttentionGrad": lambda: torch_npu.npu_fusion_attention_grad(
            q, q, q, q, 2, "BNSD", **attention_in
        ),
    }
    for name, call in calls.items():
        with pytest.raises(NotADirectoryError, match=name):
            call()
        assert recorded[-1][0] == name
    found = dict(recorded)
    assert found["RmsNorm"]["epsilon"] == 1e-5
    assert found["RotaryPositionEmbedding"]["mode"] == 1
    assert found["SpeedFusionAttentionGrad"]["seed"].tolist() == [5]
    assert found["SpeedFusionAttention"]["input_layout"] == 1


def test_an_operand_too_few_is_an_error():
    with pytest.raises(TypeError, match="takes x, gamma, epsilon"):
        _mapping.ascend("RmsNorm", x=1, gamma=2)


def test_the_table_claims_only_what_is_tested():
    """`python -m kernels_ascend` says "proven by test" of each operator: each is named by a test here."""
    from kernels_ascend.__main__ import rows, table

    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    public = [name for name, _, _ in rows() if not name.startswith("_") or name.startswith("_npu")]
    assert [name for name in public if name not in tests] == []
    assert "RmsNorm" in table()
