"""Scenarios with several upstreams, which are small git repositories made here. No network is used."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from megatron_ms.convert import __main__ as command
from megatron_ms.convert import environment, packages, scenario, shell, sources, upstream
from megatron_ms.convert.steps import ConvertError, Progress

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "Megatron-LM": {
        # a release after all known ones: rules that do not fit it are left out
        "megatron/core/package_info.py": "MAJOR = 0\nMINOR = 99\nPATCH = 0\n",
        "pretrain_gpt.py": "print(1)\n",
    },
    "MindSpeed": {
        "setup.py": "__version__ = '0.12.1'\n__package_name__ = 'mindspeed'\n",
        "mindspeed/__init__.py": "",
    },
    # It takes the rules of MindSpeed-RL, which are none, because each release of MindSpeed-LLM has one that changes a file of it.
    "MindSpeed-LLM": {
        "setup.py": "__version__ = '2.3.0'\n__package_name__ = 'mindspeed_rl'\n",
        "mindspeed_rl/__init__.py": "",
    },
}
RULES = {"mindspeed_llm": "mindspeed_rl"}


def run_git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    return subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def commit(folder: Path, files: dict[str, str], ref: str) -> str:
    if not (folder / ".git").exists():
        folder.mkdir(parents=True)
        run_git(folder, "init", "-q")
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    run_git(folder, "add", "-A")
    run_git(folder, "commit", "-qm", "x")
    run_git(folder, "branch", "-f", ref)
    return run_git(folder, "rev-parse", "HEAD")


@pytest.fixture
def progress() -> Progress:
    return Progress("test", live=False)


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scenario.Run:
    """A scenario of three small repositories at fixed commits, which uses the python of the tests."""
    for module in (environment, upstream):
        monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    pins = []
    (release, *_) = sources.SCENARIOS["llm"]
    for source in release.sources:
        folder = tmp_path / "git" / source.name
        pins.append(
            replace(
                source,
                rules=RULES.get(source.rules, source.rules),
                url=str(folder),
                ref="pinned",
                commit=commit(folder, FILES[source.name], "pinned"),
            )
        )
    monkeypatch.setitem(sources.SCENARIOS, "llm", (replace(release, sources=tuple(pins)),))
    output = tmp_path / "build"
    output.mkdir()
    return scenario.Run("llm", output, output / "sources", {})


def convert(work: scenario.Run, progress: Progress) -> bool:
    scenario.fetch_all(work, progress)
    return scenario.convert_all(work, work.output / "logs", progress)


def test_written_recognised_and_locked(work, progress) -> None:
    assert scenario.check(work)[0] == "Megatron-LM: not converted yet"
    assert convert(work, progress) is True
    assert scenario.check(work) == []
    assert convert(work, progress) is False
    lock = json.loads((work.output / "llm/lock.json").read_text())
    assert list(lock["sources"]) == ["Megatron-LM", "MindSpeed", "MindSpeed-LLM"]
    taken = lock["sources"]["MindSpeed"]
    assert taken["commit"] == work.sources[1].commit
    assert (taken["version"], taken["files"], taken["rules"]) == ("0.12.1", 2, [])
    assert sorted(os.listdir(work.output)) == ["llm", "logs", "sources"]


def test_the_cache_is_enough_without_a_network(work, progress, tmp_path) -> None:
    with pytest.raises(ConvertError, match=r"not in the cache.*--source Megatron-LM=DIR"):
        scenario.fetch_all(replace(work, offline=True), progress)
    assert scenario.fetch_all(work, progress) is True
    shutil.rmtree(tmp_path / "git")
    offline = replace(work, offline=True)
    assert convert(offline, progress) is True
    assert scenario.check(offline) == []


def test_a_commit_behind_the_branch_is_found_or_refused(work, progress, tmp_path) -> None:
    """The branch has moved on.

    A server that provides commits by hash serves the pinned one, another is refused.
    """
    folder = tmp_path / "git/MindSpeed"
    commit(folder, {"mindspeed/new.py": "x = 1\n"}, "pinned")
    run_git(folder, "config", "uploadpack.allowAnySHA1InWant", "true")
    assert sources.fetch(work.sources[1], work.cache) is True
    pin = replace(work.sources[1], commit="0" * 40)
    with pytest.raises(ConvertError, match="no longer the pinned commit"):
        sources.fetch(pin, work.cache)


def test_no_repository(work, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MSADAPTER_GIT_MINDSPEED_LLM", str(tmp_path / "nowhere"))
    with pytest.raises(
        ConvertError, match=r"MindSpeed-LLM could not be fetched from .*nowhere; is there a network"
    ):
        sources.fetch(work.sources[2], work.cache)


def test_another_address_gives_the_same_commit(work, tmp_path, monkeypatch) -> None:
    (tmp_path / "git/MindSpeed").rename(tmp_path / "mirror")
    monkeypatch.setenv("MSADAPTER_GIT_MINDSPEED", str(tmp_path / "mirror"))
    assert sources.fetch(work.sources[1], work.cache) is True


def test_a_run_that_stops_goes_on(work, progress, monkeypatch) -> None:
    """One upstream fails. The others stay, and the next run does only the rest."""
    plain = scenario._convert

    def broken(work, source, logs, progress):
        if source.name == "MindSpeed":
            raise ConvertError("no room")
        plain(work, source, logs, progress)

    monkeypatch.setattr(scenario, "_convert", broken)
    with pytest.raises(ConvertError, match="MindSpeed: no room"):
        convert(work, progress)
    assert not (work.output / "llm/lock.json").exists()
    done = (work.output / "llm/MindSpeed-LLM/manifest.json").stat().st_mtime_ns
    monkeypatch.setattr(scenario, "_convert", plain)
    assert convert(work, progress) is True
    assert (work.output / "llm/MindSpeed-LLM/manifest.json").stat().st_mtime_ns == done
    assert scenario.check(work) == []


def test_what_the_user_changed_is_kept(work, progress, capsys) -> None:
    convert(work, progress)
    mine = work.output / "llm/MindSpeed/mindspeed/__init__.py"
    mine.write_text("my = 'work'\n")
    assert "changed mindspeed/__init__.py" in scenario.check(work)[0]
    assert convert(work, progress) is True
    assert mine.read_text() == ""
    (aside,) = (work.output / "llm").glob("MindSpeed.changed-*")
    assert (aside / "mindspeed/__init__.py").read_text() == "my = 'work'\n"
    assert str(aside) in capsys.readouterr().err
    assert scenario.check(work) == []


def test_a_lock_file_that_tells_of_something_else(work, progress) -> None:
    convert(work, progress)
    path = work.output / "llm/lock.json"
    path.write_text(path.read_text().replace("0.12.1", "0.12.2"))
    assert "does not match the trees" in scenario.check(work)[0]
    path.write_text("{")
    assert "cannot be read" in scenario.check(work)[0]


def test_a_checkout_takes_the_place_of_git(work, progress, tmp_path) -> None:
    folder = tmp_path / "git/MindSpeed"
    (folder / "mindspeed/mine.py").write_text("x = 1\n")
    local = replace(work, checkouts=sources.parse_locals([f"mindspeed={folder}"], "llm"))
    scenario.check_checkouts(local)
    assert convert(local, progress) is True
    assert (work.output / "llm/MindSpeed/mindspeed/mine.py").exists()
    assert not (work.output / "llm/MindSpeed/.git").exists()
    assert not (work.cache / "MindSpeed.git").exists()
    assert scenario.check(local) == []
    assert scenario.check(work) == ["MindSpeed: the source or the rules have changed since"]
    (folder / "mindspeed/mine.py").write_text("x = 2\n")
    assert scenario.check(local) == ["MindSpeed: the source or the rules have changed since"]


def test_wrong_checkouts(work, tmp_path) -> None:
    for text, message in (
        ("MindSpeed", "needs NAME=DIR"),
        (f"Other={tmp_path}", "it has Megatron-LM, MindSpeed, MindSpeed-LLM"),
        (f"MindSpeed={tmp_path / 'none'}", "no such folder"),
    ):
        with pytest.raises(ConvertError, match=message):
            sources.parse_locals([text], "llm")
    wrong = replace(work, checkouts={"MindSpeed": tmp_path / "git/MindSpeed-LLM"})
    with pytest.raises(ConvertError, match="not that of mindspeed"):
        scenario.check_checkouts(wrong)


def test_names_that_lead_out_of_a_repository(work, tmp_path) -> None:
    folder = tmp_path / "git/MindSpeed"
    (folder / "link").symlink_to("/etc/passwd")
    evil = replace(work.sources[1], commit=commit(folder, {}, "pinned"))
    sources.fetch(evil, work.cache)
    (tmp_path / "out").mkdir()
    with pytest.raises(ConvertError, match="leads out of it"):
        sources.export(evil, work.cache, tmp_path / "out")


def test_env_sh_finds_every_tree(work, tmp_path) -> None:
    output = tmp_path / "a build"
    trees = [output / "llm" / source.name for source in work.sources]
    path = shell.write_env(output, trees, output / "packages", device="npu")
    asked = 'echo "$PYTHONPATH|$MINDSPEED_LLM|$MSADAPTER_DEVICE"; msadapter_off; echo "${PYTHONPATH-}${MINDSPEED_LLM-}"'
    text = subprocess.run(
        ["bash", "-euc", f"source {shlex.quote(str(path))}; {asked}"],
        env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    found, llm, device = text.split("\n")[0].split("|")
    assert found.split(":")[1:] == [*map(str, trees), str(output / "packages")]
    assert (llm, device) == (str(output / "llm/MindSpeed-LLM"), "npu")
    assert text.split("\n")[1] == ""


def test_env_answers_for_what_needs_an_npu_where_there_is_no_cann(tmp_path) -> None:
    """The folder of names is the last on PYTHONPATH, and is left out where CANN's own environment is set."""
    path = shell.write_env(tmp_path, [tmp_path / "rl"], answers=tmp_path / "a b")
    asked = f'source {shlex.quote(str(path))}; echo "$PYTHONPATH"; msadapter_off; echo "${{PYTHONPATH-}}"'
    for settings, wanted in (({}, True), ({"ASCEND_HOME_PATH": "/usr/local/Ascend"}, False)):
        text = subprocess.run(
            ["bash", "-euc", asked], env={"PATH": "/usr/bin:/bin", **settings}, capture_output=True, text=True, check=True
        ).stdout  # fmt: skip
        first, after = text.split("\n")[:2]
        assert (first.split(":")[-1] == str(tmp_path / "a b")) is wanted
        assert after == ""


