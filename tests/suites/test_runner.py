"""The runner of other projects' tests, on a small project of its own; and the page against its results."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.suites import __main__ as runner
from tests.suites import page, pytorch
from tests.suites.suites import SUITES, Suite

PROJECT = """
import os, time, pytest

def test_passes(): pass
def test_fails(): raise ValueError("no\\nmore")
def test_export(): raise AssertionError("is left out")
@pytest.mark.skip(reason="not today")
def test_skipped(): pass
def test_takes_long():
    try:
        time.sleep(20)
    except Exception:
        pass
def test_dies(): os._exit(11)
def test_after_the_death(): pass
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> dict[str, dict]:
    checkout = tmp_path_factory.mktemp("project")
    (checkout / "test_it.py").write_text(PROJECT)
    suite = Suite("NONE", {"it": "test_it.py"}, (), left_out={"export": "needs an exporter"})
    record = checkout / "it.jsonl"
    environment = runner._environment(suite, record, 1, [], ours=False)
    runner.run_file(sys.executable, checkout, "test_it.py", environment, ())
    return {name.split("::")[1]: line for name, line in runner.outcomes(record).items()}


def test_every_outcome_is_recorded(found):
    assert {name: line["outcome"] for name, line in found.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_export": "left out",
        "test_skipped": "skipped",
        "test_takes_long": "failed",
        "test_dies": "failed",
        "test_after_the_death": "passed",
    }
    assert found["test_fails"]["reason"] == "ValueError: no"
    assert found["test_skipped"]["reason"] == "not today"
    assert found["test_takes_long"]["reason"] == "OutOfTime: took more than 1 s"
    assert found["test_dies"]["reason"] == "the process died"
    assert found["test_export"]["reason"] == "needs an exporter"


def test_a_share_of_the_tests_is_chosen_by_their_names(tmp_path):
    """Both sides run the same tests, also if one of them collects more, and the page says so."""
    text = "import pytest\n\n@pytest.mark.parametrize('n', range({}, 60))\ndef test_it(n): pass\n"
    chosen = []
    for side, first in (("all", 0), ("fewer", 30)):
        checkout = tmp_path / side
        checkout.mkdir()
        (checkout / "test_it.py").write_text(text.format(first))
        suite, record = Suite("NONE", {"it": "test_it.py"}, ()), checkout / "it.jsonl"
        environment = runner._environment(suite, record, 10, [], ours=False) | {"MSADAPTER_SUITE_EVERY": "4"}
        runner.run_file(sys.executable, checkout, "test_it.py", environment, ())
        chosen.append({name.split("[")[1] for name in runner.outcomes(record)})
    assert 5 < len(chosen[0]) < 30 and chosen[1] == {one for one in chosen[0] if int(one[:-1]) >= 30}
    row = {
        "tests": 1,
        "wanted": 1,
        "passed": 1,
        "failed": {},
        "skipped": {},
        "date": "2026-11-26",
        "every": 4,
    }
    assert page._table({"it": row})[2].startswith("| it, one test of 4 | 1 |")


def test_what_pytorch_passes_is_the_measure(found):
    torch = {
        name: {"outcome": "passed", "reason": ""}
        for name in ("test_passes", "test_fails", "test_skipped", "absent")
    }
    torch["test_dies"] = {"outcome": "failed", "reason": "offline"}
    row = page.compare(found, torch)
    assert (row["tests"], row["wanted"], row["passed"]) == (5, 4, 1)
    assert row["failed"] == {"test_fails": "ValueError: no", "absent": "not collected"}
    assert row["skipped"] == {"test_skipped": "not today"}
    assert row["failed on both"] == {"test_dies": "offline"}


def test_results_of_pytorchs_tests_are_read_with_their_reasons(tmp_path, monkeypatch):
    statuses = {
        "real": {
            "T.test_a": "pass",
            "T.test_b": "pass",
            "T.test_c": "fail",
            "T.test_zombie": "pass",
            "T.test_d": "pass",
        },
        "project": {"T.test_a": "pass", "T.test_b": "error", "T.test_zombie": "fail"},
    }
    for side, status in statuses.items():
        (tmp_path / side).mkdir()
        text = "no QInt here" if side == "project" else ""
        content = {"status": status, "info": {"T.test_b": {"msg": text}}}
        (tmp_path / side / "test_torch.json").write_text(json.dumps(content))
    row = pytorch.read(tmp_path)["families"]["test_torch"]
    assert (row["tests"], row["wanted"], row["passed"]) == (4, 3, 1)
    assert row["failed"] == {
        "T.test_b": "operators and storages of quantised tensors, and those of 2 and 4 bits, are missing",
        "T.test_d": "not collected",
    }
    assert row["left out"] == {"tests reference counts of PyTorch's C++ objects": 1}
    assert row["date"] == page.today()
    monkeypatch.setattr(
        page,
        "load",
        lambda: {"suites": {"PyTorch 2.7.1, its own tests": {"families": {"other": {"kept": 1}}}}},
    )
    monkeypatch.setattr(
        page, "save", lambda results: results["suites"]["PyTorch 2.7.1, its own tests"]["families"]
    )
    assert pytorch.write(tmp_path) == {
        "other": {"kept": 1},
        "test_torch": row,
    }  # other files keep their results
    (tmp_path / "project/test_torch.json").unlink()
    with pytest.raises(FileNotFoundError, match="real/FILE.json"):
        pytorch.read(tmp_path)


