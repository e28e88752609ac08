"""auto_convert never removes or overwrites a file of the user that it did not write itself."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from megatron_ms.convert import __main__ as command
from megatron_ms.convert import environment, job, packages, places, shell, steps, upstream
from megatron_ms.convert.steps import ConvertError, Progress, Stamp, digest, write_atomically

ROOT = Path(__file__).resolve().parents[2]


class Reached(Exception):
    """Raised when all checks of the folders have passed."""


@pytest.fixture(autouse=True)
def nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> None:
        raise Reached

    monkeypatch.setattr(environment, "prepare_venv", stop)
    monkeypatch.setattr(upstream, "PYTHON", Path(sys.executable))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    source = tmp_path / "Megatron-LM"
    (source / "megatron/core/datasets").mkdir(parents=True)
    (source / "megatron/core/package_info.py").write_text("MAJOR = 0\nMINOR = 99\nPATCH = 0\n")
    return source


def state(folder: Path) -> dict[str, str]:
    """Return every file, folder and link in a folder, with its content."""
    found = {}
    for path in sorted(folder.rglob("*")):
        link, file = path.is_symlink(), path.is_file()
        found[str(path)] = os.readlink(path) if link else path.read_bytes().hex() if file else "folder"
    return found


def refused(words: list, capsys: pytest.CaptureFixture, *told: str) -> None:
    assert command.main([str(word) for word in words]) == 1
    error = capsys.readouterr().err
    assert "Traceback" not in error
    for text in told:
        assert text in error


@pytest.mark.parametrize(
    "name", ["megatron", "env.sh", "logs", "downloads", "sources", "train", "llm", "packages", ".lock"]
)
@pytest.mark.parametrize("scenario", ["core", "llm"])
def test_an_output_with_the_users_files_is_refused(tmp_path, capsys, name, scenario) -> None:
    output = tmp_path / "mine"
    if name in ("env.sh", ".lock"):
        output.mkdir()
        (output / name).write_text("my work")
    else:
        (output / name).mkdir(parents=True)
        (output / name / "thesis.txt").write_text("my work")
    before = state(tmp_path)
    refused([scenario, "--output", output], capsys, str(output), name, "did not write")
    assert state(tmp_path) == before


def test_an_output_beside_other_files_is_marked_and_taken_again(tmp_path) -> None:
    output = tmp_path / "work"
    output.mkdir()
    (output / "thesis.txt").write_text("my work")
    for _ in range(2):
        with pytest.raises(Reached):
            command.main(["--output", str(output)])
        (output / "logs").mkdir(exist_ok=True)
    assert (output / "thesis.txt").read_text() == "my work"
    assert "auto_convert" in (output / places.MARK).read_text()


def test_an_output_of_an_earlier_version_is_ours(tmp_path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / ".lock").touch()
    with pytest.raises(Reached):
        command.main(["--output", str(tmp_path)])


@pytest.mark.parametrize(
    "place", [".", "..", "build", "megatron/core", "link", "link/build", "../link/megatron"]
)
def test_source_and_output_that_contain_one_another(tmp_path, checkout, capsys, place) -> None:
    (tmp_path / "link").symlink_to(checkout)
    output = tmp_path / place if place.startswith("link") else checkout / place
    before = state(tmp_path)
    refused(["--source", checkout, "--output", output], capsys, "contain one another")
    refused(["--source", tmp_path / "link", "--output", output], capsys, "contain one another")
    refused(["llm", "--source", f"Megatron-LM={checkout}", "--output", output], capsys, "contain one another")
    assert state(tmp_path) == before


WAYS = {
    "link": "checkout",
    "link to a link": "first",
    "relative link": "Megatron-LM",
    "link into the source": "checkout/megatron",
    "link to a new folder in the source": "checkout/new",
    "link to the folder above": "checkout/..",
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("scenario", ["core", "llm"])
def test_an_output_that_is_a_link_to_the_source(tmp_path, checkout, capsys, way, scenario) -> None:
    (tmp_path / "first").symlink_to(checkout)
    (tmp_path / "LINK").symlink_to(way.replace("checkout", str(checkout)))
    source = checkout if scenario == "core" else f"Megatron-LM={checkout}"
    before = state(tmp_path)
    below = () if way.endswith("..") else ("LINK/build", "LINK/./build/..")  # else it is beside the source
    for output in ("LINK", *below):
        words = [scenario, "--source", source, "--output", tmp_path / output]
        refused(words, capsys, "contain one another", str(checkout))
    assert state(tmp_path) == before


@pytest.mark.parametrize("name", ["logs", "train", "megatron", "llm", "downloads"])
@pytest.mark.parametrize("to", ["", "megatron/core", "new"])
def test_a_folder_of_the_output_that_is_a_link_into_the_source(tmp_path, checkout, capsys, name, to) -> None:
    """The output is ours, and the user has moved one of its folders elsewhere. A run would write through the link."""
    output = tmp_path / "out"
    output.mkdir()
    places.claim(output)
    (output / name).symlink_to(checkout / to)
    before = state(tmp_path)
    for words in (["--source", checkout], ["llm", "--source", f"Megatron-LM={checkout}"]):
        refused(
            [*words, "--output", output], capsys, "contain one another", f"{name}, a link to {checkout / to}"
        )
    assert state(tmp_path) == before
    (output / name).unlink()
    (output / name).symlink_to(tmp_path / "large disk")
    with pytest.raises(Reached):
        command.main(["--source", str(checkout), "--output", str(output)])


def test_an_archive_with_names_that_would_be_one_file(tmp_path, monkeypatch) -> None:
    def wheel(*names: str) -> Path:
        path = tmp_path / "made.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(zipfile.ZipInfo(name), name)
        return path

    for names in (("a/x.py", "a/x.py"), ("a/x.py", "a/./x.py"), ("a/x.py", "a//x.py")):
        with pytest.warns(UserWarning) if names[0] == names[1] else contextlib.nullcontext():
            made = wheel(*names)
        with pytest.raises(ConvertError, match=r"contains 'a/x\.py' more than once"):
            upstream.unpack(made, tmp_path / "twice")
    upstream.unpack(wheel("a/x.py", "a/X.py", "a/\u00e9", "a/e\u0301"), tmp_path / "apart")
    assert len(os.listdir(tmp_path / "apart/a")) == 4

    def on_a_file_system_that_ignores_case(archive: zipfile.ZipFile, folder: Path) -> None:
        for name in archive.namelist():
            (folder / name.lower()).parent.mkdir(parents=True, exist_ok=True)
            (folder / name.lower()).write_bytes(archive.read(name))

    monkeypatch.setattr(zipfile.ZipFile, "extractall", on_a_file_system_that_ignores_case)
    with pytest.raises(
        ConvertError, match=r"does not keep these names apart.*'a/X\.py' \(there is 'a/x\.py'\)"
    ):
        upstream.unpack(wheel("a/x.py", "a/X.py"), tmp_path / "folded")


def test_a_cache_inside_a_checkout(tmp_path, checkout, capsys) -> None:
    words = ["llm", "--source", f"Megatron-LM={checkout}", "--output", tmp_path / "out"]
    for cache in (checkout, checkout / "cache", tmp_path / "out/llm/MindSpeed"):
        refused([*words, "--cache", cache], capsys, "contain one another")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "place", ["", "..", "patches", "patches/mindspeed/new", "msadapter", "tests", ".venv/x", ".git/x"]
)
def test_an_output_in_the_project_itself(capsys, place) -> None:
    refused(["--output", ROOT / place], capsys, "this project")


@pytest.mark.parametrize(
    "bad", ["a\necho pwned >&2 #", "a\rb", "a\x1b[2J", "a:b", "tab\there", "a\x7fb", "a\x85b"]
)
def test_paths_that_no_shell_file_can_hold(tmp_path, capsys, bad, checkout) -> None:
    refused(["--output", tmp_path / bad], capsys, "choose another path")
    refused(["llm", "--cache", tmp_path / bad, "--output", tmp_path / "out"], capsys, "choose another path")
    other = tmp_path / bad
    checkout.rename(other)
    refused(["--source", other, "--output", tmp_path / "out"], capsys, "choose another path")
    refused(
        ["llm", "--source", f"Megatron-LM={other}", "--output", tmp_path / "out"],
        capsys,
        "choose another path",
    )
    (tmp_path / "fine").symlink_to(tmp_path / bad)  # a valid name that leads to a bad place
    refused(["--output", tmp_path / "fine"], capsys, "choose another path")
    with pytest.raises(ConvertError, match="choose another path"):
        shell.write_env(tmp_path / bad)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "odd", ["a b", "a'b", 'a"b', "a$(touch pwned)b", "a`touch pwned`b", "a;touch pwned", "a\\b", "-a", "ü"]
)
def test_any_other_path_is_quoted(tmp_path, odd) -> None:
    output = tmp_path / odd
    path = shell.write_env(output, [output / "llm" / "Tree"], output / "packages")
    asked = f'. {shlex.quote(str(path))}; printf "%s\\n" "$MSADAPTER_SHELL" "$TREE"'
    env = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    answer = subprocess.run(["bash", "-euc", asked], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert answer.stdout.split("\n")[:2] == [str(output), str(output / "llm/Tree")], answer.stderr
    assert os.listdir(tmp_path) == [odd]


@pytest.mark.parametrize("option", ["--output", "--cache"])
@pytest.mark.parametrize("name", ["", "~", "~/build", "~user/build"])
def test_a_folder_that_the_shell_should_have_replaced(tmp_path, monkeypatch, capsys, option, name) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        command.main([f"{option}={name}"])
    assert stopped.value.code == 2
    assert ("the ~" if name else "is empty") in capsys.readouterr().err
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "words, expected",
    [
        (["--output=-x"], "-x"),
        (["--output", "a", "--output", "b c"], "b c"),
        (["--output", "a", "--output=b c"], "b c"),
        (["--output", "./-x"], "-x"),
    ],
)
def test_sourcing_reads_the_env_sh_of_the_output(tmp_path, words, expected) -> None:
    """The script is sourced beside a Python that accepts everything, so that only the choice of env.sh is tested."""
    for name in ("-x", "a", "b c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "env.sh").write_text(f"found={shlex.quote(name)}\n")
    accepts = tmp_path / "python"
    accepts.write_text("#!/bin/sh\nexit 0\n")
    accepts.chmod(0o755)
    asked = f'. {shlex.quote(str(ROOT / "auto_convert.sh"))} {shlex.join(words)}; printf "%s" "$found"'
    env = {"PATH": "/usr/bin:/bin", "PYTHON": str(accepts)}
    answer = subprocess.run(["bash", "-c", asked], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert answer.stdout == expected, answer.stderr


def test_an_env_sh_changed_by_hand_is_kept(tmp_path, capsys) -> None:
    path = shell.write_env(tmp_path)
    shell.write_env(tmp_path, device="npu")
    assert os.listdir(tmp_path) == ["env.sh"]
    path.write_bytes(path.read_bytes() + b"export MINE=\xff\n")
    mine = path.read_bytes()
    shell.write_env(tmp_path)
    (aside,) = tmp_path.glob("env.sh.changed-*")
    assert aside.read_bytes() == mine and str(aside) in capsys.readouterr().err
    path.unlink()
    (tmp_path / "rc").write_text("my settings")
    path.symlink_to("rc")
    shell.write_env(tmp_path)
    assert (tmp_path / "rc").read_text() == "my settings"


def test_what_waits_under_the_name_of_a_part_is_not_written_to(tmp_path) -> None:
    (tmp_path / "rc").write_text("my settings")
    (tmp_path / ".env.sh.part").symlink_to("rc")
    write_atomically(tmp_path / "env.sh", "text")
    assert (tmp_path / "rc").read_text() == "my settings"
    assert (tmp_path / "env.sh").stat().st_mode & 0o777 == 0o666 & ~steps._umask()


LINKS = {
    "absolute, into the source": lambda source: str(source / "megatron/core/package_info.py"),
    "absolute, a folder to compile in": lambda source: str(source.parent),
    "up and out": lambda source: "../../../secret",
    "circle": lambda source: "odd",
}


@pytest.mark.parametrize("where", LINKS.values(), ids=LINKS)
def test_links_that_leave_a_checkout_are_refused_before_anything(tmp_path, checkout, capsys, where) -> None:
    (tmp_path / "secret").write_text("secret")
    (checkout / "megatron/core/odd").symlink_to(where(checkout))
    before = state(tmp_path)
    refused(["--source", checkout, "--output", tmp_path / "out"], capsys, "link")
    refused(["llm", "--source", f"Megatron-LM={checkout}", "--output", tmp_path / "out"], capsys, "link")
    assert state(tmp_path) == before


def test_a_helper_is_not_compiled_through_a_link(tmp_path, checkout) -> None:
    """The checkout's folder of helpers is a link.

    Then no compiler runs, and nothing is written behind the link.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "helpers.cpp").write_text("int x;\n")
    (checkout / "megatron/core/datasets").rmdir()
    (checkout / "megatron/core/datasets").symlink_to(elsewhere)
    (tmp_path / "out").mkdir()
    with pytest.raises(ConvertError, match="link out of the tree"):
        upstream.convert_checkout(
            checkout, tmp_path / "out", tmp_path / "out/logs", Progress("t", live=False)
        )
    assert os.listdir(elsewhere) == ["helpers.cpp"] and os.listdir(tmp_path / "out") == []


