"""The steps of auto_convert, and its behaviour after errors. The wheels are made here, without network."""

import contextlib
import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path

import pytest

from megatron_ms.convert import __main__ as command
from megatron_ms.convert import environment, job, shell, sources, upstream
from megatron_ms.convert.steps import ConvertError, Progress, Stamp, digest, write_atomically

ROOT = Path(__file__).resolve().parents[2]
WHEEL = "megatron_core-0.12.1-py3-none-any.whl"
# A release after all known ones: rules that do not fit the small trees here are left out.
PACKAGE_INFO = "MAJOR = 0\nMINOR = 99\nPATCH = 0\n"


@pytest.fixture
def progress() -> Progress:
    return Progress("test", live=False)


@pytest.fixture(autouse=True)
def this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """The steps use the python that runs the tests, instead of a .venv in the clone."""
    for module in (environment, upstream, job):
        monkeypatch.setattr(module, "PYTHON", Path(sys.executable))


def make_wheel(folder: Path, extra: dict[str, str] | None = None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "megatron/core/__init__.py": "",
        "megatron/core/package_info.py": PACKAGE_INFO,
        "megatron_core-0.12.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: megatron-core\nVersion: 0.12.1\n",
        "megatron_core-0.12.1.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "megatron_core-0.12.1.dist-info/RECORD": "",
    }
    path = folder / WHEEL
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in (files | (extra or {})).items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


def pin_of(wheel: Path) -> upstream.Pin:
    sha256 = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return upstream.Pin("megatron-core==0.12.1", {upstream.wheel_tag(): sha256})


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is pip's only source of packages."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(folder),
        "PIP_CONFIG_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(name, value)
    return folder


class TestWheel:
    def test_download_is_kept_recognised_and_repaired(self, tmp_path, index, progress) -> None:
        pin = pin_of(make_wheel(index))
        downloads = tmp_path / "downloads"
        assert upstream.fetch_wheel(downloads, tmp_path / "logs", progress, pin) is True
        assert upstream.fetch_wheel(downloads, tmp_path / "logs", progress, pin) is False
        kept = downloads / WHEEL
        kept.write_bytes(kept.read_bytes()[:100])
        assert upstream.fetch_wheel(downloads, tmp_path / "logs", progress, pin) is True
        assert kept.read_bytes() == (index / WHEEL).read_bytes()
        (aside,) = downloads.glob(f"{WHEEL}.changed-*")
        assert sorted(os.listdir(downloads)) == sorted([WHEEL, aside.name])
        (downloads / "mine.whl").write_text("another program's")
        kept.unlink()
        assert upstream.fetch_wheel(downloads, tmp_path / "logs", progress, pin) is True
        assert (downloads / "mine.whl").read_text() == "another program's"

    def test_another_file_under_the_same_name(self, tmp_path, index, progress) -> None:
        pin = pin_of(make_wheel(tmp_path / "elsewhere", {"megatron/core/more.py": "x = 1\n"}))
        make_wheel(index)
        with pytest.raises(ConvertError, match="not the pinned file"):
            upstream.fetch_wheel(tmp_path / "downloads", tmp_path / "logs", progress, pin)
        assert os.listdir(tmp_path / "downloads") == []

    def test_truncated_on_the_index(self, tmp_path, index, progress) -> None:
        wheel = make_wheel(index)
        pin = pin_of(wheel)
        wheel.write_bytes(wheel.read_bytes()[:200])
        with pytest.raises(ConvertError, match="truncated|could not be downloaded"):
            upstream.fetch_wheel(tmp_path / "downloads", tmp_path / "logs", progress, pin)
        assert os.listdir(tmp_path / "downloads") == []

    def test_nothing_on_the_index(self, tmp_path, index, progress) -> None:
        pin = upstream.Pin("megatron-core==0.12.1", {upstream.wheel_tag(): "0"})
        with pytest.raises(ConvertError, match="no package index could be reached"):
            upstream.fetch_wheel(tmp_path / "downloads", tmp_path / "logs", progress, pin)

    def test_a_machine_without_a_wheel(self) -> None:
        with pytest.raises(ConvertError, match="--source"):
            sources.release_of("core").wheel.expected("cp311-riscv64")

    def test_unpacking_a_truncated_file(self, tmp_path) -> None:
        wheel = make_wheel(tmp_path)
        wheel.write_bytes(wheel.read_bytes()[:-60])
        with pytest.raises(ConvertError, match="cannot be unpacked"):
            upstream.unpack(wheel, tmp_path / "out")

    @pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "a/../../evil.py"])
    def test_names_that_lead_outside(self, tmp_path, name) -> None:
        wheel = make_wheel(tmp_path / "in", {name: "x"})
        with pytest.raises(ConvertError, match="leads out of it"):
            upstream.unpack(wheel, tmp_path / "out")
        assert not (tmp_path / "out").exists()


