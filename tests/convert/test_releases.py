"""Releases of the scenarios, the Python that each accepts, and conversions side by side. No network is used."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from megatron_ms.convert import __main__ as command
from megatron_ms.convert import environment, job, packages, scenario, shell, sources, upstream
from megatron_ms.convert.steps import ConvertError
from patches import toml
from tests.convert.test_scenarios import commit

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 99\nPATCH = 0\n",
    "pretrain_gpt.py": "print(1)\n",
}

# What packages import instead of the standard library of a newer Python.
_FOR_THE_OLDEST = {"async-timeout", "exceptiongroup"}


@pytest.fixture
def no_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Conversions use the Python of the tests, and neither install packages nor build kernels."""
    for module in (environment, upstream, job):
        monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    monkeypatch.setattr(environment, "prepare_venv", lambda extras, logs, progress: False)
    monkeypatch.setattr(environment, "build_kernels", lambda logs, progress: False)


def test_the_first_release_is_the_default_and_has_the_plain_name() -> None:
    assert [release.number for release in sources.SCENARIOS["llm"]] == ["26.1.0", "2.3.0"]
    assert [release.number for release in sources.SCENARIOS["core"]] == ["0.12.1", "0.16.1", "0.19.0"]
    assert sources.release_of("llm").number == "26.1.0"
    assert sources.folder_of("llm", "26.1.0") == "llm" and sources.folder_of("llm", "2.3.0") == "llm-2.3.0"
    with pytest.raises(ConvertError, match=r"no release 3\.0; it has 26\.1\.0, 2\.3\.0"):
        sources.release_of("llm", "3.0")
    assert command.main(["llm", "--release", "3.0", "--check"]) == 1


def test_every_pin_is_complete() -> None:
    for releases in sources.SCENARIOS.values():
        for release in releases:
            assert all(re.fullmatch("[0-9a-f]{40}", source.commit) for source in release.sources)
            assert environment.accepted_pythons(release.python)
            if release.wheel:
                assert release.wheel.requirement.endswith("==" + release.number)
                assert all(re.fullmatch("[0-9a-f]{64}", value) for value in release.wheel.sha256.values())


def test_releases_of_a_scenario_have_folders_of_their_own(tmp_path: Path) -> None:
    homes = [scenario.Run("llm", tmp_path, tmp_path / "s", {}, number=n).home.name for n in ("", "2.3.0")]
    assert homes == ["llm", "llm-2.3.0"]


def test_the_pythons_are_those_of_the_project() -> None:
    project = toml.loads((ROOT / "pyproject.toml").read_text())["project"]
    minors = [minor for minor in range(8, 20) if (3, minor) in environment.PYTHONS]
    assert project["requires-python"] == f">=3.{minors[0]},<3.{minors[-1] + 1}"
    assert project["classifiers"] == [f"Programming Language :: Python :: 3.{minor}" for minor in minors]
    script = (ROOT / "auto_convert.sh").read_text()
    bounds = f"(3, {minors[0]}) <= sys.version_info[:2] <= (3, {minors[-1]})"
    assert f"not {bounds}" in script and bounds in (ROOT / "msadapter/_host/doctor.py").read_text()
    *most, last = (f"3.{minor}" for minor in minors)
    for page in ("auto_convert.sh", "README.md", "docs/faq.md", "docs/howto_platform.md", "docs/tutorial.md"):
        assert f"Python {', '.join(most)} or {last}" in (ROOT / page).read_text(), page
    assert f"Python {'、'.join(most)} 或 {last}" in (ROOT / "README.zh-CN.md").read_text()


def test_every_python_has_one_version_of_each_package() -> None:
    """Where the newest release is not for the oldest Python, another one is pinned for it, and nothing else differs."""
    lists = [
        packages.requirements(release) for name in ("llm", "mm", "rl") for release in sources.SCENARIOS[name]
    ]
    extras = toml.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    ours = {python: environment.pinned(tuple(extras), python) for python in environment.PYTHONS}
    assert not any(set(" ;") & set(pin) for extra in extras for pin in environment.pins_of(extra)), (
        "shell words"
    )
    oldest, *others = environment.PYTHONS
    assert ours[oldest]["scipy"] == "1.15.3" and "tomli" in ours[oldest]
    for python in others:
        assert set(ours[python]) == set(ours[oldest]) - {"tomli"} and ours[python]["scipy"] == "1.17.1"
    for file in {*lists, environment.BESIDE_TORCH}:
        lines = [line.partition("#")[0] for line in file.read_text().splitlines()]
        for python in environment.PYTHONS:
            names = [pin.split("==")[0] for line in lines if (pin := environment.applying(line, python))]
            assert len(set(names)) == len(names)
            assert set(names) >= {line.split("==")[0] for line in lines if "==" in line} - _FOR_THE_OLDEST


@pytest.mark.parametrize(
    "stated, accepted",
    [
        ("", [(3, 10), (3, 11), (3, 12)]),
        (">=3.11", [(3, 11), (3, 12)]),
        (">=3.12", [(3, 12)]),
        (">=3.8, <3.12", [(3, 10), (3, 11)]),
        (">3.11,!=3.12", []),
        ("<=3.10", [(3, 10)]),
        ("==3.12", [(3, 12)]),
    ],
)
def test_what_a_release_states_of_its_python(stated: str, accepted: list) -> None:
    assert environment.accepted_pythons(stated) == accepted


