"""The notebooks of the course: they are what their sources say, they run without a network, and they notice what is broken.

With MSADAPTER_COURSE=1 they are run, which takes some minutes. FAST=1 and COURSE_SOLUTIONS=1 are set for that: little work, and
the answers of course/solutions in the exercises.
"""

from __future__ import annotations

import json
import os
import re
import runpy
import socket
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COURSE = ROOT / "course"
SOURCES = sorted(COURSE.glob("[0-9]_*.py"))
NAMES = [source.stem for source in SOURCES]
QUICK = {
    "FAST": "1",
    "COURSE_SOLUTIONS": "1",
    "COURSE_OFFLINE": "1",
    "PYTHONPATH": f"{COURSE / 'offline'}{os.pathsep}{ROOT}",
}
runs = pytest.mark.skipif(
    os.environ.get("MSADAPTER_COURSE") != "1", reason="takes minutes: set MSADAPTER_COURSE=1"
)
DEFECTS = re.findall(
    r'^@_breaks\("([\d.]+)"\)\ndef (\w+)|^    "(\w+)": \(\s*"([\d.]+)"',
    (COURSE / "breakages.py").read_text(encoding="utf-8"),
    re.MULTILINE,
)
BREAKAGES = {function or edit: section or other for section, function, edit, other in DEFECTS}


@cache
def maker() -> dict:
    pytest.importorskip("jupytext")
    pytest.importorskip("nbclient")
    return runpy.run_path(str(COURSE / "make.py"))


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_a_notebook_is_its_source_with_outputs(source: Path) -> None:
    import nbformat

    plain, made = maker()["notebook_of"](source), nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    assert [(cell.cell_type, cell.source) for cell in made.cells] == [
        (cell.cell_type, cell.source) for cell in plain.cells
    ], "run python course/make.py"
    outputs = [output for cell in made.cells if cell.cell_type == "code" for output in cell.outputs]
    assert all(cell.execution_count for cell in made.cells if cell.cell_type == "code")
    assert not [
        output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"
    ]
    assert any("image/png" in output.get("data", {}) for output in outputs), "a chapter has pictures"
    told = " ".join(str(output.get("text", "")) for output in outputs)
    assert not re.search(r"/(root|home|work|tmp)/", told), "a path of this machine"


@runs
@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_a_notebook_runs_without_a_network(source: Path, tmp_path: Path) -> None:
    maker()["run"](source, **QUICK, **_places(source.stem, tmp_path))


@pytest.mark.parametrize("source", SOURCES, ids=NAMES)
def test_each_exercise_has_a_check_and_a_solution(source: Path) -> None:
    numbers = re.findall(r'^check\("([\d.]+)"', source.read_text(encoding="utf-8"), re.MULTILINE)
    chapter = source.name[0]
    checks = (COURSE / f"checks/chapter{chapter}.py").read_text(encoding="utf-8")
    solutions = (COURSE / f"solutions/chapter{chapter}.py").read_text(encoding="utf-8")
    assert numbers and numbers == re.findall(r'^    "([\d.]+)":', solutions, re.MULTILINE)
    assert [number.replace(".", "_") for number in numbers] == re.findall(
        r"^def exercise_(\w+)\(", checks, re.MULTILINE
    )


def test_wrong_answers_are_refused() -> None:
    wrong = {
        "1.1": "lambda g, self: self",
        "1.2": "lambda text: text",
        "1.3": "[1.0, 10.0, 100.0]",
        "2.1": "[0, 5, 7]",
        "2.2": "[0.5, 0.5]",
        "2.3": "2",
        "3.1": "(3, 111)",
        "3.2": "19456",
        "3.3": "64",
        "4.1": "-3.0",
        "4.2": "[0.75, -0.25]",
        "4.3": "[-1.0, -1.0, 2.0]",
        "5.1": "56",
        "5.2": "3 / 8",
        "5.3": "((32, True), (8, True))",
    }
    code = (
        "import msadapter; msadapter.install()\n"
        "from lesson import check\n"
        f"for number, answer in {{{', '.join(f'{k!r}: {v}' for k, v in wrong.items())}}}.items():\n"
        "    try:\n"
        "        check(number, answer)\n"
        "    except AssertionError as error:\n"
        "        assert str(error), number\n"
        "    else:\n"
        "        raise SystemExit(f'{number}: the wrong answer counts as right')\n"
    )
    _run("-c", code)