class TestConversion:
    def convert(self, output: Path, index: Path, progress: Progress) -> bool:
        pin = pin_of(index / WHEEL)
        upstream.fetch_wheel(output / "downloads", output / "logs", progress, pin)
        return upstream.convert_wheel(output, output / "downloads", output / "logs", progress, pin)

    def test_written_recognised_and_repaired(self, tmp_path, index, progress) -> None:
        output = tmp_path / "build"
        make_wheel(index)
        assert self.convert(output, index, progress) is True
        manifest = json.loads((output / "megatron/manifest.json").read_text())
        assert manifest["version"] == "0.99.0" and manifest["origin"]["wheel"] == WHEEL
        assert self.convert(output, index, progress) is False
        (output / "megatron/megatron/core/package_info.py").write_text("")
        assert self.convert(output, index, progress) is True
        assert (output / "megatron/megatron/core/package_info.py").read_text() == PACKAGE_INFO
        (aside,) = output.glob("megatron.changed-*")
        assert (aside / "megatron/core/package_info.py").read_text() == ""
        shutil.rmtree(aside)
        shutil.rmtree(output / "megatron/megatron")
        assert self.convert(output, index, progress) is True
        assert sorted(os.listdir(output)) == ["downloads", "logs", "megatron"]

    def test_a_wheel_of_another_version(self, tmp_path, index, progress) -> None:
        make_wheel(index, {"megatron/core/package_info.py": "MAJOR = 0\nMINOR = 11\nPATCH = 0\n"})
        with pytest.raises(ConvertError, match=r"0\.11\.0"):
            self.convert(tmp_path / "build", index, progress)
        assert sorted(os.listdir(tmp_path / "build")) == ["downloads", "logs"]

    def test_a_checkout(self, tmp_path, progress) -> None:
        source, output = tmp_path / "Megatron-LM", tmp_path / "build"
        (source / "megatron/core").mkdir(parents=True)
        (source / "megatron/core/package_info.py").write_text(PACKAGE_INFO)
        (source / "pretrain_gpt.py").write_text("print('train')\n")
        output.mkdir()
        assert upstream.check_source(source) == "0.99.0"
        assert upstream.convert_checkout(source, output, output / "logs", progress) is True
        assert (output / "megatron/pretrain_gpt.py").exists()
        assert upstream.convert_checkout(source, output, output / "logs", progress) is False
        (source / "pretrain_gpt.py").write_text("print('other')\n")
        assert upstream.convert_checkout(source, output, output / "logs", progress) is True
        assert "other" in (output / "megatron/pretrain_gpt.py").read_text()


class TestStamps:
    def test_a_stamp_holds_only_for_its_key_and_whole_files(self, tmp_path) -> None:
        made = tmp_path / "made"
        made.write_text("content")
        stamp = Stamp(tmp_path / "stamp.json")
        assert not stamp.holds("key")
        stamp.write("key", [made])
        assert stamp.holds("key") and not stamp.holds("other")
        made.write_text("contenT")
        assert not stamp.holds("key")
        made.unlink()
        assert not stamp.holds("key")
        for broken in ("", "{", "[]", '{"key": "key"}', '{"key": "key", "files": 3}'):
            stamp.path.write_text(broken)
            assert not stamp.holds("key")

    def test_digest_sees_names_contents_and_borders(self, tmp_path) -> None:
        (tmp_path / "a").write_text("1")
        first = digest(tmp_path)
        (tmp_path / "a").rename(tmp_path / "b")
        assert digest(tmp_path) != first
        assert digest("ab", "c") != digest("a", "bc")

    def test_atomic_file(self, tmp_path) -> None:
        write_atomically(tmp_path / "deep" / "file", "text")
        assert os.listdir(tmp_path / "deep") == ["file"]