def test_a_list_of_packages_may_include_another(work, wheels, tmp_path) -> None:
    listed = packages.requirements(work.release)
    listed.with_name("more.txt").write_text("plum==1.0   # no wheel\n")
    listed.write_text("-r more.txt\napple==1.0\n")
    assert packages.pins(work.release) == ["plum==1.0", "apple==1.0"]
    assert packages._as_wheels(work.release) == "--only-binary=apple"


@pytest.fixture
def wheels(work, tmp_path, monkeypatch) -> Path:
    """Two small wheels in the cache, and a list with their names."""
    folder = tmp_path / "build/sources/wheels"
    folder.mkdir(parents=True)
    for name in ("apple", "pear"):
        wheel(folder, name, "1.0")
    listed = packages.requirements(work.release)
    monkeypatch.setattr(packages, "LISTS", tmp_path)
    (tmp_path / listed.name).write_text("# fruit\napple==1.0   # red\n\npear==1.0\n")
    monkeypatch.setattr(packages, "PYTHON", Path(sys.executable))
    return folder


def wheel(folder: Path, name: str, version: str) -> None:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"taste = '{version}'\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Dist: torch\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for file, text in files.items():
            archive.writestr(file, text)


def test_packages_come_from_the_cache_and_are_watched(work, wheels, progress, tmp_path) -> None:
    """Packages are installed without network and without their dependencies.

    Missing and additional files are noticed, and none is lost.
    """
    logs, folder = work.output / "logs", packages.folder_of(work.output, work.release)

    def install() -> bool:
        return packages.install(work.output, work.release, work.cache, logs, progress, offline=True)

    def why_stale() -> str:
        return packages.why_stale(work.output, work.release)

    assert packages.pins(work.release) == ["apple==1.0", "pear==1.0"]
    assert why_stale() == "Python packages: not installed yet"
    assert install() is True and install() is False
    assert sorted(path.name for path in folder.glob("*.py")) == ["apple.py", "pear.py"]
    assert sorted(os.listdir(work.output)) == ["logs", folder.name, f"{folder.name}.json", "sources"]

    (folder / "mine.py").write_text("my = 'work'\n")
    assert "new or of another size" in why_stale()
    assert install() is True and not (folder / "mine.py").exists()
    (aside,) = work.output.glob("packages*.changed-*")
    assert (aside / "mine.py").exists()

    (folder / "__pycache__").mkdir(exist_ok=True)
    (folder / "__pycache__/apple.pyc").write_bytes(b"x")
    assert install() is False
    wheel(wheels, "pear", "2.0")
    packages.requirements(work.release).write_text("apple==1.0\npear==2.0\n")
    assert why_stale() == "Python packages: the list has changed since"
    assert install() is True and "2.0" in (folder / "pear.py").read_text()
    assert len(list(work.output.glob("packages*.changed-*"))) == 1


