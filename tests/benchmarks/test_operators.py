"""The generated benchmark of operators: its table of arguments, its rows, its resuming and its page. Nothing is timed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from benchmarks import operator_arguments, operators, operators_report, sides
from benchmarks.sides import ROOT, Pair, environment

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
    row = {
        "label": label,
        "call": label,
        "family": family,
        "dtype": "float32",
        "size": size,
        "backward": False,
    }
    return {**row, "ratio": ratio, "ours": 1e-3, "theirs": ratio * 1e-3, **more}


def keyed(*entries):
    return {operators.key_of(one): one for one in entries}


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
    assert (
        "cdist | float32 | 65536 | forward and backward" in keys and "exp | float32 | 4096 | forward" in keys
    )
    assert (
        "exp | int64 | 65536 | forward" in keys and "exp | int64 | 4096 | forward" not in keys
    )  # the sample: one size
    assert not any(key.startswith("bitwise_and") for key in keys)


def test_an_operator_of_an_unknown_module_is_named():
    with pytest.raises(SystemExit, match="no family for the module 'novel' of odd"):
        operators.family_of({"name": "odd", "module": "novel"})
    with pytest.raises(SystemExit, match="no family for the module '' of odd"):
        operators.family_of({"name": "odd", "module": ""})


def test_a_call_of_one_size_has_rows_of_one_size():
    assert operator_arguments.follows_size("r(3, m), 5") and not operator_arguments.follows_size(
        "r(3, 4), max=5"
    )
    call = {"label": "odd", "call": "odd", "family": "shape", "gradient": False}
    rows = operators.works(
        [{**call, "arguments": "r(3, 4)"}, {**call, "label": "even", "arguments": "r(s)"}], [4096, 65536], []
    )
    assert [(row["label"], row["size"]) for row in rows] == [("odd", 65536), ("even", 4096), ("even", 65536)]


def test_what_is_not_timed_is_listed_with_its_reason():
    found, without = operators.calls(OPERATORS)
    more = [{"name": "is_signed"}, {"name": "exp_"}, {"name": "cdist"}]
    listed = operators.not_timed(OPERATORS + more, found, without)
    assert list(listed["left_out"].values()) == [["is_signed"]]
    assert listed["without"] == ["odd"] and listed["fixed"] == []


def test_a_bad_line_of_the_table_is_named():
    with pytest.raises(ValueError, match="exp r"):
        operator_arguments.table("\nexp r(s, s)\n")
    with pytest.raises(ValueError, match="repeats the name 'exp'"):
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
modules = sorted({operator["module"] for operator in declared})
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
families = {call["label"]: call["family"] for call in found}
print(json.dumps({"failed": failed, "families": families, "modules": modules, "without": without}))
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
    assert len(told["families"]) > 480
    assert told["without"] == []
    assert "" not in told["modules"] and set(told["families"].values()) <= set(operators.FAMILIES)
    expected = {
        "exp": "pointwise",
        "mm": "products",
        "nn.functional.linear": "products",
        "isin": "sorting and counting",
    }
    assert {name: told["families"][name] for name in expected} == expected


def test_a_stopped_run_goes_on(tmp_path):
    found, _ = operators.calls(OPERATORS)
    rows = operators.works(found, [4096], ["cdist"])
    asked = []

    def compare(work, rounds, seconds):
        asked.append(work)
        return {"ratio": 2.0, "ours": 1.0, "theirs": 2.0, "spread": [2, 2]}

    args = SimpleNamespace(rounds=1, slice=0.0, json=tmp_path / "numbers.json")
    pair = SimpleNamespace(compare=compare, peaks=lambda work: {"peak": {"ours": 2, "theirs": 1}})
    operators.measured(rows[:1], pair, args, results := {})
    kept = json.loads(args.json.read_text())["results"]
    assert list(kept) == list(results) == [operators.key_of(rows[0])]
    operators.measured(rows, pair, args, kept)
    assert len(asked) == len(rows) == len(kept) == 2


def test_the_peak_memory_is_asked_for_from_a_million_elements_on(tmp_path):
    call = {"label": "exp", "call": "exp", "family": "pointwise", "gradient": False, "arguments": "r(s)"}
    rows = operators.works([call], [4096, 2**20], [])
    pair = SimpleNamespace(
        compare=lambda *_: {"ratio": 1.0}, peaks=lambda work: {"peak": {"ours": 2, "theirs": 1}}
    )
    operators.measured(rows, pair, SimpleNamespace(rounds=1, slice=0.0, json=None), results := {})
    assert {entry["size"]: "peak" in entry for entry in results.values()} == {4096: False, 2**20: True}


def test_rows_without_a_kernel_stand_apart():
    row = {"dtype": "bfloat16", "family": "products", "call": "mm"}
    assert (
        operators.apart(row, {"ratio": 0.1}, {"fma", "avx2"}) == "the processor has no products of bfloat16"
    )
    assert operators.apart(row, {"ratio": 0.1}, {"fma", "avx2", "amx_bf16"}) == ""
    half = row | {"dtype": "float16"}
    assert operators.apart(half, {"ratio": 60}, {"avx512_bf16"}) == "the processor has no products of float16"
    assert operators.apart(half, {"ratio": 1}, {"avx512_fp16"}) == ""
    attention = {
        "family": "attention, embedding, distance",
        "call": "nn.functional.scaled_dot_product_attention",
    }
    assert operators.apart(half | attention, {"ratio": 1}, {"avx2"})
    assert not operators.apart(half | attention | {"call": "nn.functional.embedding"}, {"ratio": 1}, {"avx2"})
    assert (
        operators.apart(row, {"error": "no kernel\nmore", "failed": ["ours", "theirs"]}, set())
        == "PyTorch refuses it: no kernel"
    )
    assert (
        operators.apart(row | {"dtype": "float32"}, {"error": "no kernel", "failed": ["ours"]}, set()) == ""
    )


def test_means_count_large_ratios_in_two_ways():
    rows = [entry(0.5), entry(32.0, label="trunc")]
    assert operators_report.mean(rows) == pytest.approx(4)
    assert operators_report.mean(rows, operators_report.CLIP) == pytest.approx(2**0.5)


def test_a_ratio_falls_only_where_the_work_takes_the_time():
    slow = [
        entry(ratio, label="repeat", size=size) for ratio, size in ((0.9, 4096), (0.5, 65536), (0.1, 2**20))
    ]
    assert operators_report.falling(keyed(*slow)) == [
        ("repeat, float32, forward", [(4096, 0.9), (65536, 0.5), (2**20, 0.1)])
    ]
    quick = [row | {"ours": row["ours"] / 100} if row["size"] < 2**20 else row for row in slow]
    assert operators_report.falling(keyed(*quick)) == []


def test_memory_is_compared_above_the_noise():
    def peak(ours, theirs):
        return entry(1.0, peak={"ours": ours * 2**20, "theirs": theirs * 2**20})

    ratios = [operators_report.memory_ratio(peak(*pair)) for pair in ((8, 4), (0.5, 0.1), (4, 0), (4, 5))]
    assert ratios == [2.0, 1.0, 4.0, 0.8]
    assert math.isnan(operators_report.memory_ratio(entry(1.0)))
    assert [key for _, key, _ in operators_report.hungry({"a": peak(8, 4), "b": peak(6, 4)})] == ["a"]


def test_targets_count_rows_without_a_reason():
    slow = keyed(entry(0.3), entry(0.4, label="log"), entry(3.0, "shape", label="cat"))
    table = [["ex*", "float32", "forward", "PyTorch's is vectorised"]]
    told = {target: (found, met) for target, found, met in operators_report.targets(slow, 4096, table)}
    assert told["geometric mean at least 1.2"] == ("0.71", False)
    assert told["no family's mean below 0.9"] == ("pointwise", False)
    assert told["no row below 0.5 without a reason"] == ("1 of 3 rows", False)
    table += [["log", "*", "*", "another"]]
    told = {target: met for target, _, met in operators_report.targets(slow, 4096, table)}
    assert told["no row below 0.5 without a reason"]


def test_every_reason_is_about_a_call_that_is_timed():
    found, _ = operators.calls(operators.declared())
    rows = operators.works(found, [2**20], [])
    for line in operators_report.reasons():
        assert any(operators_report.reason_of(row, [line]) for row in rows), line


def test_a_bad_line_of_reasons_is_named(tmp_path):
    (file := tmp_path / "reasons.tsv").write_text("# about\nexp\tfloat32\ttoo few\n")
    with pytest.raises(ValueError, match=r"reasons\.tsv:2: expected call, type, pass and reason"):
        operators_report.reasons(file)


def test_the_page_has_targets_means_worst_rows_and_what_stands_apart(tmp_path, monkeypatch):
    (table := tmp_path / "reasons.tsv").write_text("repeat\tfloat32\t*\tits own reason\n")
    monkeypatch.setattr(operators_report, "REASONS", table)
    results = keyed(
        entry(0.5),
        entry(2.0, size=65536, label="log", peak={"ours": 2**23, "theirs": 2**22}),
        entry(0.1, "shape", label="repeat", size=65536),
        entry(0.9, "shape", label="repeat"),
        entry(0.01, label="mm", apart="the processor has no products of bfloat16"),
    )
    assert list(operators_report.by_family(results)) == ["shape", "pointwise"]
    about = {
        "cpu": "a processor",
        "threads": 2,
        "rounds": 1,
        "when": "today",
        "torch": "2",
        "mindspore": "2",
        "load": 0.0,
        "sizes": [4096, 65536],
        "without": ["odd"],
        "left_out": {"It is a view": ["narrow"]},
        "fixed": ["even"],
        "command": operators.command(
            SimpleNamespace(instructions="avx2", sizes=[4096, 65536], table=tmp_path / "page.md")
        ),
        "limited": ", limited to AVX2",
    }
    page = operators_report.markdown(about, results, "picture.png")
    lines = page.splitlines()
    assert (
        lines[0].endswith(", limited to AVX2")
        and "--torch-python PATH --instructions avx2 --sizes 4096,65536" in page
    )
    assert "--table docs/page.md" in page
    assert "| repeat | float32 | forward | 100 us | 1.00 ms | 0.90 | 0.10 |  | its own reason |" in lines
    assert "| log | float32 | forward | 2.00 ms | 1.00 ms |  | 2.00 | 2.00 |  |" in lines
    assert "| repeat, float32, forward | 0.90 at 4096, 0.10 at 65536 |" in lines
    assert "| log, float32, 65536, forward | 4.0 | 8.0 | 2.0 |" in lines
    assert "| all | 2 | 0.67 | 0.45 | 0.45 | 0.10 |" in lines
    assert "| no row below 0.5 without a reason | 0 of 2 rows | yes |" in lines
    assert "| It is a view | `narrow` |" in lines
    assert (
        "no products of bfloat16" in page and "`odd`" in page and "`even`" in page and "picture.png" in page
    )
    operators_report.plot(results, tmp_path / "picture.png", [4096, 65536])
    assert (tmp_path / "picture.png").stat().st_size > 1000


def test_wrong_sizes_are_told(capsys):
    for sizes in ("many", "12"):
        with pytest.raises(SystemExit):
            operators.arguments(["--list", "--sizes", sizes])
        assert f"--sizes {sizes}" in capsys.readouterr().err


class _Side:
    """A side whose turns take the given times, again and again."""

    def __init__(self, *seconds):
        self.times, self.turns = seconds, 0

    def calls_within(self, work, seconds):
        return 1, 0.001

    def seconds(self, work, calls):
        self.turns += 1
        return self.times[(self.turns - 1) % len(self.times)]


@pytest.mark.parametrize(
    ("ours", "turns", "ratio"),
    [((1.0,), 3, 2.0), ((1.0, 1.1, 1.0), 3, 2.0), ((1.0, 3.0, 1.0), 4, 2.0), ((1.0, 3.0), 12, 4 / 3)],
    ids=["steady", "nearly steady", "one turn disturbed", "never steady"],
)
def test_works_of_unsteady_ratios_get_more_turns(ours, turns, ratio):
    """More turns until the middle half of the ratios agrees, and four times as many at most."""
    pair = Pair.__new__(Pair)
    pair.sides = {"ours": _Side(*ours), "theirs": _Side(2.0)}
    found = pair.compare("work", 3, 0.001)
    assert pair.sides["ours"].turns == pair.sides["theirs"].turns == turns
    assert found["ratio"] == pytest.approx(ratio)


def test_both_sides_can_be_limited_to_narrower_vectors(monkeypatch):
    """The variables of one side would compare our AVX2 with PyTorch's AVX-512."""
    for name in sides.LIMITS["avx2"]:
        monkeypatch.setenv(name, "")
    sides.limit(None)
    assert not any(os.environ[name] for name in sides.LIMITS["avx2"])
    sides.limit("avx2")
    ours, theirs = sides.environment(True, 1), sides.environment(False, 1)
    assert ours["MSADAPTER_CPU"] == "x86-64-v3" and theirs["ATEN_CPU_CAPABILITY"] == "avx2"
    assert sides.cpu_name().endswith("limited to AVX2")
    assert not any(flag.startswith(("avx512", "amx")) for flag in sides.processor_flags())
