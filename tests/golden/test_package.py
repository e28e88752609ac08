"""The recorded answers themselves: each file says where it comes from, fits its cases, and the comparison notices changes."""

from __future__ import annotations

import copy
import json

import pytest

from tests.golden import store, verdict
from tests.golden.answers import first_sentence
from tests.golden.suites import SUITES, cases
from tests.golden.verdict import DEFAULT, Rule, compare, difference, judge, known_failures, rule_of, unused

RECORDED = [name for name in SUITES if name != "files"]
# Their modules need packages that only recording needs.
ONLY_RECORDED = {"dtensor", "samples", "second_order", "transformers", "trl"}


@pytest.mark.parametrize("name", RECORDED)
def test_a_file_says_where_it_comes_from(name):
    golden = store.load(name)
    assert golden.head["torch"].startswith("2.13.0") and isinstance(golden.head["seed"], int)
    assert golden.cases


def test_every_file_belongs_to_a_suite():
    files = {path.stem for path in store.HERE.iterdir() if path.suffix in (".json", ".npz")}
    assert files == set(RECORDED)
    assert all(store._file(name).suffix == (".npz" if SUITES[name].packed else ".json") for name in RECORDED)


@pytest.mark.parametrize("name", [name for name in RECORDED if name not in ONLY_RECORDED])
def test_every_case_is_recorded(name):
    """Suites whose cases are derived from PyTorch's own answers have no separate cases to check."""
    found = cases(name)
    assert not found or set(found) == set(store.load(name).cases)


@pytest.mark.parametrize("name", sorted(known_failures()))
def test_known_failures_name_cases(name):
    suite = name.removeprefix("plain:")
    # The answers of conformance are not recorded here, and out_rules has several cases in each answer: both have such a
    # test of their own.
    if suite not in ("conformance", "out_rules"):
        assert unused(name, store.load(suite).cases) == []


def test_every_rule_names_cases():
    unmatched = []
    for suite, case, rule in verdict.RULES:
        names = [(name, c) for name in RECORDED for c in [*store.load(name).cases, "x rate as a tensor"]]
        if not any(rule_of(*at) is rule for at in names):
            unmatched.append((suite, case))
    assert unmatched == []


TENSOR = {"dtype": "torch.float32", "shape": [2], "stride": [1], "values": [1.0, -100.0]}


def _changed(**parts) -> dict:
    return TENSOR | parts


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (_changed(dtype="torch.float64"), TENSOR),
        (_changed(shape=[2, 1]), TENSOR),
        (_changed(stride=[2]), TENSOR),
        (_changed(values=[1.0]), TENSOR),
        (_changed(values=[1.0 + 3e-5, -100.0]), TENSOR),
        (_changed(values=[1.0, -100.003]), TENSOR),
        (_changed(values=[1.0, "nan"]), TENSOR),
        (_changed(values=[1, -100.0]), TENSOR),
        (TENSOR, _changed(values=["inf", -100.0])),
        (_changed(dtype="torch.int64", values=[1, 2]), _changed(dtype="torch.int64", values=[1, 3])),
        ({"complex": [1.0, 2.0]}, {"complex": [1.0, 2.1]}),
        ({"complex": [1.0, 2.0]}, 1.0),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1, 2], [1, 2, 3]),
        (True, 1),
        (1.0, 1),
        (None, "None"),
        ({"error": ["TypeError", "one"]}, {"error": ["TypeError", "two"]}),
        ({"error": ["TypeError", "one"]}, TENSOR),
        ([1.0, 2.0], [1.0, 2.1]),
    ],
)
def test_a_difference_is_noticed(ours, theirs):
    assert difference(copy.deepcopy(theirs), theirs) is None
    assert difference(ours, theirs) is not None