def test_a_wheel_that_is_nowhere(work, wheels, progress) -> None:
    (wheels / "pear-1.0-py3-none-any.whl").unlink()
    with pytest.raises(ConvertError, match=r"could not be installed(?s:.*)takes wheels from .*wheels alone"):
        packages.install(work.output, work.release, work.cache, work.output / "logs", progress, offline=True)
    assert not [name for name in os.listdir(work.output) if "packages" in name]


def test_the_list_of_packages_is_pinned() -> None:
    for release in (*sources.SCENARIOS["llm"], *sources.SCENARIOS["rl"]):
        pins = packages.pins(release)
        assert len(pins) > 30
        assert all(re.fullmatch(r"[A-Za-z0-9_-]+==[0-9][0-9.]*", line) for line in pins)
        ours = environment.pinned(("megatron", "dist"))
        assert not {line.split("==")[0] for line in pins} & ours.keys()


def test_check_command(work, wheels, progress, capsys, monkeypatch) -> None:
    words = ["llm", "--check", "--output", str(work.output)]
    assert command.main(words) == 1
    assert "not converted yet" in capsys.readouterr().out
    work = replace(work, packages=True)
    convert(work, progress)
    assert command.main(words) == 1
    assert capsys.readouterr().out == "Python packages: not installed yet\n"
    packages.install(work.output, work.release, work.cache, work.output / "logs", progress, offline=True)
    began = time.process_time()  # of this process, because the machine may be busy
    assert command.main(words) == 0
    assert time.process_time() - began < 5
    assert "everything" in capsys.readouterr().out
    assert command.main(["core", "--check", "--output", str(work.output)]) == 1


