"""torch.profiler: what is recorded, how it nests, what is written."""

import gzip
import json

import pytest

import msadapter as torch
from msadapter.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler


def work(n=8):
    x = torch.randn(n, n, requires_grad=True)
    with record_function("product"):
        y = torch.mm(x, x).reshape(-1).sum()
    y.backward()
    return x


def names(prof):
    return [event.name for event in prof.events()]


def test_operators_nest_inside_ranges_and_backward_nodes_are_there():
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        work()
    events = {event.name: event for event in prof.events()}
    outer = events["product"]
    assert {"aten::mm", "aten::reshape", "aten::sum"} <= {child.name for child in outer.cpu_children}
    assert events["aten::view"].cpu_parent.name == "aten::reshape"
    assert events["MmBackward0"].cpu_parent.name == "autograd::engine::evaluate_function: MmBackward0"
    for event in prof.events():
        assert event.cpu_time_total >= sum(child.cpu_time_total for child in event.cpu_children) >= 0
    assert sum(e.self_cpu_time_total for e in prof.events()) == pytest.approx(
        sum(e.cpu_time_total for e in prof.events() if e.cpu_parent is None)
    )


def test_nothing_is_recorded_outside():
    with profile() as prof:
        torch.ones(2)
    torch.zeros(2)
    assert "aten::ones" in names(prof) and "aten::zeros" not in names(prof)


def test_sums_by_name_and_by_shape():
    with profile(record_shapes=True) as prof:
        for n in (4, 4, 6):
            torch.mm(torch.ones(n, n), torch.ones(n, n))
        torch.ones(3).add_(1)
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::mm"].count == 3 and rows["aten::add_"].count == 1
    by_shape = [row for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::mm"]
    assert sorted((row.count, row.input_shapes) for row in by_shape) == [
        (1, [[6, 6], [6, 6]]),
        (2, [[4, 4], [4, 4]]),
    ]


def test_operations_are_counted():
    with profile(with_flops=True) as prof:
        torch.mm(torch.ones(3, 4), torch.ones(4, 5))
        torch.nn.functional.linear(torch.ones(2, 3, 4), torch.ones(5, 4))
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["aten::mm"].flops == 2 * 3 * 4 * 5
    assert rows["aten::linear"].flops == 2 * 2 * 3 * 4 * 5
    assert "Total FLOPs" in prof.key_averages().table()


def test_memory_of_an_operator_that_keeps_its_result():
    with profile(profile_memory=True) as prof:
        kept = torch.zeros(1 << 18)
        del kept
        other = torch.ones(1 << 18)
    event = next(e for e in prof.events() if e.name == "aten::ones")
    assert event.cpu_memory_usage >= other.numel() * 4
    assert "CPU Mem" in prof.key_averages().table(sort_by="cpu_memory_usage")


def test_stacks(tmp_path):
    with profile(with_stack=True) as prof:
        work(64)
    event = next(e for e in prof.events() if e.name == "aten::mm")
    assert "test_profiler.py" in event.stack[0] and "work" in event.stack[0]
    prof.export_stacks(tmp_path / "stacks.txt")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines and all(line.rsplit(" ", 1)[1].isdigit() for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(tmp_path / "no.txt", "colour")


def test_table_is_sorted_and_cut():
    with profile() as prof:
        for _ in range(5):
            torch.ones(2)
        torch.zeros(2)
    text = prof.key_averages().table(sort_by="count", row_limit=1)
    assert "aten::ones" in text and "aten::zeros" not in text and "Self CPU time total" in text
    with pytest.raises(AttributeError):
        prof.key_averages().table(sort_by="beauty")


def test_chrome_trace(tmp_path):
    with profile(record_shapes=True) as prof:
        work()
    prof.add_metadata("run", "one")
    prof.export_chrome_trace(tmp_path / "trace.json")
    prof.export_chrome_trace(str(tmp_path / "trace.json.gz"))
    trace = json.loads((tmp_path / "trace.json").read_text())
    assert trace["run"] == "one" and trace["schemaVersion"] == 1
    spans = {e["name"]: e for e in trace["traceEvents"] if e["ph"] == "X"}
    mm, around = spans["aten::mm"], spans["product"]
    assert (
        around["ts"] <= mm["ts"]
        and mm["ts"] + mm["dur"] <= around["ts"] + around["dur"]
        and mm["tid"] == around["tid"]
    )
    assert (
        mm["args"]["Input Dims"] == [[8, 8], [8, 8]]
        and mm["cat"] == "cpu_op"
        and around["cat"] == "user_annotation"
    )
    with gzip.open(tmp_path / "trace.json.gz", "rt") as stream:
        assert len(json.load(stream)["traceEvents"]) == len(trace["traceEvents"])
    assert sorted(p.name for p in tmp_path.iterdir()) == ["trace.json", "trace.json.gz"]


def test_schedule_writes_a_trace_a_cycle(tmp_path):
    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(schedule=plan, on_trace_ready=tensorboard_trace_handler(str(tmp_path))) as prof:
        for step in range(10):
            torch.full((1,), float(step))
            prof.step()
    traces = sorted(tmp_path.iterdir())
    assert len(traces) == 2
    for first, path in zip((2, 6), traces, strict=True):
        seen = [e["name"] for e in json.loads(path.read_text())["traceEvents"]]
        assert [n for n in seen if n.startswith("ProfilerStep")] == [
            f"ProfilerStep#{first}",
            f"ProfilerStep#{first + 1}",
        ]
        assert seen.count("aten::full") == 2


def test_one_recording_at_a_time():
    with profile() as prof, pytest.raises(RuntimeError, match="Profiler is already enabled"), profile():
        pass
    torch.ones(1)
    with profile() as prof:
        torch.ones(1)
    assert names(prof).count("aten::ones") == 1


def test_an_error_inside_leaves_a_finished_event():
    with profile() as prof, pytest.raises(RuntimeError):
        torch.mm(torch.ones(2, 3), torch.ones(2, 3))
    event = next(e for e in prof.events() if e.name == "aten::mm")
    assert event.time_range.end > event.time_range.start


def test_optimizer_step_has_its_range():
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    optimizer = torch.optim.SGD([p], lr=0.1)
    with profile() as prof:
        optimizer.step()
    assert "Optimizer.step#SGD.step" in names(prof)


def test_autograd_profiler_interface(tmp_path):
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        work()
    assert "aten::mm" in prof.table(sort_by="self_cpu_time_total")
    assert prof.total_average().count == len(prof.function_events)
    prof.export_chrome_trace(tmp_path / "old.json")
    assert (tmp_path / "old.json").exists()
    with torch.autograd.profiler.profile(enabled=False) as off:
        work()
    with pytest.raises(RuntimeError):
        off.table()


def test_unsupported_names_say_so():
    with profile() as prof:
        pass
    with pytest.raises(NotImplementedError, match="export_memory_timeline"):
        prof.export_memory_timeline("x.html")


def test_the_npus_options_are_ones_that_mindspores_profiler_has():
    import mindspore.profiler as ms

    from msadapter import torch_npu
    from msadapter.profiler.device import _experimental

    npu = torch_npu.profiler
    for level in npu.ProfilerLevel:
        for counters in npu.AiCMetrics:
            config = npu._ExperimentalConfig(
                profiler_level=level, aic_metrics=counters, export_type=[npu.ExportType.Db]
            )
            assert isinstance(_experimental(ms, config), ms._ExperimentalConfig)


def test_the_type_of_a_device_has_two_names():
    """PyTorch has it in torch.autograd, too, where Megatron's tests look for it."""
    assert torch.autograd.DeviceType is torch.profiler.DeviceType