def test_what_rounding_explains_passes():
    assert difference(_changed(values=[1.0 + 1e-5, -100.001]), TENSOR) is None
    loose = Rule({"float32": 1e-3}, share=1, strides=False)
    assert difference(_changed(values=[1.09, -100.0], stride=[7]), TENSOR, loose) is None
    assert difference(_changed(values=[1.11, -100.0]), TENSOR, loose) is not None
    zero = _changed(values=[0.0, -100.0])
    minus = _changed(values=[-0.0, -100.0])
    assert difference(minus, zero) is None
    assert difference(minus, zero, Rule(DEFAULT.tolerance, signs_of_zero=True)) is not None


def test_sums_of_magnitudes_decide_for_digests():
    theirs = {"dtype": "torch.float32", "shape": [9], "not finite": [0, 0, 0], "sum": 0.1, "magnitude": 100.0}
    assert difference(theirs | {"sum": 0.1015}, theirs) is None
    assert difference(theirs | {"sum": 0.103}, theirs) is not None
    assert difference(theirs | {"not finite": [1, 0, 0]}, theirs) is not None


def test_known_failures_are_strict(monkeypatch, tmp_path):
    file = tmp_path / "known.tsv"
    file.write_text(
        "suite\tknown\\d\tnot done\nsuite\tlast bits\trounding: they differ\nplain:suite\tslow\tplain\n"
    )
    monkeypatch.setattr(verdict, "FILE", file)
    monkeypatch.setenv("MSADAPTER_FAST", "1")
    known_failures.cache_clear()
    try:
        judge("suite", "known1", "it differs")
        judge("suite", "last bits", None)
        judge("suite", "last bits", "it differs")
        judge("suite", "other", None)
        with pytest.raises(AssertionError, match="known1 is as PyTorch's now: take its line out"):
            judge("suite", "known1", None)
        for case in ("other", "slow"):
            with pytest.raises(AssertionError, match="it differs"):
                judge("suite", case, "it differs")
        monkeypatch.setenv("MSADAPTER_FAST", "0")
        judge("suite", "slow", "it differs")
        assert unused("suite", ["known1"]) == ["last bits"]
        file.write_text("suite\tno reason\n")
        known_failures.cache_clear()
        with pytest.raises(ValueError, match="known.tsv:1: expected suite, case and reason"):
            judge("suite", "known1", None)
    finally:
        known_failures.cache_clear()


def test_a_case_with_a_mark_compares_the_class_alone():
    name = "!trained(lr=-1)"
    compare("further_names", name, {"error": ["ValueError", "another text"]})
    with pytest.raises(AssertionError, match="TypeError"):
        compare("further_names", name, {"error": ["TypeError", "another text"]})


@pytest.mark.parametrize("packed", [False, True])
def test_files_keep_every_number(packed, monkeypatch, tmp_path):
    monkeypatch.setattr(store, "HERE", tmp_path)
    store.load.cache_clear()
    told = {
        "a": {"values": [1.5, -0.0, 1e-300, 0.1]},
        "b": [[1, 2, 3, 2**31], [1, 2, 3, True], ["nan", 1.0, 2.0, 3.0], "é"],
    }
    (tmp_path / ("x.json" if packed else "x.npz")).write_text("old")
    store.save("x", {"torch": "2.13.0", "seed": 3}, told, packed=packed)
    again = store.load("x")
    assert json.dumps(again.cases) == json.dumps(told) and again.head == {"torch": "2.13.0", "seed": 3}
    assert [path.suffix for path in tmp_path.iterdir()] == [".npz" if packed else ".json"]
    store.load.cache_clear()


def test_a_number_that_is_none_is_not_written(monkeypatch, tmp_path):
    monkeypatch.setattr(store, "HERE", tmp_path)
    with pytest.raises(ValueError):
        store.save("x", {"torch": "2.13.0", "seed": 3}, {"a": float("nan")})


def test_the_rule_for_error_texts():
    text = "size (3) must  match. It is at 0x7f12.\nMore lines"
    assert first_sentence(RuntimeError(text)) == "size (3) must match"
    assert first_sentence(RuntimeError("at 0x7f12 of 3. It is 0.5 wide")) == "at 0x of 3. It is 0.5 wide"
    assert first_sentence(RuntimeError("")) == ""
