"""The face of torch_npu: modules, torch.ops.npu, profiler, tools, transfer_to_npu."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import msadapter as torch
from msadapter import torch_npu

ROOT = Path(__file__).resolve().parents[2]

# Names that programs reach in ways that tests/npu/make_symbols.py does not see; the others are in test_symbols.py.
NAMES = [
    "_C._distributed_c10d.ProcessGroupHCCL.Options.hccl_config",
    "npu.mstx.range_end",
    "npu.mstx.range_start",
    "npu_moe_compute_expert_tokens",
    "npu_moe_finalize_routing",
    "npu_moe_init_routing",
]


@pytest.mark.parametrize("name", NAMES)
def test_name_is_there(name):
    found = torch_npu
    for part in name.split("."):
        found = getattr(found, part)


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    ).stdout.split()


def test_npu_is_the_module_of_torch_under_every_name():
    out = run("""
        import msadapter
        msadapter.install()
        import sys, torch, torch_npu
        from torch_npu.npu import set_device
        import torch_npu.npu as one
        print(one is torch.npu is torch_npu.npu, torch.npu.set_device is set_device)
        from torch_npu.npu._recovery import check_npu_tensor_is_safe
        import torch_npu.npu.mstx, torch.npu.mstx
        print(sys.modules["torch_npu.npu.mstx"] is sys.modules["torch.npu.mstx"])
        import torchair
        from torchair.ge import Tensor, TensorSpec
        from torchair import ge, register_fx_node_ge_converter
        print(register_fx_node_ge_converter("x")(len) is len)
    """)
    assert out == ["True"] * 4


def test_compiling_graphs_says_that_it_cannot():
    with pytest.raises(NotImplementedError, match="compiling graphs"):
        torch_npu.dynamo.torchair.get_npu_backend()(None, [])


def test_operators_are_in_torch_ops():
    x = torch.randn(2, 4)
    assert torch.equal(torch.ops.npu.npu_swiglu(x), torch_npu.npu_swiglu(x))
    assert torch.equal(
        torch.ops.npu.npu_rms_norm(x, torch.ones(4))[0], torch_npu.npu_rms_norm(x, torch.ones(4))[0]
    )


def test_a_missing_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="npu_scatter_nd_update"):
        torch_npu.npu_scatter_nd_update  # noqa: B018
    assert not hasattr(torch_npu, "no_such_thing")


def test_transfer_renames_devices_and_backends():
    out = run(
        """
        import msadapter
        msadapter.install()
        import torch, torch_npu
        before = torch.zeros(1, device="cuda").device
        from torch_npu.contrib import transfer_to_npu
        x = torch.zeros(2, device="cuda:0")
        print(before.type, x.device, torch.device("cuda"), torch.device("cuda", 0))
        print(x.is_npu, x.cuda().device, x.npu().device)
        print(x.is_cuda, torch.zeros(1, device="cpu").is_cuda)
        print(x.device == torch.device("cuda:0") == torch.device("npu:0"), torch.device("cpu"))
        importlib = __import__("importlib"); importlib.reload(transfer_to_npu)
        print(torch.device("cuda:0"))
        """,
        MSADAPTER_DEVICE="cuda",
    )
    assert out == [
        "cuda",
        "npu:0",
        "npu",
        "npu:0",
        "True",
        "npu:0",
        "npu:0",
        *("True", "False", "True"),
        "cpu",
        "npu:0",
    ]


def test_profiler_writes_a_trace(tmp_path):
    p = torch_npu.profiler
    config = p._ExperimentalConfig(
        aic_metrics=p.AiCMetrics.PipeUtilization,
        profiler_level=p.ProfilerLevel.Level1,
        export_type=[p.ExportType.Text],
    )
    with p.profile(
        activities=[p.ProfilerActivity.CPU, p.ProfilerActivity.NPU],
        schedule=p.schedule(wait=0, warmup=0, active=1, repeat=1),
        on_trace_ready=p.tensorboard_trace_handler(str(tmp_path)),
        experimental_config=config,
    ) as prof:
        number = torch_npu.npu.mstx.range_start("my range")
        torch_npu.npu.mstx.range_end(number)
        torch_npu.npu.mstx.mark("here")
        prof.step()
    (trace,) = tmp_path.iterdir()
    assert "my range" in trace.read_text()


def test_a_trace_of_which_the_program_says_when_it_is_analysed(tmp_path, monkeypatch):
    """MindSpeed-MM gives analyse_flag, and imports analyse for its tool."""
    p = torch_npu.profiler
    monkeypatch.chdir(tmp_path)
    with p.profile(on_trace_ready=p.tensorboard_trace_handler(worker_name="first", analyse_flag=False)):
        torch.zeros(2) + 1
    (trace,) = tmp_path.iterdir()
    assert trace.name.startswith("first.") and "add" in trace.read_text()
    with pytest.raises(NotImplementedError, match=r"torch_npu\.profiler\.profiler\.analyse"):
        p.profiler.analyse(str(tmp_path), max_process_number=1, export_type=["text"])


def test_flops_are_counted_and_paused():
    counter = torch_npu.utils.flops_count.FlopsCounter()
    a, b = torch.zeros(2, 3), torch.zeros(3, 5)
    counter.start()
    torch.matmul(a, b)
    counter.pause()
    torch.nn.functional.linear(a, b.t().contiguous())
    counter.resume()
    assert counter.get_flops() == [60, 120]
    counter.stop()
    torch.matmul(a, b)
    assert counter.get_flops() == [60, 120]


def test_cann_version(tmp_path, monkeypatch):
    monkeypatch.delenv("ASCEND_HOME_PATH", raising=False)
    assert torch_npu.utils.collect_env.get_cann_version() == ""
    (tmp_path / "aarch64-linux").mkdir()
    (tmp_path / "aarch64-linux" / "ascend_toolkit_install.info").write_text(
        "package_name=x\nversion=8.2.RC1\n"
    )
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path))
    assert torch_npu.utils.collect_env.get_cann_version() == "8.2.RC1"


def test_small_tools():
    module = importlib.import_module("msadapter.torch_npu")
    assert module.empty_with_swapped_memory([2, 3]).shape == (2, 3)
    parts = [torch.ones(2, 2), torch.zeros(3)]
    flat = torch_npu.utils.npu_combine_tensors(parts)
    flat.add_(1)
    assert parts[0].tolist() == [[2, 2], [2, 2]]
    assert parts[1].tolist() == [1, 1, 1]
    torch_npu.utils.set_thread_affinity([0, 0])
    assert os.sched_getaffinity(0) == {0}
    torch_npu.utils.reset_thread_affinity()


def test_types_without_methods_of_the_device():
    """torch_npu's list contains the quantized types, and no type with which operators compute."""
    assert {str(d) for d in torch_npu.unsupported_dtype} == {
        "torch.quint8", "torch.quint4x2", "torch.quint2x4", "torch.qint32", "torch.qint8",
    }  # fmt: skip
