"""The extensions that MindSpeed's builders load, and products fused with communication in one process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import msadapter as torch
from kernels_ascend import mindspeed
from msadapter import torch_npu


def random(seed, *shape):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


@pytest.mark.parametrize("name", sorted(mindspeed.EXTENSIONS))
def test_every_extension_has_its_functions(name):
    found = mindspeed.load(name)
    assert found is mindspeed.load(name)
    assert vars(found)
    assert all(callable(one) for one in vars(found).values())


def test_an_unknown_extension_is_refused_by_name():
    with pytest.raises(NotImplementedError, match="smart_swap"):
        mindspeed.load("smart_swap")


def test_attention_of_the_extension_is_that_of_torch_npu():
    ops = mindspeed.load("fusion_attention_v2")
    q, k, v, g = (random(i, 2, 3, 8).requires_grad_() for i in range(4))
    rest = (
        None,
        None,
        None,
        0.5,
        1.0,
        2147483647,
        2147483647,
        0,
        None,
        None,
        None,
        0,
        True,
        False,
        1,
        None,
        None,
    )
    out = ops.npu_fusion_attention_v2(q, k, v, 2, "BSH", *rest)
    mine = torch_npu.npu_fusion_attention(q, k, v, 2, "BSH", scale=0.5)
    assert torch.equal(out[0], mine[0])
    assert not out[0].requires_grad
    mine[0].backward(g.detach())
    tail = (None, None, None, out[1], out[2], None, out[0], *rest[3:8], out[4], out[5], out[6], *rest[8:])
    found = ops.npu_fusion_attention_grad_v2(q.detach(), k.detach(), v.detach(), g.detach(), 2, "BSH", *tail)
    for one, leaf in zip(found[:3], (q, k, v), strict=True):
        assert torch.equal(one, leaf.grad)


def test_matmul_add_of_the_extension_takes_the_gradient_first():
    dy, x, grad = random(1, 5, 4).float(), random(2, 5, 3).float(), torch.zeros(4, 3)
    mindspeed.load("npu_matmul_add_fp32").npu_matmul_add_fp32(dy, x, grad)
    assert torch.allclose(grad, dy.t() @ x)


def test_memory_of_another_tensor():
    source, target = torch.arange(8.0), torch.zeros(2, 2)
    mindspeed.load("algorithm").reuse_data_ptr(target, source, 3)
    assert target.tolist() == [[3, 4], [5, 6]]
    source[4] = 9
    assert target[0, 1] == 9
    halves = torch.zeros(4, dtype=torch.bfloat16)
    mindspeed.reuse_data_ptr(halves, source, 2)
    assert halves.data_ptr() == source.data_ptr() + 4
    for offset, text in ((-1, "greater than zero"), (5, "overflow")):
        with pytest.raises(RuntimeError, match=text):
            mindspeed.reuse_data_ptr(torch.zeros(4), source, offset)


@pytest.mark.parametrize("experts", [False, True])
def test_ffn(experts):
    x, w1, w2 = random(1, 5, 3), random(2, 2, 3, 4), random(3, 2, 4, 3)
    b1, b2 = random(4, 2, 4), random(5, 2, 3)
    run = mindspeed.load("npu_ffn").npu_ffn
    if not experts:
        out = run(x, w1[0], w2[0], "relu", bias1=b1[0], bias2=b2[0])
        assert torch.allclose(out, torch.relu(x @ w1[0] + b1[0]) @ w2[0] + b2[0])
        return
    want = torch.cat(
        [torch.relu(x[:2] @ w1[0] + b1[0]) @ w2[0] + b2[0], torch.relu(x[2:] @ w1[1] + b1[1]) @ w2[1] + b2[1]]
    )
    assert torch.allclose(run(x, w1, w2, "relu", torch.tensor([2, 3]), bias1=b1, bias2=b2), want)
    assert torch.allclose(run(x, w1, w2, "relu", None, torch.tensor([2, 5]), bias1=b1, bias2=b2), want)
    with pytest.raises(NotImplementedError, match="activation"):
        run(x, w1[0], w2[0], "swish")


def test_fused_with_communication_in_one_process():
    x, w = random(1, 4, 3), random(2, 3, 5)
    out, gathered = torch_npu.npu_all_gather_base_mm(x, w, "0", 1)
    assert torch.allclose(out, x @ w)
    assert torch.equal(gathered, x)
    assert torch_npu.npu_all_gather_base_mm(x, w, "0", 1, gather_output=False)[1].numel() == 0
    assert torch.allclose(torch_npu.npu_all_gather_base_mm(x, w, "0", 1, gather_index=1)[0], x @ w)
    assert torch.allclose(torch_npu.npu_mm_reduce_scatter_base(x, w, "0", 1, reduce_op="sum"), x @ w)
    assert torch.allclose(
        torch_npu.npu_mm_all_reduce_base(x, w, "0", bias=random(3, 5)), x @ w + random(3, 5)
    )
    with pytest.raises(NotImplementedError, match="bias"):
        torch_npu.npu_mm_reduce_scatter_base(x, w, "0", 1, bias=torch.ones(5))
    with pytest.raises(NotImplementedError, match="reduce_op"):
        torch_npu.npu_mm_reduce_scatter_base(x, w, "0", 1, reduce_op="max")
    ops, result, all_of = mindspeed.load("lcal"), torch.zeros(4, 5).double(), torch.zeros(4, 3).double()
    for name in ("pure_matmul", "matmul_all_reduce", "all_gather_matmul", "matmul_reduce_scatter"):
        result.zero_()
        getattr(ops, name)(x, w.t().contiguous(), None, result, 0, 1, "0")
        assert torch.allclose(result, x @ w)
    ops.all_gather_matmul_v2(x, w, None, result, all_of, 0, 1, "0")
    assert torch.equal(all_of, x)
    residual, gamma = random(5, 2, 2, 5), random(6, 5)
    y, normed = mindspeed.load("npu_mm_all_reduce_add_rms_norm").npu_mm_all_reduce_add_rms_norm(
        x, w, residual, gamma, "0"
    )
    assert torch.allclose(y, (x @ w).view(2, 2, 5) + residual)
    assert torch.allclose(normed, torch_npu.npu_rms_norm(y, gamma)[0])
    inplace = mindspeed.load("npu_mm_all_reduce_add_rms_norm_").npu_mm_all_reduce_add_rms_norm_
    assert torch.allclose(inplace(x, w, residual, gamma, "0")[0], y)
    assert torch.allclose(residual, y)


def test_products_of_eight_bits_with_a_sum_over_the_processes():
    """Against float64: int8 with one scale per column (and per row), and float with int8 weights, per channel and per group."""
    torch.manual_seed(3)
    a, w = (torch.randint(-128, 128, size, dtype=torch.int8) for size in ((2, 3, 70), (70, 5)))
    scale, rows = torch.rand(5), torch.rand(3)
    product, bias = a.double() @ w.double(), torch.randint(-99, 99, (5,), dtype=torch.int32)
    base = torch_npu.npu_mm_all_reduce_base
    found = base(a, w, "0", dequant_scale=scale.bfloat16(), bias=bias)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, ((product + bias) * scale.bfloat16()).bfloat16())
    found = base(a, w, "0", dequant_scale=scale / 1e3, pertoken_scale=rows, x3=torch.ones(2, 3, 5).half())
    torch.testing.assert_close(found, (product * scale / 1e3 * rows[:, None] + 1).half())
    x, offset = torch.rand(2, 70), torch.rand(5)
    torch.testing.assert_close(
        base(x, w, "0", antiquant_scale=scale, antiquant_offset=offset), x @ ((w + offset) * scale)
    )
    groups = torch.rand(3, 5)
    torch.testing.assert_close(
        base(x, w, "0", antiquant_scale=groups, antiquant_group_size=32),
        sum(x[:, i : i + 32] @ (w[i : i + 32] * groups[i // 32]) for i in (0, 32, 64)),
    )
    fused = mindspeed.load("npu_mm_all_reduce_add_rms_norm").npu_mm_all_reduce_add_rms_norm
    residual, gamma = torch.rand(2, 3, 5).bfloat16(), torch.rand(5).bfloat16()
    y, _ = fused(a, w, residual, gamma, "0", "sum", 1e-6, bias, None, None, scale.bfloat16(), 0, 0)
    torch.testing.assert_close(y, base(a, w, "0", dequant_scale=scale.bfloat16(), bias=bias) + residual)


def test_what_eight_bit_products_refuse():
    a, w, scale = torch.ones(2, 3, dtype=torch.int8), torch.ones(3, 2, dtype=torch.int8), torch.ones(2)
    base = torch_npu.npu_mm_all_reduce_base
    with pytest.raises(RuntimeError, match="int8 operands"):
        base(a.float(), w, "0", dequant_scale=scale.bfloat16())
    with pytest.raises(RuntimeError, match="int32"):
        base(a, w, "0", dequant_scale=scale.bfloat16(), bias=scale)
    with pytest.raises(RuntimeError, match="pertoken_scale"):
        base(a, w, "0", dequant_scale=scale)
    with pytest.raises(NotImplementedError, match="int64"):
        base(a, w, "0", dequant_scale=scale.long())
    with pytest.raises(NotImplementedError, match="comm_quant_scale"):
        base(a, w, "0", dequant_scale=scale.bfloat16(), comm_quant_scale_1=scale)
    for other in (torch_npu.npu_all_gather_base_mm, torch_npu.npu_mm_reduce_scatter_base):
        with pytest.raises(NotImplementedError, match="quantized"):
            other(a, w, "0", 1, x2_scale=scale)


def test_a_builder_of_mindspeed_loads_ours(tmp_path):
    """In a package like MindSpeed, the builder's load is replaced at import. A late rule, or a different load, is an error."""
    package = tmp_path / "mindspeed" / "op_builder"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "builder.py").write_text(
        textwrap.dedent("""
        class MindSpeedOpBuilder:
            def __init__(self, name):
                self.name = name

            def load(self, verbose=True):
                raise AssertionError("would compile")
        """)
    )
    program = """
        import msadapter
        msadapter.install()
        import dataclasses
        import patches.mindspeed.builder as shipped
        from patches.rules import fingerprint, source_of
        if {known}:
            toy = source_of("MindSpeedOpBuilder.load", open("mindspeed/op_builder/builder.py").read(), "")
            shipped.PATCH = dataclasses.replace(shipped.PATCH, fingerprints=(fingerprint(toy),))
        {first}
        import torch, torch_npu
        from mindspeed.op_builder.builder import MindSpeedOpBuilder
        x = torch.randn(2, 4)
        print(torch.equal(MindSpeedOpBuilder("swiglu").load().swiglu(x), torch_npu.npu_swiglu(x)))
    """
    for first, known, text in (
        ("", True, "True"),
        ("", False, "not the source that the rule was written for"),
        ("import mindspeed.op_builder.builder", True, "imported already"),
    ):
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program).format(first=first, known=known)],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=False,
            env={
                **__import__("os").environ,
                "PYTHONPATH": f"{tmp_path}:{mindspeed.__file__.rsplit('/', 2)[0]}",
            },
        )
        assert text in run.stdout + run.stderr


