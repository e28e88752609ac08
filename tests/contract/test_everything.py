"""tests/everything.py runs its steps once, goes on where it was stopped, and counts what pytest reports."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from tests import everything
from tests.megatron.unit_tests_jobs import Finished


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A run of three small steps, with a table and a page of its own."""
    steps = [
        everything.Step("one", "echo said; echo one >> {place}/ran"),
        everything.Step("two", "echo two >> {place}/ran; false"),
        everything.Step("three", "echo three >> {place}/ran", ("MSADAPTER_NOWHERE", "no/such/folder")),
    ]
    steps = [
        everything.Step(step.name, step.command.replace("{place}", str(tmp_path)), step.needs)
        for step in steps
    ]
    monkeypatch.setattr(everything, "STEPS", steps)
    monkeypatch.setattr(everything, "STATE", tmp_path / "state")
    monkeypatch.setattr(everything, "TABLE", tmp_path / "table.tsv")
    monkeypatch.setattr(everything, "PAGE", tmp_path / "page.md")
    monkeypatch.delenv("MSADAPTER_NOWHERE", raising=False)
    return tmp_path


def test_steps_are_run_and_what_is_missing_is_named(place, capsys) -> None:
    assert everything.main([]) == 1
    assert (place / "ran").read_text().split() == ["one", "two"]
    said = capsys.readouterr()
    assert "three: left out, MSADAPTER_NOWHERE, no/such/folder is missing" in said.out
    assert "failed: two" in said.err
    results = everything.read()
    assert [(name, row.passed, row.failed) for name, row in results.items()] == [("one", 1, 0), ("two", 0, 1)]
    assert "said" in (place / "state/one.log").read_text()
    lines = (place / "page.md").read_text().splitlines()
    assert any(line.startswith("| three | not run yet |") for line in lines)


def test_a_run_goes_on_where_it_was_stopped(place) -> None:
    (place / "state").mkdir()
    (place / "state/finished.json").write_text(json.dumps(["one"]))
    everything.main([])
    assert (place / "ran").read_text().split() == ["two"]
    everything.main([])
    assert (place / "ran").read_text().split() == ["two", "one", "two"]


def test_named_steps_are_run_again(place, capsys) -> None:
    assert everything.main(["one"]) == 0
    assert everything.main(["one"]) == 0
    assert (place / "ran").read_text().split() == ["one", "one"]
    assert everything.main(["four"]) == 2
    assert "no step has the name four" in capsys.readouterr().err


def test_a_stopped_step_has_no_row(place, monkeypatch) -> None:
    monkeypatch.setattr(everything, "STEPS", [everything.Step("stopped", "kill -TERM $$")])
    with pytest.raises(SystemExit, match="stopped was stopped"):
        everything.main([])
    assert everything.read() == {}


def test_jobs_of_an_interrupted_run_are_not_run_again(tmp_path) -> None:
    results = tmp_path / "results.json"
    run = Finished(results, resume=True)
    run.add("one")
    assert "one" in Finished(results, resume=True)
    assert "one" not in Finished(results, resume=False)
    Finished(results, resume=True).end()
    assert "one" not in Finished(results, resume=True)


def test_results_of_pytest_are_counted(tmp_path) -> None:
    file = tmp_path / "results.xml"
    assert everything.counts(file, 0) == (1, 0, 0) and everything.counts(file, 3) == (0, 1, 0)
    file.write_text('<testsuites><testsuite tests="9" failures="1" errors="1" skipped="3"/></testsuites>')
    assert everything.counts(file, 1) == (4, 2, 3)
    file.write_text('<testsuites><testsuite tests="2" failures="0" errors="0" skipped="0"/></testsuites>')
    assert everything.counts(file, 1) == (2, 1, 0)


def test_pages_that_steps_write_are_no_change_of_the_commit(tmp_path, monkeypatch) -> None:
    def git(*words: str) -> None:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    for file in ("docs/page.md", "tests/everything.tsv", "code.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("one\n")
    git("init")
    git("add", ".")
    git("commit", "-m", "one")
    monkeypatch.setattr(everything, "ROOT", tmp_path)
    head = everything.commit()
    assert len(head) == 9
    for file in ("docs/page.md", "tests/everything.tsv"):
        (tmp_path / file).write_text("two\n")
    assert everything.commit() == head
    (tmp_path / "code.py").write_text("two\n")
    assert everything.commit() == f"{head}+"


def test_the_page_is_that_of_the_table() -> None:
    """docs/all_tests.md is written by python -m tests.everything --page."""
    assert everything.page(everything.read()) == everything.PAGE.read_text()


def test_steps_name_files_that_exist() -> None:
    """A path of tests that a step names is one of the repository, and no two steps have the same name."""
    names = [step.name for step in everything.STEPS]
    assert len(set(names)) == len(names)
    for step in everything.STEPS:
        for word in step.command.split():
            if word.startswith("tests/"):
                assert (everything.ROOT / word).exists(), f"{step.name}: {word}"


def test_tests_that_need_a_tree_of_mindspeed_llm_are_found() -> None:
    """Without a file, pytest would run all tests."""
    (step,) = (step for step in everything.STEPS if step.name == "toolkit on MindSpeed-LLM")
    files = [word for word in step.command.split() if word.startswith("tests/")]
    assert "tests/toolkit/stories/test_megatron.py" in files and len(files) > 3


def test_the_suite_is_run_as_without_arguments(tmp_path, monkeypatch) -> None:
    """The step "suite" calls tests/run.sh as a user does, and pytest writes its results to a file besides."""
    for name, text in (("auto_convert.sh", "exit 0"), (".venv/bin/python", 'echo "$@" > called')):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "tests").mkdir()
    shutil.copy(everything.ROOT / "tests/run.sh", tmp_path / "tests")
    monkeypatch.setenv("MSADAPTER_TEST_WORKERS", "3")
    monkeypatch.delenv("MSADAPTER_TEST_JUNIT", raising=False)
    step = next(step for step in everything.STEPS if step.name == "suite")
    called = []
    for command in ("bash tests/run.sh", step.command.format(results=tmp_path / "results.xml")):
        subprocess.run(command, shell=True, cwd=tmp_path, check=True)
        called.append((tmp_path / "called").read_text().split())
    assert called[1] == [*called[0], f"--junitxml={tmp_path}/results.xml"]