class TestEnvSh:
    def source(self, output: Path) -> str:
        return "source " + shlex.quote(str(output / "env.sh"))

    def sourced(self, output: Path, program: str) -> str:
        script = f"{self.source(output)}; {program}"
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": "/earlier"}
        answer = subprocess.run(["bash", "-euc", script], env=env, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.strip()

    @pytest.fixture
    def output(self, tmp_path: Path) -> Path:
        output = tmp_path / "a build"  # the space is intended
        output.mkdir()
        shell.write_env(output)
        return output

    def test_torch_has_its_version(self, output) -> None:
        program = f"{sys.executable} -c \"import importlib.metadata as m; print(m.version('torch'))\""
        assert self.sourced(output, program) == "2.13.0"
        shell.write_env(output, torch=shell.TORCH_OF_MINDSPEED)
        assert self.sourced(output, program) == "2.7.1"
        assert self.sourced(output, f"{program}; msadapter_off; env").count("MSADAPTER_") == 0

    @pytest.mark.parametrize("torch", ["", shell.TORCH_OF_MINDSPEED], ids=["newest", "MindSpeed"])
    def test_pip_keeps_torch_and_numpy(self, output, tmp_path, torch) -> None:
        """A package that needs another torch, or numpy 2, is refused, and one that fits is accepted."""
        shell.write_env(output, torch=torch)
        for name, needs in (("fits", "torch>=2"), ("other", "torch>=9"), ("newer", "numpy>=2")):
            with zipfile.ZipFile(tmp_path / f"{name}-1-py3-none-any.whl", "w") as wheel:
                text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\nRequires-Dist: {needs}\n"
                wheel.writestr(f"{name}-1.dist-info/METADATA", text)
                wheel.writestr(f"{name}-1.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
                wheel.writestr(f"{name}-1.dist-info/RECORD", "")
        command = f"{sys.executable} -m pip install --dry-run --no-index --find-links {tmp_path}"
        asked = "; ".join(f"{command} {name} 2>&1 || true" for name in ("fits", "other", "newer"))
        told = self.sourced(output, asked)
        assert "Would install fits-1" in told
        assert (
            "The user requested (constraint) torch==" in told
            and "The user requested (constraint) numpy==" in told
        )

    def test_twice_is_once_and_off_restores(self, output) -> None:
        once = self.sourced(output, 'echo "$PATH $PYTHONPATH $MSADAPTER_DEVICE"')
        assert str(output / "megatron") in once and once.endswith(":/earlier cuda")
        again = f'{self.source(output)}; echo "$PATH $PYTHONPATH $MSADAPTER_DEVICE"'
        twice = self.sourced(output, again)
        assert twice == once
        off = self.sourced(output, 'msadapter_off; echo "$PATH $PYTHONPATH ${MSADAPTER_DEVICE:-unset}"')
        assert off == "/usr/bin:/bin /earlier unset"

    def test_another_conversion_takes_the_place_of_the_first(self, output) -> None:
        """The variables of the first end, also in a child of the shell that sourced it."""
        first = shell.write_env(output / "llm", [output / "llm/MindSpeed-LLM"], device="npu", triton=True)
        second = shell.write_env(output / "core", megatron=output / "megatron")
        shown = 'echo "$PYTHONPATH|$PATH|$MSADAPTER_DEVICE|${MSADAPTER_TRITON-}|${MINDSPEED_LLM-}|"'
        sourced = [f"source {shlex.quote(str(path))}" for path in (first, second)]
        alone = self.sourced(output, f"msadapter_off; {sourced[1]}; {shown}")
        for switch in ("; ".join(sourced), f"{sourced[0]}; unset -f msadapter_off; {sourced[1]}"):
            asked = f"msadapter_off; {switch}; {shown}"
            assert self.sourced(output, asked) == alone
        assert str(output / "megatron") in alone and "|cuda|||" in alone
        triton = 'msadapter_off; export MSADAPTER_TRITON=0; {}; echo "$MSADAPTER_TRITON"; msadapter_off; echo "$MSADAPTER_TRITON"'
        assert self.sourced(output, triton.format(sourced[0])) == "0\n0"
        chosen = (
            'msadapter_off; {}; echo "$MSADAPTER_TRITON"; msadapter_off; echo "${{MSADAPTER_TRITON-none}}"'
        )
        assert self.sourced(output, chosen.format(sourced[0])) == "1\nnone"

    def test_python3_config_is_that_of_the_environment(self, output) -> None:
        """Megatron's Makefile asks it for the name of the compiled helper, and for nothing else."""
        ask = f"PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; PATH={ROOT}/msadapter/alias/shim/bin:$PATH; "
        suffix, include = self.sourced(output, ask + "python3-config --extension-suffix --includes").split(
            "\n"
        )
        assert suffix == sysconfig.get_config_var("EXT_SUFFIX") and sysconfig.get_path("include") in include
        libraries = self.sourced(output, ask + "python3-config --embed --libs")
        assert f"-lpython{sys.version_info[0]}.{sys.version_info[1]}" in libraries
        assert "usage" in self.sourced(output, ask + "! python3-config --nonsense 2>&1")

    def test_torchrun_is_ours(self, output) -> None:
        assert self.sourced(output, "command -v torchrun") == str(ROOT / "msadapter/alias/shim/bin/torchrun")


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda path: None, "there is no such folder"),
        (lambda path: path.mkdir(), "has no megatron/core/package_info.py"),
        (
            lambda path: (
                (path / "megatron/core").mkdir(parents=True),
                (path / "megatron/core/package_info.py").write_text("MAJOR = 0\nMINOR = 11\nPATCH = 1\n"),
            ),
            r"0\.11\.1.*from 0\.12\.0",
        ),
    ],
    ids=["absent", "empty", "version"],
)
def test_wrong_source(tmp_path, make, message) -> None:
    make(tmp_path / "source")
    with pytest.raises(ConvertError, match=message):
        upstream.check_source(tmp_path / "source")