CONNECTS = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
LOOKS_UP = "import socket; socket.getaddrinfo('example.org', 80)"
SENDS = "import socket; socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))"
OWN = "import socket; s = socket.create_server(('127.0.0.1', 0)); socket.create_connection(s.getsockname()); print('own')"


@pytest.mark.parametrize("code", [CONNECTS, LOOKS_UP, SENDS])
def test_a_child_of_a_chapter_reaches_no_other_machine(code: str) -> None:
    """A chapter starts programs, which start others; all of them inherit the refusal."""
    child = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {code!r}]).returncode)"
    done = _run("-c", child, well=False)
    assert done.returncode == 1 and "the course needs no network" in done.stderr


def test_a_child_of_a_chapter_reaches_its_own_machine() -> None:
    assert _run("-c", OWN).stdout == "own\n"


def test_programs_that_a_chapter_starts_inherit_the_refusal() -> None:
    """lesson.program is how chapters start torchrun and the toolkit."""
    code = f"import lesson; lesson.program('-c', {CONNECTS!r}, folder=lesson.HERE)"
    assert "the course needs no network" in _run("-c", code, well=False).stderr


@runs
def test_the_recorded_launches_are_those_of_the_simulated_npu() -> None:
    found = runpy.run_path(str(COURSE / "answers/npu.py"))["measured"]()
    recorded = json.loads((COURSE / "answers/npu_operators.json").read_text(encoding="utf-8"))
    counts, expected = found["operators"], recorded["operators"]
    # A gradient becomes .grad without a copy if nothing else refers to its memory. On an NPU MindSpore's queue refers to it
    # until the operator has been launched, so the number of copies depends on the speed of the machine: at most one for each
    # parameter, of which AdamW updates each once.
    copies, recorded_copies = counts.pop("aclnnInplaceCopy"), expected.pop("aclnnInplaceCopy")
    assert abs(copies - recorded_copies) <= expected["aclnnApplyAdamWV2"]
    assert counts == expected
    assert found["losses"] == pytest.approx(recorded["losses"], rel=1e-5)


def _section_of(source: Path, line: int) -> str:
    """The section of a chapter that a line belongs to."""
    above = "\n".join(source.read_text(encoding="utf-8").splitlines()[:line])
    return re.findall(r"^# ## ([\d.]+) ", above, re.MULTILINE)[-1]


def test_breakages_have_their_sections() -> None:
    """Those that the module knows are the ones above, and the lines that it changes are there once."""
    code = (
        "import breakages, json\n"
        "known = {**breakages.BREAKAGES, **breakages.EDITS}\n"
        "for name in breakages.EDITS: breakages.edited(name)\n"
        "print(json.dumps({name: breakages.section_of(name) for name in known}))\n"
    )
    assert json.loads(_run("-c", code).stdout) == BREAKAGES
    assert len(BREAKAGES) >= 20


@runs
@pytest.mark.extended
@pytest.mark.parametrize("name", BREAKAGES)
def test_a_broken_adapter_is_noticed(name: str, tmp_path: Path) -> None:
    """The section that teaches it fails, by an assertion or an error of the chapter's own."""
    done = _run("breakages.py", name, well=False, **_places(BREAKAGES[name], tmp_path))
    assert done.returncode == 1 and "is finished" not in done.stdout
    (source,) = COURSE.glob(f"{BREAKAGES[name][0]}_*.py")
    lines = re.findall(
        rf'^  File "{re.escape(str(source))}", line (\d+), in <module>', done.stderr, re.MULTILINE
    )
    assert lines, done.stderr[-2000:]
    assert _section_of(source, int(lines[-1])) == BREAKAGES[name], done.stderr[-2000:]
    assert re.search(r"^AssertionError", done.stderr, re.MULTILINE), done.stderr[-2000:]


def _places(chapter: str, folder: Path) -> dict[str, str]:
    """A work folder of its own for a run, and a port for the process group of chapter 3, because others may run beside it."""
    if not chapter.startswith("3"):
        return {"COURSE_WORK": str(folder)}
    with socket.create_server(("127.0.0.1", 0)) as server:
        return {"COURSE_WORK": str(folder), "MASTER_PORT": str(server.getsockname()[1])}


def _run(*arguments: str, well: bool = True, **variables: str) -> subprocess.CompletedProcess:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=COURSE,
        env=os.environ | QUICK | variables,
        capture_output=True,
        text=True,
    )
    assert not well or done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    return done