def test_experts_and_exchange_in_one_process():
    x, w, second, weight = random(1, 5, 3), random(2, 2, 3, 4), random(3, 5, 3), random(4, 3, 2)
    out, more, rows = torch_npu.npu_alltoallv_gmm(
        x, w, "0", 1, [2, 3], [2, 3], mm_x=second, mm_weight=weight, permute_out_flag=True
    )
    assert torch.allclose(out, torch.cat([x[:2] @ w[0], x[2:] @ w[1]]))
    assert torch.allclose(more, second @ weight)
    assert torch.equal(rows, x)
    back, more = torch_npu.npu_gmm_alltoallv(out, w, "0", 1, [2, 3], [2, 3], trans_gmm_weight=True)
    assert torch.allclose(back, torch.cat([out[:2] @ w[0].t(), out[2:] @ w[1].t()]))
    assert more is None
    with pytest.raises(RuntimeError, match="counts"):
        torch_npu.npu_gmm_alltoallv(out, w, "0", 1, [], [2, 3])


def test_blocks_change_their_order_and_back():
    """With two processes and three experts, rows are reordered from (process, expert) to (expert, process)."""
    from kernels_ascend.collective import _by_expert, _per_expert

    counts = [1, 0, 2, 2, 1, 1]
    names = torch.tensor([i for i, n in enumerate(counts) for _ in range(n)])
    sorted_rows = _by_expert(names, counts, 2)
    assert sorted_rows.tolist() == [0, 3, 3, 4, 2, 2, 5]
    assert _by_expert(sorted_rows, counts, 2, back=True).tolist() == names.tolist()
    assert _per_expert(counts, 2) == [3, 1, 3]


