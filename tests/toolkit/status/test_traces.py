"""The table of a trace: times of the operators without what they call, and files that are not traces."""

from __future__ import annotations

import gzip
import json

import pytest

from megatron_ms import commands
from megatron_ms.errors import UserError
from megatron_ms.status import traces
from megatron_ms.training import folder as folders


def event(name: str, start: float, length: float, **other):
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": start, "dur": length} | other


def test_own_times_leave_out_what_is_called(tmp_path) -> None:
    file = tmp_path / "a.pt.trace.json"
    events = [
        event("linear", 0, 10), event("mm", 2, 4), event("add", 6, 3), event("mm", 20, 5), event("mm", 0, 7, tid=2),
        event("linear", 2, 5, cat="python_function"), {"ph": "M", "name": "process_name"},
    ]  # fmt: skip
    file.write_text(json.dumps({"traceEvents": events}))
    found = traces.operators(file)
    assert {name: (row.calls, row.whole, row.own) for name, row in found.items()} == {
        "linear": (1, 10.0, 3.0),
        "mm": (3, 16.0, 16.0),
        "add": (1, 3.0, 3.0),
    }
    lines = traces.table(file).splitlines()
    assert lines[1].split() == ["mm", "3", "0.02", "72.7%", "0.02"] and len(lines) == 4


def test_a_real_trace(torch_by_name, tmp_path) -> None:
    import torch

    one = torch.ones(64, 64)
    with torch.profiler.profile(
        on_trace_ready=torch.profiler.tensorboard_trace_handler(str(tmp_path), use_gzip=True)
    ):
        for _ in range(3):
            torch.nn.functional.linear(one, one)
    (file,) = traces.files(tmp_path)
    found = traces.operators(file)
    assert found["aten::linear"].calls == 3 and all(
        0 <= row.own <= row.whole + 1e-6 for row in found.values()
    )


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[]", b'{"traceEvents": [1]}', gzip.compress(b"x", mtime=0)[:8]]
)
def test_damaged_traces_are_named(tmp_path, content) -> None:
    file = tmp_path / "a.pt.trace.json.gz"
    file.write_bytes(content if content[:2] == b"\x1f\x8b" else gzip.compress(content))
    with pytest.raises(UserError, match="a.pt.trace.json.gz: is not a trace"):
        traces.operators(file)


def test_a_training_with_a_profile(fake, capsys) -> None:
    assert (
        commands.main(
            [
                "train",
                "toy.yaml",
                "profile.steps=[1,2]",
                "profile.ranks=[0,1]",
                "monitor.watch=false",
                "save.interval=2",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "trace for chrome://tracing: runs/toy/" in out and "aten::mm" in out and "100.0%" in out
    (run,) = folders.runs(fake / "runs")
    assert "--profile-step-start 1" in (run.path / "command.sh").read_text().replace("\\\n    ", "")
    (table,) = run.path.rglob("*.trace.json.txt")
    assert "aten::mm" in table.read_text()
    table.write_text("read")
    found = commands.main(["train", "toy.yaml", "--resume-from", str(run.path), "monitor.watch=false"])
    assert (found, "trace for" in capsys.readouterr().out, table.read_text()) == (0, False, "read")
    for words, said in (
        (
            ["profile.steps=[2,9]"],
            "profile.steps: the step 9 must still be trained, but train.iterations is 3",
        ),
        (["profile.steps=[2,2]"], "must be two numbers in ascending order"),
        (["profile.step=[1,2]"], "did you mean"),
    ):
        assert commands.main(["train", "toy.yaml", *words]) == 2
        assert said in capsys.readouterr().err
