"""The cache of built libraries: nothing is loaded that another user could have written or that is not what was built."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from msadapter._host import cache, doctor, native

ROOT = Path(__file__).resolve().parents[2]
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a file to another user")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, in which a build only copies a text."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("MSADAPTER_CACHE", str(folder))
    monkeypatch.setattr(native, "compiler", lambda: "/bin/true")

    def compiled(command, source, verbose) -> None:
        Path(command[command.index("-o") + 1]).write_bytes(b"library " * 100)

    monkeypatch.setattr(native, "_compile", compiled)
    monkeypatch.setattr(native, "library_path", lambda: folder / "key" / "_C.so")
    monkeypatch.setattr(native, "_extension_objects", lambda compilation, work: [])
    return folder


def test_a_build_is_recorded_and_recognised(folder, monkeypatch) -> None:
    library = native.build()
    assert library.read_bytes() == b"library " * 100 and cache.record_of(library).exists()
    assert sorted(os.listdir(library.parent)) == ["_C.so", "_C.so.json"]
    hashed = []
    monkeypatch.setattr(cache, "file_sha256", lambda path: hashed.append(path))
    monkeypatch.setattr(native, "_link", lambda *_: pytest.fail("built twice"))
    assert native.build() == library
    assert hashed == []  # as long as the file is untouched it is not read again


DAMAGE = {
    "truncated": lambda path: os.truncate(path, 100),
    "empty": lambda path: os.truncate(path, 0),
    "a bit": lambda path: path.write_bytes(b"Library " + b"library " * 99),
    "without its record": lambda path: cache.record_of(path).unlink(),
    "with a broken record": lambda path: cache.record_of(path).write_text("{"),
    "with an odd record": lambda path: cache.record_of(path).write_text('{"sha256": 3, "stamp": 4}'),
    "with a list for a record": lambda path: cache.record_of(path).write_text("[]"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_the_next_run_repairs_what_is_damaged(folder, capsys, damage) -> None:
    library = native.build()
    DAMAGE[damage](library)
    assert not doctor._is_built()
    (line,) = doctor._kernels()
    assert line.wrong and line.fix
    assert native.build() == library
    assert "built again" in capsys.readouterr().err
    assert library.read_bytes() == b"library " * 100
    assert not any(line.wrong for line in doctor._kernels())


def test_a_change_that_keeps_size_and_times_is_found_by_doctor_and_build(folder) -> None:
    library = native.build()
    library.write_bytes(b"Library " + b"library " * 99)
    cache.record(
        library, cache.json.loads(cache.record_of(library).read_text())["sha256"]
    )  # as if nothing were
    assert cache.why_damaged(library) == ""
    (line,) = doctor._kernels()
    assert line.wrong and "damaged" in line.value
    native.build(thorough=True)
    assert library.read_bytes() == b"library " * 100


def test_a_copied_cache_is_hashed_once(folder) -> None:
    library = native.build()
    os.utime(library)
    assert cache.why_damaged(library) == ""
    assert cache.json.loads(cache.record_of(library).read_text())["stamp"] == cache._stamp(library.stat())


@pytest.mark.parametrize("mode", [0o777, 0o773, 0o702])
@pytest.mark.parametrize("place", ["", ".."])
def test_a_cache_that_others_may_write_is_refused(folder, monkeypatch, place, mode) -> None:
    native.build()
    os.chmod(folder / place, mode)
    try:
        with pytest.raises(native.BuildError, match=r"everybody may write .*chmod o-w"):
            native.build()
        (line,) = doctor._kernels()
        assert line.wrong and "everybody may write" in line.value and not doctor._is_built()
    finally:
        os.chmod(folder / place, 0o755)
    native.build()


def test_a_library_or_folder_that_others_may_write_is_built_again(folder, capsys) -> None:
    library = native.build()
    for place in (library, library.parent, cache.record_of(library)):
        place.chmod(0o777)
        native.build()
        assert "everybody may write" in capsys.readouterr().err
        assert not cache.why_untrusted(library) and not cache.why_damaged(library)


def test_folders_are_made_such_that_nobody_else_may_write(folder) -> None:
    before = os.umask(0)
    try:
        library = native.build()
    finally:
        os.umask(before)
    for place in (library, library.parent, folder, cache.record_of(library)):
        assert not place.stat().st_mode & 0o022, place


@root_only
def test_a_library_of_another_user_is_not_trusted(folder) -> None:
    library = native.build()
    library.write_bytes(b"evil")
    os.chown(library, 12345, 12345)
    assert "belongs to user 12345" in cache.why_untrusted(library)
    native.build()
    assert library.read_bytes() == b"library " * 100 and library.stat().st_uid == 0
    os.chown(folder, 12345, 12345)
    with pytest.raises(native.BuildError, match="belongs to user 12345"):
        native.build()


def test_a_way_through_a_link_of_a_folder_for_all(folder, tmp_path, monkeypatch) -> None:
    """The cache itself is safe, but the link that leads to it can be changed by every user."""
    library = native.build()
    (tmp_path / "open").mkdir(mode=0o777)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "open/cache").symlink_to(folder)
    assert "everybody may write" in cache.why_untrusted(tmp_path / "open/cache/key/_C.so")
    (tmp_path / "open").chmod(0o1777)
    assert cache.why_untrusted(tmp_path / "open/cache/key/_C.so") == "" == cache.why_untrusted(library)


def test_a_library_named_by_the_user(folder, monkeypatch, tmp_path) -> None:
    named = tmp_path / "elsewhere.so"
    named.write_bytes(b"")
    named.chmod(0o777)
    monkeypatch.setenv("MSADAPTER_LIBRARY", str(named))
    monkeypatch.delitem(sys.modules, "msadapter._C")
    with pytest.raises(native.BuildError, match="MSADAPTER_LIBRARY is not loaded"):
        native.load()


def test_a_lock_tells_who_holds_it(folder, monkeypatch, capfd) -> None:
    monkeypatch.setattr(cache, "_TELL_AFTER", 0.2)
    cache.check_root(folder)
    program = (  # the folder alone: importing the package would build the libraries in this empty cache
        "import sys, time; from pathlib import Path; sys.path.append(sys.argv[2]); from _host import cache\n"
        "with cache.alone(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(folder), str(Path(cache.__file__).parents[1])],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    try:
        assert holder.stdout.readline() == "held\n"
        thread = threading.Thread(target=native.build)
        thread.start()
        told, end = "", time.monotonic() + 60
        while f"held by process {holder.pid} since" not in told and time.monotonic() < end:
            time.sleep(0.05)
            told += capfd.readouterr().err
        assert thread.is_alive() and f"held by process {holder.pid} since" in told
        assert f"process {holder.pid} since" in cache._holder(folder / "lock")
    finally:
        holder.kill()
        holder.wait()
    thread.join(60)
    assert not thread.is_alive()
    native.build()
    with open(
        folder / "lock", "r+"
    ) as lock:  # a lock of an earlier version says nothing, or its writer has ended
        for text, words in (("", "unknown process"), ("4194999 then", "has ended")):
            (folder / "lock").write_text(text)
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert words in cache._holder(folder / "lock")


def test_a_full_disk_stops_at_once(folder, monkeypatch) -> None:
    started = []

    def full(number: int) -> Path:
        started.append(number)
        if number == 1:
            raise native.BuildError("the disk is full")
        time.sleep(0.05)
        return Path()

    monkeypatch.setattr(native.os, "cpu_count", lambda: 2)
    with pytest.raises(native.BuildError, match="full"):
        native._parallel([(full, number) for number in range(200)])
    assert len(started) < 10
    monkeypatch.setattr(cache, "_LEAST_FREE", 1 << 60)
    with pytest.raises(native.BuildError, match=r"has \d+ MB left.*MSADAPTER_CACHE"):
        native.build()
    assert not list(folder.rglob("*.part"))


def test_errors_of_the_disk_name_the_cache(folder, monkeypatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "x.o")

    monkeypatch.setattr(native, "_link", full)
    with pytest.raises(native.BuildError, match=r"cache.*No space left on device: x.o.*MSADAPTER_CACHE"):
        native.build()


def test_the_compiler_says_that_the_disk_is_full(tmp_path, monkeypatch) -> None:
    script = tmp_path / "g++"
    script.write_text(
        "#!/bin/sh\necho 'fatal error: error writing to x.s: No space left on device' >&2; exit 1\n"
    )
    script.chmod(0o755)
    with pytest.raises(native.BuildError, match="the disk is full"):
        native._compile([str(script)], Path("a.cpp"), False)


def test_a_damaged_object_is_compiled_again(folder, tmp_path) -> None:
    objects = folder / "objects"
    cache.make_folder(objects)
    compilation = native._Compilation(tmp_path, objects, False)
    source = tmp_path / "a.cpp"
    source.write_text("int x;")
    made = compilation._cached("a", ".o", source, [], b"key")
    whole = made.read_bytes()
    for damage in (
        lambda: os.truncate(made, 10),
        lambda: made.write_bytes(b"evil"),
        lambda: made.chmod(0o666),
    ):
        damage()
        assert compilation._cached("a", ".o", source, [], b"key").read_bytes() == whole
        assert not made.stat().st_mode & 0o022
    native._hash_of(made).unlink()  # of an earlier version: taken once, then watched
    compilation._cached("a", ".o", source, [], b"key")
    assert native._hash_of(made).exists()


def test_pythons_share_the_objects_of_kernels(folder, tmp_path, monkeypatch) -> None:
    """What includes headers of Python is compiled for each, and a kernel once."""
    objects = folder / "objects"
    cache.make_folder(objects)
    source = tmp_path / "a.cpp"
    source.write_text("int x;")
    made = []
    for version in ((3, 11, 7), (3, 12, 1)):
        monkeypatch.setattr(sys, "version_info", version)
        compilation = native._Compilation(tmp_path, objects, False)
        made.append([compilation.kernel(source), compilation._cached("a", ".o", source, [], b"key")])
    assert made[0][0] == made[1][0] and made[0][1] != made[1][1]


_COPIES = """#!/bin/sh
[ "$1" = --version ] && exec echo a compiler
for word; do target="$word"; case "$word" in *.cpp) echo "$word" >> "$COMPILED" ;; esac; done
echo object > "$target"
"""


def test_kernels_are_compiled_before_any_package_is_there(tmp_path) -> None:
    """By a Python without packages, as while pip installs MindSpore. A build finds them, so none is compiled twice."""
    compiler, compiled = tmp_path / "g++", tmp_path / "compiled"
    compiler.write_text(_COPIES)
    compiler.chmod(0o755)
    env = {"PATH": os.environ["PATH"], "CXX": str(compiler), "COMPILED": str(compiled)}
    env["MSADAPTER_CACHE"] = str(tmp_path / "cache")
    command = [sys.executable, "-S", ROOT / "msadapter/_host/doctor.py", "kernels"]
    for _ in range(2):
        answer = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
        assert (answer.returncode, answer.stdout, answer.stderr) == (0, "", "")
        assert sorted(compiled.read_text().split()) == sorted(map(str, native._kernel_sources()))
    wrong = env | {"MSADAPTER_CACHE": str(tmp_path / "other"), "MSADAPTER_CACHE_LIMIT": "much"}
    answer = subprocess.run(command, env=wrong, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 1 and "MSADAPTER_CACHE_LIMIT" in answer.stderr
    assert len(compiled.read_text().split()) == len(
        native._kernel_sources()
    )  # nothing was compiled before it was told
    compiler = tmp_path / "another"
    compiler.write_text(
        "#!/bin/sh\n[ $1 = --version ] && exec echo another\necho no such header >&2; exit 1\n"
    )
    compiler.chmod(0o755)
    env["CXX"] = str(compiler)
    answer = subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)
    assert answer.returncode == 1 and "no such header" in answer.stderr and "Traceback" not in answer.stderr


def test_no_kernel_includes_a_header_of_python() -> None:
    for folder in native._WITHOUT_MINDSPORE:
        for path in (native.SOURCES / folder).iterdir():
            whole = b"".join(native._with_headers(path, {}).values())
            assert b"Python.h" not in whole and b"pybind" not in whole, path


@pytest.mark.parametrize("words", [["-m", "msadapter", "doctor"], ["msadapter/_host/doctor.py"]])
def test_doctor_runs_without_the_kernels(tmp_path, words) -> None:
    """With an empty cache, nothing is built or loaded, and the report says what is missing."""
    env = {**os.environ, "MSADAPTER_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    answer = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 1, answer.stderr
    assert "not built for these sources" in answer.stdout and "not tried" in answer.stdout
    assert not (tmp_path / "cache").exists() and "Traceback" not in answer.stderr


def test_other_words_are_no_command(monkeypatch) -> None:
    commands = importlib.import_module("msadapter._host.commands")
    for argv, orig in (
        (["-m", "doctor"], ["python", "-m", "other", "doctor"]),
        (["train.py", "doctor"], ["python", "train.py", "doctor"]),
        (["-m", "train.py", "doctor"], ["python", "-m", "msadapter", "train.py", "doctor"]),
    ):
        monkeypatch.setattr(sys, "argv", argv)
        monkeypatch.setattr(sys, "orig_argv", orig)
        commands.run_without_kernels()


@pytest.mark.parametrize("stated", ["2.9.0", None])
def test_another_version_of_mindspore_is_refused(monkeypatch, stated) -> None:
    """The version is that of the installed distribution, and unknown if there is none."""

    def version(name: str) -> str:
        assert name == "mindspore"
        if stated is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return stated

    monkeypatch.setattr(importlib.metadata, "version", version)
    with pytest.raises(
        native.BuildError, match=f"headers of mindspore 2.10.0, found {stated or 'unknown'}: "
    ):
        native._mindspore_root()