def test_another_python_is_looked_for_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(environment.sys, "version_info", (3, 11, 7))
    assert environment.python_for(">=3.10", "it") is None
    with pytest.raises(
        ConvertError, match=r"it needs Python >=3\.12.*apt install python3\.12 .*PYTHON=/path/python3\.12"
    ):
        environment.python_for(">=3.12", "it")
    other = tmp_path / "python3.12"
    other.write_text(
        "#!/bin/sh\nexit 1\n"
    )  # as that of pyenv, which exists for versions that are not enabled
    other.chmod(0o755)
    with pytest.raises(ConvertError, match=r"it needs Python >=3\.12"):
        environment.python_for(">=3.12", "it")
    other.write_text("#!/bin/sh\nexit 0\n")
    assert environment.python_for(">=3.12", "it") == str(other)
    monkeypatch.setenv("PYTHON", sys.executable)
    with pytest.raises(ConvertError, match=r"it needs Python >=3\.12"):
        environment.python_for(">=3.12", "it")
    with pytest.raises(ConvertError, match=r"it needs Python >=3\.13, and msadapter is proven with"):
        environment.python_for(">=3.13", "it")


def test_an_environment_for_each_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    assert environment._venv() == tmp_path / ".venv"
    (tmp_path / ".venv").mkdir()
    config = tmp_path / ".venv/pyvenv.cfg"
    here = f"{sys.version_info[0]}.{sys.version_info[1]}"
    for text, name in (
        (f"version = {here}.4\n", ".venv"),
        ("version = 3.7.1\n", f".venv-{here}"),
        ("", ".venv"),
    ):
        config.write_text("home = /usr/bin\n" + text)
        assert environment._venv() == tmp_path / name


def test_a_checkout_states_its_python(tmp_path: Path) -> None:
    assert upstream.python_of(tmp_path) == ""
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\nrequires-python = ">=3.12"\n')
    assert upstream.python_of(tmp_path) == ">=3.12"
    (tmp_path / "pyproject.toml").write_text("[project\n")
    assert upstream.python_of(tmp_path) == ""


def test_conversions_side_by_side(tmp_path: Path, monkeypatch, no_installation, capsys) -> None:
    """A release without a wheel comes from git. What a run writes into a tree stays there and is listed.

    The set-up of the tests does not change what the user has chosen.
    """
    git, output = tmp_path / "git", tmp_path / "build"
    pin = sources._megatron("pinned", commit(git, FILES, "pinned"))
    monkeypatch.setenv("MSADAPTER_GIT_MEGATRON_LM", str(git))
    releases = tuple(sources.Release(number, (pin,)) for number in ("0.12.1", "0.98.0"))
    monkeypatch.setitem(sources.SCENARIOS, "core", releases)
    words = ["--output", str(output)]
    assert command.main([*words, "--list"]) == 0
    assert "no conversion yet" in capsys.readouterr().out and not output.exists()

    assert command.main(["core", "--release", "0.98.0", *words]) == 0
    told = capsys.readouterr()
    assert "warning: megatron_core 0.99.0 is newer" in told.err and "left out: norm-under" in told.err
    chosen = (output / "env.sh").read_text()
    assert "core-0.98.0/env.sh" in chosen
    assert "MSADAPTER_TRITON" in (output / "core-0.98.0/env.sh").read_text()
    assert command.main([*words, "--tests"]) == 0
    assert (output / "env.sh").read_text() == chosen
    assert str(output / "megatron") in (output / "core/env.sh").read_text()

    tree = output / "core-0.98.0/megatron"
    (tree / "dataset").mkdir()
    (tree / "dataset/text.bin").write_text("hours of work")
    assert command.main(["core", "--release", "0.98.0", "--check", *words]) == 0
    (tree / "pretrain_gpt.py").write_text("print(2)\n")
    assert command.main(["core", "--release", "0.98.0", *words]) == 0
    assert (tree / "dataset/text.bin").read_text() == "hours of work"
    assert (tree / "pretrain_gpt.py").read_text() == "print(1)\n"
    (aside,) = tree.parent.glob("megatron.changed-*")
    assert sorted(os.listdir(aside)) == ["manifest.json", "megatron", "pretrain_gpt.py"]
    assert "keeps what is not upstream's: dataset/" in capsys.readouterr().err

    assert command.main([*words, "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[:13] for line in lines if "source" in line] == ["  core       ", "* core-0.98.0"]
    assert lines[-1].endswith(f"in {tree}; not upstream's: dataset/")
    assert json.loads((tree.parent / shell.RECORD).read_text())["release"] == "0.98.0"
    assert command.main([*words]) == 0
    assert "core/env.sh" in (output / "env.sh").read_text()


def test_a_record_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / shell.RECORD).write_text("[]")
    assert "cannot be read" in shell.listed(tmp_path)[0]
