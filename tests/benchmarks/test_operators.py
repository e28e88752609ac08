"""The generated benchmark of operators: its table of arguments, its rows, its resuming and its page. Nothing is timed."""

from __future__ import annotations

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from benchmarks import operator_arguments, operators, operators_report
from benchmarks.sides import ROOT, environment

OPERATORS = [
    {"name": "exp", "module": "pointwise", "pointwise": True, "gradient": True, "required": ["Tensor"]},
    {
        "name": "cdist",
        "module": "nn_distance",
        "pointwise": False,
        "gradient": True,
        "required": ["Tensor"] * 2,
    },
    {
        "name": "bitwise_and",
        "module": "pointwise_binary",
        "pointwise": True,
        "gradient": False,
        "required": ["Tensor"] * 2,
    },
    {"name": "odd", "module": "shape", "pointwise": False, "gradient": True, "required": ["Tensor", "int"]},
    {"name": "_hidden", "module": "shape", "pointwise": True, "gradient": True, "required": ["Tensor"]},
    {"name": "lstm_cell", "module": "nn_misc", "pointwise": False, "gradient": True, "required": ["Tensor"]},
]


def entry(ratio, family="pointwise", label="exp", size=4096, **more):
    row = {"label": label, "family": family, "dtype": "float32", "size": size, "backward": False}
    return {**row, "ratio": ratio, "ours": 1e-3, "theirs": ratio * 1e-3, **more}


def test_rows_are_generated_from_declarations():
    found, without = operators.calls(OPERATORS)
    assert {call["label"]: call["arguments"] for call in found} == {
        "exp": "r(s, s)",
        "cdist": "r(s, 16), r(s, 16)",
        "bitwise_and": "i(1000, s, s), i(1000, s, s)",
        "lstm_cell": operator_arguments.table()["lstm_cell"],
    }
    assert without == ["odd"]
    assert {call["label"]: call["family"] for call in found}["lstm_cell"] == "recurrent"
    rows = operators.works(found, [4096, 65536], ["cdist", "exp"])
    keys = [operators.key_of(row) for row in rows]
    assert len(set(keys)) == len(keys)
    assert "cdist | float32 | 65536 | forward and backward" in keys and "exp | int64 | 4096 | forward" in keys
    assert not any(key.startswith("bitwise_and") for key in keys)


def test_a_bad_line_of_the_table_is_named():
    with pytest.raises(ValueError, match="exp r"):
        operator_arguments.table("\nexp r(s, s)\n")
    with pytest.raises(ValueError, match="single"):
        operator_arguments.table("\nexp | r(s, s)\nexp | r(s)\n")


def test_every_line_names_an_operator_and_every_call_runs():
    """Each call runs once here, forwards and with its backward pass, on small inputs."""
    code = """
import json, sys, warnings
from benchmarks import operators
from benchmarks.operator_arguments import table
from benchmarks.works import NotHere, find
warnings.simplefilter("ignore")
declared = operators.declared()
names = {operator["name"] for operator in declared}
found, without = operators.calls(declared)
failed = {label: "no such operator" for label in table() if label.split(" ")[0] not in names}
for row in operators.works(found, [4096], []):
    if row["dtype"] == "float32":
        try:
            find(operators.work_of(row)).prepare()()
        except NotHere:
            pass
        except Exception as error:
            failed[operators.key_of(row)] = f"{type(error).__name__}: {error}"
print(json.dumps({"failed": failed, "calls": len(found), "without": without}))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=environment(True, 1),
        capture_output=True,
        text=True,
        check=True,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["failed"] == {}
    assert told["calls"] > 400
    assert len(told["without"]) < 10, told["without"]


def test_a_stopped_run_goes_on(tmp_path):
    found, _ = operators.calls(OPERATORS)
    rows = operators.works(found, [4096], ["cdist"])
    asked = []

    def compare(work, rounds, seconds):
        asked.append(work)
        return {"ratio": 2.0, "ours": 1.0, "theirs": 2.0, "spread": [2, 2]}

    args = SimpleNamespace(rounds=1, slice=0.0, json=tmp_path / "numbers.json")
    pair = SimpleNamespace(compare=compare)
    operators.measured(rows[:1], pair, args, results := {})
    kept = json.loads(args.json.read_text())["results"]
    assert list(kept) == list(results) == [operators.key_of(rows[0])]
    operators.measured(rows, pair, args, kept)
    assert len(asked) == len(rows) == len(kept) == 2


def test_rows_without_a_kernel_stand_apart():
    row = {"dtype": "bfloat16", "family": "products"}
    assert operators.apart(row, {"ratio": 0.1}, "fma avx2") == "the processor has no products of bfloat16"
    assert operators.apart(row, {"ratio": 0.1}, "fma avx2 amx_bf16") == ""
    assert (
        operators.apart(row, {"error": "no kernel\nmore", "failed": ["ours", "theirs"]}, "")
        == "PyTorch refuses it: no kernel"
    )
    assert operators.apart(row | {"dtype": "float32"}, {"error": "no kernel", "failed": ["ours"]}, "") == ""


def test_the_page_has_means_worst_rows_and_what_stands_apart(tmp_path):
    results = {
        "a": entry(0.5),
        "b": entry(2.0, size=65536, label="log"),
        "c": entry(0.1, "shape", label="repeat", size=65536),
        "d": entry(0.9, "shape", label="repeat"),
        "e": entry(0.01, apart="the processor has no products of bfloat16"),
    }
    assert operators_report.mean(operators_report.counted(results).values()) == pytest.approx(0.09**0.25)
    assert list(operators_report.by_family(results)) == ["shape", "pointwise"]
    assert operators_report.falling(results) == [("repeat, float32, forward", [0.9, 0.1])]
    about = {
        "cpu": "a processor",
        "threads": 2,
        "rounds": 1,
        "when": "today",
        "torch": "2",
        "mindspore": "2",
        "load": 0.0,
    }
    page = operators_report.markdown(
        {**about, "sizes": [4096, 65536], "without": ["odd"]}, results, "picture.png"
    )
    rows = [line for line in page.splitlines() if line.startswith(("| repeat | float32", "| exp | float32"))]
    assert [line.split(" | ")[-1] for line in rows] == ["0.10 |", "0.50 |", "0.90 |"]
    assert "no products of bfloat16" in page and "`odd`" in page and "picture.png" in page


def test_wrong_sizes_are_told(capsys):
    for sizes in ("many", "12"):
        with pytest.raises(SystemExit):
            operators.arguments(["--list", "--sizes", sizes])
        assert f"--sizes {sizes}" in capsys.readouterr().err