@pytest.mark.parametrize("other", ["nothing", "a folder", "a package", "a module"])
@pytest.mark.parametrize("reachable", [True, False])
def test_another_package_called_patches_hides_nothing(tmp_path, other, reachable):
    """Megatron-LM's tree has a folder of that name, and a program may have a package or a module. Ours may be out of reach."""
    root = Path(__file__).resolve().parents[2]
    if other in ("a folder", "a package"):
        (tmp_path / "patches").mkdir()
    if other == "a package":
        (tmp_path / "patches/__init__.py").write_text("mine = 1\n")
    elif other == "a module":
        (tmp_path / "patches.py").write_text("mine = 1\n")
    hide = (
        f"sys.path[:] = [p for p in sys.path if p != {str(root)!r}]; "
        "sys.meta_path[:] = [f for f in sys.meta_path if 'editable' not in str(f)]; "
        "sys.path_hooks[:] = [f for f in sys.path_hooks if 'editable' not in str(f)]; "
        "sys.path_importer_cache.clear(); "
    )
    code = (
        "import sys, importlib.util, kernels_ascend.loader as loader; assert 'patches' not in sys.modules; "
        f"{'' if reachable else hide}"
        "loader.install(); loader.install(); ours = sys.modules.get('_msadapter_patches'); "
        "rules = ours or sys.modules['patches']; print(sorted(rules.runtime._known), ours is not None, "
        "importlib.util.find_spec('patches') is not None); "
        "ours is None or sys.exit(); import patches; print(hasattr(patches, 'mine'))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, [tmp_path, root]))}
    run = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    under_its_name = reachable and other in ("nothing", "a folder")
    told = f"['op-atb-builder', 'op-builder'] {not under_its_name} {reachable or other != 'nothing'}\n"
    assert run.stdout == told + ("False\n" if under_its_name else "")