def test_a_converted_tree_is_no_checkout(checkout, tmp_path, capsys) -> None:
    (checkout / "manifest.json").write_text("{}")
    refused(["--source", checkout, "--output", tmp_path / "out"], capsys, "already patched")


def test_circles_of_links_are_one_line(tmp_path, capsys) -> None:
    (tmp_path / "loop").symlink_to("loop")
    refused(["--output", tmp_path / "loop"], capsys, "loop")
    refused(["--output", tmp_path / "loop/deep"], capsys, "loop")
    refused(["llm", "--cache", tmp_path / "loop", "--output", tmp_path / "out"], capsys, "loop")
    refused(["--source", tmp_path / "loop", "--output", tmp_path / "out"], capsys, "loop")
    refused(["--check", "--output", tmp_path / "loop"], capsys, "loop")


def test_a_user_that_does_not_exist(tmp_path, capsys) -> None:
    refused(
        ["llm", "--source", "MindSpeed=~no-such-user/x", "--output", tmp_path / "out"], capsys, "--source"
    )


def test_an_environment_that_somebody_else_made_is_kept(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "PYTHON", tmp_path / ".venv/bin/python")
    progress = Progress("t", live=False)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/mine").write_text("my work")
    environment._make_room(progress)
    (aside,) = tmp_path.glob(".venv.changed-*")
    assert (aside / "bin/mine").read_text() == "my work"
    environment._create_venv(tmp_path / "logs", progress)
    # it belongs to auto_convert, although it is not complete, so it may be removed
    environment._make_room(progress)
    assert not (tmp_path / ".venv").exists() and len(list(tmp_path.glob(".venv.changed-*"))) == 1
    (tmp_path / ".venv").symlink_to(aside)
    environment._make_room(progress)
    assert (aside / "bin/mine").exists() and not os.path.lexists(tmp_path / ".venv")