@pytest.mark.parametrize("words", [["--source", "a", "--source", "b"], ["everything"]])
def test_wrong_arguments(words) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(words)
    assert caught.value.code == 2


def test_sourcing_keeps_the_shell_alive(tmp_path) -> None:
    """A failure leaves the shell and its options as they were.

    A success gives it the environment of env.sh.
    """
    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copy(ROOT / "auto_convert.sh", clone)
    fake = tmp_path / "python3.11"
    fake.write_text(
        "#!/bin/sh\n"
        'case "$1" in -c) exit 0 ;; esac\n'
        'for word in "$@"; do case "$word" in fail) exit 7 ;; esac; done\n'
        f"mkdir -p {clone}/build '{tmp_path}/other place'\n"
        f"echo 'MARK=build' > {clone}/build/env.sh\n"
        f"echo 'MARK=other' > '{tmp_path}/other place/env.sh'\n"
    )
    fake.chmod(0o755)
    script = f"""
        source {clone}/auto_convert.sh fail; echo "status $? ${{MARK:-none}}"
        source {clone}/auto_convert.sh llm; echo "status $? $MARK"
        source {clone}/auto_convert.sh llm --output "{tmp_path}/other place"; echo "status $? $MARK"
        false; echo "alive $- $(declare -F | grep -c msadapter)"
    """
    answer = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHON": str(fake)}
    )
    lines = answer.stdout.split("\n")
    assert lines[:3] == ["status 7 none", "status 0 build", "status 0 other"], answer.stderr
    assert lines[3].startswith("alive") and "e" not in lines[3].split()[1] and lines[3].endswith(" 0")


GIT_DIRS = "MSADAPTER_GIT_DIRS"


@pytest.mark.skipif(
    not os.environ.get(GIT_DIRS), reason=f"needs git directories of the upstreams: set {GIT_DIRS}"
)
def test_the_real_upstreams(tmp_path, progress, monkeypatch) -> None:
    """{"MEGATRON_LM": "/path", ...}: 350,000 lines; under 15 seconds on two idle cores when the helper is cached."""
    for name, path in json.loads(os.environ[GIT_DIRS]).items():
        monkeypatch.setenv(f"MSADAPTER_GIT_{name}", path)
    for module in (environment, upstream):
        monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    work = scenario.Run("llm", tmp_path, tmp_path / "sources", {})
    assert convert(work, progress) is True
    assert scenario.check(work) == []
    for source in work.sources:
        shutil.rmtree(work.tree(source))
    began = time.monotonic()
    assert convert(work, progress) is True
    print(f"converted in {time.monotonic() - began:.1f} s")
    assert time.monotonic() - began < 60