@pytest.mark.parametrize(
    ("ours", "theirs", "message"),
    [
        ({"step": 4}, {"step": 4}, None),
        ({"step": 4}, {}, r"other samples, one test of \[1, 4\]"),
        ({"step": 4, "stop": "budget"}, {"step": 4}, r"stopped before its end \(budget\)"),
    ],
)
def test_samples_of_pytorchs_tests_are_whole_and_the_same(tmp_path, ours, theirs, message):
    for side, more in (("project", ours), ("real", theirs)):
        (tmp_path / side).mkdir()
        content = {"status": {"T.test_a": "pass"}, "info": {}, **more}
        (tmp_path / side / "test_linalg.json").write_text(json.dumps(content))
    if message is None:
        found = pytorch.read(tmp_path, "1.9.0")
        assert found["families"]["test_linalg"]["every"] == 4 and "1.9.0" in found["source"]
        return
    with pytest.raises(ValueError, match=message):
        pytorch.read(tmp_path)


def test_families_that_were_not_run_again_stay(tmp_path, monkeypatch):
    """Records of one family leave the others of the same sources and versions as they are."""
    saved = {"suites": {}, "releases": {}}
    monkeypatch.setattr(page, "load", lambda: saved)
    monkeypatch.setattr(page, "save", lambda results: saved.update(results) or 0)

    def record(family: str, version: str, outcome: str) -> None:
        for side in ("msadapter", "torch"):
            folder = tmp_path / "pyro" / side
            folder.mkdir(parents=True, exist_ok=True)
            tests = {"test_a": {"outcome": outcome if side == "msadapter" else "passed", "reason": ""}}
            facts = {
                "source": "pyro",
                "versions": {"pyro-ppl": version},
                "date": "2026-11-26",
                "tests": tests,
            }
            (folder / f"{family}.json").write_text(json.dumps(facts))
        page.write([tmp_path])
        for file in tmp_path.glob("pyro/*/*.json"):
            file.unlink()

    def families(version: str) -> dict:
        rows = saved["suites"][f"pyro {version}"]["families"]
        return {name: row["passed"] for name, row in rows.items()}

    for family, outcome in (("nn", "passed"), ("ops", "failed"), ("ops", "passed")):
        record(family, "1", outcome)
    assert families("1") == {"nn": 1, "ops": 1}
    record("nn", "2", "passed")
    assert families("2") == {"nn": 1} and families("1") == {"nn": 1, "ops": 1}
    saved["suites"]["pyro 2"]["source"] = "another"
    record("ops", "2", "passed")
    assert families("2") == {"ops": 1}


def test_the_page_is_written_from_the_results():
    assert page.PAGE.read_text() == page.render(page.load())


@pytest.mark.parametrize("name", [*SUITES])
def test_a_suite(name, tmp_path, request):
    """No test fails here that docs/suites.json lists as passed. An environment variable names the checkout."""
    checkout = request.getfixturevalue("checkout_of")(SUITES[name].variable)
    assert runner.main(["run", name, str(checkout), "--records", str(tmp_path)]) == 0
    known = [result for title, result in page.load()["suites"].items() if title.startswith(name)]
    rows = [row for result in known for row in result["families"].values()]
    lost = {test for row in rows for test in (*row["failed"], *row["failed on both"])}
    for file in (tmp_path / name / "msadapter").glob("*.json"):
        tests = json.loads(file.read_text())["tests"]
        assert tests, f"{file.stem}: no test was collected"
        assert [t for t, line in tests.items() if line["outcome"] == "failed" and t not in lost] == []


@pytest.fixture
def checkout_of():
    def path(variable: str) -> Path:
        value = os.environ.get(variable)
        if not value:
            pytest.skip(f"needs a checkout of the suite: set {variable} to its path")
        return Path(value)

    return path


def test_a_failure_that_the_page_does_not_have_is_new(monkeypatch):
    row = {"failed": {"a": "why"}, "failed on both": {"b": "why"}}
    monkeypatch.setattr(page, "load", lambda: {"suites": {"einops 1.0": {"families": {"ops": row}}}})
    found = {name: {"outcome": "failed", "reason": "error"} for name in "abc"} | {"d": {"outcome": "passed"}}
    heading = page.title("einops", {"einops": "1.0"})
    assert page.new_failures(heading, "ops", found) == ["c: error"]
    assert page.new_failures(heading, "layers", found) == []
    assert page.new_failures("einops 2.0", "ops", found) == []


@pytest.mark.parametrize(
    "listed, status", [(["test_fails", "test_takes_long", "test_dies"], 0), (["test_fails"], 1)]
)
def test_a_run_with_new_failures_fails(tmp_path, monkeypatch, listed, status):
    (tmp_path / "test_it.py").write_text(PROJECT)
    monkeypatch.setitem(
        SUITES, "own", Suite("NONE", {"it": "test_it.py"}, ("pytest",), left_out={"export": "needs it"})
    )
    row = {"failed": dict.fromkeys([f"test_it.py::{name}" for name in listed], "why"), "failed on both": {}}
    heading = page.title("own", {"pytest": pytest.__version__})
    monkeypatch.setattr(page, "load", lambda: {"suites": {heading: {"families": {"it": row}}}})
    command = ["run", "own", str(tmp_path), "--records", str(tmp_path / "records"), "--limit", "1"]
    assert runner.main(command) == status