def test_a_data_set_that_a_step_did_not_write_is_kept(tmp_path) -> None:
    stamp, file = Stamp(tmp_path / "data.json"), tmp_path / "shakespeare.bin"
    file.write_text("my data")
    stamp.keep_strangers([file, tmp_path / "absent"])
    (aside,) = tmp_path.glob("shakespeare.bin.changed-*")
    assert aside.read_text() == "my data"
    file.write_text("ours")
    stamp.write("key", [file])
    stamp.keep_strangers([file])
    assert file.exists()
    file.write_text("mine")
    stamp.keep_strangers([file])
    assert not file.exists() and len(list(tmp_path.glob("shakespeare.bin.changed-*"))) == 2


def test_packages_are_held_against_their_contents(tmp_path) -> None:
    """Before a folder is removed, a changed file must be noticed even if its size is the same."""
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.py").write_text("one")
    before = packages._contents_of(tmp_path / "a")
    (tmp_path / "a/x.py").write_text("two")
    assert packages._contents_of(tmp_path / "a") != before
    (tmp_path / "a/x.py").write_text("one")
    (tmp_path / "a/link").symlink_to("x.py")
    assert packages._contents_of(tmp_path / "a") != before


def test_names_of_any_bytes_have_a_digest(tmp_path) -> None:
    (tmp_path / os.fsdecode(b"b\xfccher")).write_text("x")
    assert len(digest(tmp_path, os.fsdecode(b"b\xfccher"))) == 64
    job.forget_other_run(tmp_path / "run", hashlib.sha256(b"").hexdigest())
    (tmp_path / "run/run.key").write_bytes(b"\xff")
    job.forget_other_run(tmp_path / "run", "key")
    assert (tmp_path / "run/run.key").read_text() == "key"


def test_a_full_disk_is_one_line(tmp_path) -> None:
    """A limit on the size of files simulates the full disk. It applies to the first log file."""
    program = (
        "import resource, signal, sys; from megatron_ms.convert.__main__ import main; "
        "from megatron_ms.convert import environment, steps; "
        "environment.prepare_venv = lambda extras, logs, progress: "
        "steps.run([sys.executable, '-c', 'print(\"x\" * 100000)'], logs / 'pip.log', progress); "
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); "
        "sys.exit(main(sys.argv[1:]))"
    )
    words = [sys.executable, "-c", program, "--output", str(tmp_path / "out")]
    answer = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert answer.returncode == 1 and "File too large" in answer.stderr
    assert "Traceback" not in answer.stderr, answer.stderr