def test_output_that_cannot_be_written(tmp_path, capsys) -> None:
    (tmp_path / "file").write_text("")
    assert command.main(["--output", str(tmp_path / "file" / "build")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_read_only_output(tmp_path) -> None:
    (tmp_path / "build").mkdir(mode=0o555)
    with pytest.raises(ConvertError, match="cannot be written"):
        command.check_writable(tmp_path / "build")


def test_a_checkpoint_that_is_broken_is_not_continued(tmp_path) -> None:
    folder = tmp_path / "gpt"
    job.forget_other_run(folder, "key", job._is_whole_zip(folder / "checkpoint.pt"))
    with zipfile.ZipFile(folder / "checkpoint.pt", "w") as archive:
        archive.writestr("data", b"x" * 1000)
    job.forget_other_run(folder, "key", job._is_whole_zip(folder / "checkpoint.pt"))
    assert (folder / "checkpoint.pt").exists()
    (folder / "checkpoint.pt").write_bytes((folder / "checkpoint.pt").read_bytes()[:500])
    job.forget_other_run(folder, "key", job._is_whole_zip(folder / "checkpoint.pt"))
    assert os.listdir(folder) == ["run.key"]
    (aside,) = tmp_path.glob("gpt.changed-*")
    assert (aside / "checkpoint.pt").stat().st_size == 500
    (folder / "checkpoint.pt").write_text("hours of training")
    job.forget_other_run(folder, "other key")
    assert os.listdir(folder) == ["run.key"]
    (other,) = set(tmp_path.glob("gpt.changed-*")) - {aside}
    assert (other / "checkpoint.pt").read_text() == "hours of training"


class TestCommand:
    """auto_convert.sh itself, in a clone without .venv."""

    @pytest.fixture
    def clone(self, tmp_path: Path) -> Path:
        clone = tmp_path / "clone"
        skip = shutil.ignore_patterns("__pycache__")
        for name in ("megatron_ms", "patches"):
            shutil.copytree(ROOT / name, clone / name, ignore=skip)
        for name in ("pyproject.toml", "auto_convert.sh", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, clone / name)
        (clone / "msadapter/_host").mkdir(parents=True)
        shutil.copy(ROOT / "msadapter/_host/version.py", clone / "msadapter/_host")
        return clone

    def environment(self, **more: str) -> dict[str, str]:
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))},
            "PYTHON": getattr(sys, "_base_executable", sys.executable),
            "PIP_CONFIG_FILE": os.devnull,
            **more,
        }

    def test_help(self, clone: Path) -> None:
        answer = subprocess.run(
            ["bash", clone / "auto_convert.sh", "--help"],
            capture_output=True,
            text=True,
            env=self.environment(),
        )
        assert answer.returncode == 0
        for word in ("--train", "--source", "--output", "env.sh", "doctor", "exit code"):
            assert word in answer.stdout

    def test_unknown_option(self, clone: Path) -> None:
        answer = subprocess.run(
            ["bash", clone / "auto_convert.sh", "--nonsense"], capture_output=True, env=self.environment()
        )
        assert answer.returncode == 2

    def test_no_python(self, clone: Path, tmp_path: Path) -> None:
        answer = self.with_tools(clone, tmp_path, [])
        assert answer.returncode == 1 and "Python 3.10, 3.11 or 3.12 is needed" in answer.stderr

    def test_no_compiler(self, clone: Path, tmp_path: Path) -> None:
        answer = self.with_tools(clone, tmp_path, ["python3.11"])
        assert answer.returncode == 1, answer.stderr
        assert "no C++ compiler" in answer.stderr and "apt install g++" in answer.stderr
        assert not (clone / ".venv").exists()

    def with_tools(self, clone: Path, tmp_path: Path, more: list[str]) -> subprocess.CompletedProcess:
        tools = tmp_path / "tools"
        tools.mkdir()
        for name in ("bash", "dirname", "env"):
            (tools / name).symlink_to(shutil.which(name))
        env = self.environment(PATH=str(tools))
        del env["PYTHON"]
        env.pop("CXX", None)
        if more:
            env["PYTHON"] = getattr(sys, "_base_executable", sys.executable)
        return subprocess.run(
            [str(tools / "bash"), str(clone / "auto_convert.sh")], env=env, capture_output=True, text=True
        )

    def test_no_network(self, clone: Path) -> None:
        answer = subprocess.run(
            ["bash", clone / "auto_convert.sh"],
            capture_output=True,
            text=True,
            env=self.environment(PIP_NO_INDEX="1"),
            timeout=120,
        )
        assert answer.returncode == 1
        assert "the dependencies could not be installed: no package index could be reached" in answer.stderr
        assert not list((clone / "build").glob("megatron*"))

    def test_ctrl_c_in_the_middle(self, clone: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:  # a package index that never answers
            env = self.environment(PIP_INDEX_URL=f"http://127.0.0.1:{silent.getsockname()[1]}/simple")
            process = subprocess.Popen(
                ["bash", clone / "auto_convert.sh"],
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
                # A shell that starts the tests in the background ignores SIGINT, and its children would
                # inherit this.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
            )
            try:
                log = clone / "build/logs/pip.log"
                deadline = time.monotonic() + 60
                while not log.exists() and time.monotonic() < deadline:
                    time.sleep(0.1)
                assert log.exists(), "pip was not started"
                time.sleep(1)
                os.killpg(process.pid, signal.SIGINT)
                _, words = process.communicate(timeout=30)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 130
        assert "stopped" in words and "Traceback" not in words
        assert not list((clone / "build").glob(".*part")) and not list((clone / "build").glob("megatron*"))
        # The next run must not fail because of a lock or an incomplete environment. It fails later, for its
        # own reason.
        again = subprocess.run(
            ["bash", clone / "auto_convert.sh"],
            capture_output=True,
            text=True,
            timeout=120,
            env=self.environment(PIP_NO_INDEX="1"),
        )
        assert "no package index could be reached" in again.stderr
