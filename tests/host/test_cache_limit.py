"""The cache of built libraries has a largest size, and nothing that is in use or of the user is removed from it."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from msadapter._host import cache, cache_limit, doctor, native

ROOT = Path(__file__).resolve().parents[2]
DAY = 86400.0


def key(letter: str) -> str:
    return letter * 20


def made(path: Path, size: int, days: float) -> Path:
    """A file of the cache that was used so many days ago."""
    cache.make_folder(path.parent)
    path.write_bytes(b"x" * size)
    _age(path, days)
    return path


def _age(path: Path, days: float) -> None:
    then = time.time() - days * DAY
    os.utime(path, (then, then))


def made_build(root: Path, letter: str, size: int, days: float) -> Path:
    """A folder of libraries that was loaded so many days ago."""
    folder = root / key(letter)
    for name in ("_C.so", "_C.so.json", "used"):
        made(folder / name, size if name == "_C.so" else 0, days)
    _age(folder, days)
    return folder


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own cache of at most 1000 bytes, which this user alone may write."""
    root = tmp_path / "cache"
    cache.make_folder(root)
    monkeypatch.setenv("MSADAPTER_CACHE", str(root))
    monkeypatch.setenv(cache_limit.VARIABLE, "1e-6")
    return root


def test_what_was_used_least_recently_goes_first(root) -> None:
    old, new = made_build(root, "a", 300, 30), made_build(root, "b", 300, 10)
    objects = [
        made(root / f"objects/unit-{key(letter)}.o", 300, days) for letter, days in (("1", 20), ("2", 5))
    ]
    for place in objects:
        made(place.with_name(place.name + ".sha256"), 64, 40)
    headers = made(root / "objects/pch-O2-0123456789abcdef/all.h.gch", 300, 25).parent
    _age(headers, 25)
    assert sum(entry.size for entry in cache_limit.entries(root)) == 1500
    assert cache_limit.prune(root) == [old, headers]  # 900 bytes are left
    assert cache_limit.prune(root) == []
    assert new.exists() and all(place.exists() for place in objects)
    made_build(root, "c", 300, 2)
    assert cache_limit.prune(root) == [objects[0]]
    assert sorted(os.listdir(root / "objects")) == [objects[1].name, objects[1].name + ".sha256"]


def test_what_a_process_has_loaded_stays(root) -> None:
    folder = made_build(root, "a", 5000, 30)
    program = (  # the files alone: importing the package would build the libraries in this cache
        "import importlib.util, sys; from pathlib import Path\n"
        "spec = importlib.util.spec_from_file_location('host', sys.argv[2], submodule_search_locations=[sys.argv[3]])\n"
        "sys.modules['host'] = importlib.util.module_from_spec(spec); spec.loader.exec_module(sys.modules['host'])\n"
        "from host import cache_limit\n"
        "cache_limit.hold(Path(sys.argv[1]), Path(sys.argv[1]) / '_C.so')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    host = Path(cache_limit.__file__).parent
    words = [sys.executable, "-c", program, str(folder), str(host / "__init__.py"), str(host)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        assert time.time() - (folder / "used").stat().st_mtime < DAY  # it was noted as used
        _age(folder / "used", 30)
        assert cache_limit.prune(root) == [] and folder.exists()
        process.stdin.close()
        assert process.wait(60) == 0
    assert cache_limit.prune(root) == [folder] and os.listdir(root) == []


def test_a_folder_that_goes_while_it_is_taken_is_built_again(root, monkeypatch) -> None:
    """A process finds a library whole. Before it holds the folder, another build removes it."""
    folder, built = made_build(root, "a", 5000, 30), []

    def build(verbose: bool = False) -> Path:
        if not built:
            cache_limit.prune(root)
            assert not folder.exists()
        else:
            made_build(root, "a", 5000, 0)
        built.append(1)
        return folder / "_C.so"

    monkeypatch.setattr(native, "build", build)
    assert native._built_and_held() == folder / "_C.so" and len(built) == 2
    _age(folder / "used", 30)
    assert cache_limit.prune(root) == []  # now this process holds it


def test_a_lock_of_a_folder_that_was_built_again_does_not_count(root, monkeypatch) -> None:
    """Another process asks for the lock while the removal has it. When it gets the lock, there is a new folder."""
    folder = made_build(root, "a", 10, 30)
    plain = cache_limit.fcntl.flock

    def flock(handle, how) -> None:
        os.rename(folder, root / "elsewhere")
        made_build(root, "a", 10, 0)
        plain(handle, how)

    monkeypatch.setattr(cache_limit.fcntl, "flock", flock)
    with pytest.raises(FileNotFoundError, match="removed and built again"):
        cache_limit.hold(folder, folder / "_C.so")


def test_what_was_used_within_the_hour_stays(root) -> None:
    made_build(root, "a", 5000, 0.01)
    made(root / f"objects/unit-{key('1')}.o", 5000, 0.01)
    made(root / "objects/unit-1.77.part", 5000, 0.01)
    assert cache_limit.prune(root) == []


def test_what_killed_builds_leave_goes_whatever_the_limit_is(root, monkeypatch) -> None:
    monkeypatch.setenv(cache_limit.VARIABLE, "inf")
    made(root / f"objects/unit-{key('1')}.o", 5000, 30)
    parts = [
        made(root / f"objects/unit-{key('1')}.77.part", 5, 1),
        made(root / "work.abc/operators_0.cpp", 5, 1).parent,
        made(root / f"gone.{key('a')}.77/_C.so", 5, 1).parent,
    ]
    for place in parts[1:]:
        _age(place, 1)
    assert sorted(cache_limit.prune(root)) == sorted(parts)
    assert sorted(os.listdir(root)) == ["objects"] and len(os.listdir(root / "objects")) == 1


def test_what_is_not_ours_is_neither_counted_nor_removed(root, tmp_path) -> None:
    """Whoever names a folder of his own as the cache keeps what is in it."""
    mine = [
        made(root / name, 5000, 90)
        for name in (
            "thesis.txt",
            f"unit-{key('1')}.o",
            "objects/notes.o",
            "objects/pch-mine/all.h",
            f"{key('a')}/notes.txt",
            "notes/_C.so",
        )
    ]
    (root / key("b")).symlink_to(tmp_path)
    (root / f"objects/unit-{key('2')}.o").symlink_to(mine[0])
    assert cache_limit.entries(root) == [] and cache_limit.prune(root) == []
    assert all(path.exists() for path in mine) and (root / key("b")).is_symlink()


def test_a_removal_that_fails_is_no_failure_of_the_build(root, monkeypatch) -> None:
    made_build(root, "a", 5000, 30)

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(cache_limit.os, "rename", refused)
    assert cache_limit.prune(root) == []
    assert cache_limit.prune(root / "absent") == []


@pytest.mark.parametrize("text", ["much", "-1", "nan", "4GB"])
def test_a_limit_that_is_no_number(root, monkeypatch, text) -> None:
    monkeypatch.setenv(cache_limit.VARIABLE, text)
    with pytest.raises(native.BuildError, match=rf"MSADAPTER_CACHE_LIMIT must be a number of GB.*{text}"):
        cache_limit.prune(root)
    (line,) = doctor._cache()
    assert line.wrong and "MSADAPTER_CACHE_LIMIT" in line.fix


def test_the_doctor_tells_the_size(root, monkeypatch) -> None:
    monkeypatch.setenv(cache_limit.VARIABLE, "2.5")
    made_build(root, "a", 0, 1)
    os.truncate(root / key("a") / "_C.so", 1_600_000_000)  # it has no blocks, only a size
    (line,) = doctor._cache()
    assert line.value == f"{root}: 1.6 GB, at most 2.5 GB after a build (MSADAPTER_CACHE_LIMIT)"


def test_a_build_prunes_and_keeps_what_it_uses(root, monkeypatch) -> None:
    monkeypatch.setattr(native, "compiler", lambda: "/bin/true")
    monkeypatch.setattr(native, "library_path", lambda: root / key("c") / "_C.so")

    def compiled(command, source, verbose) -> None:
        Path(command[command.index("-o") + 1]).write_bytes(b"x" * 2000)

    source = root.parent / "unit.cpp"
    source.write_text("int x;")
    monkeypatch.setattr(native, "_compile", compiled)
    monkeypatch.setattr(
        native, "_extension_objects", lambda one, work: [one._cached("unit", ".o", source, [], b"content")]
    )
    library = native.build()
    (first,) = (root / "objects").glob("*.o")
    for place in (first, library, library.parent):
        _age(place, 30)
    monkeypatch.setattr(native, "library_path", lambda: root / key("d") / "_C.so")
    native.build()
    assert first.exists() and not library.parent.exists()  # the same object was used again


def test_two_builds_at_once_remove_nothing_of_each_other(root, monkeypatch) -> None:
    """While one build links, another waits for the lock; each finds its own library afterwards."""
    made_build(root, "a", 5000, 30)
    names = iter("cd")
    local = threading.local()

    def path() -> Path:
        local.name = getattr(local, "name", None) or next(names)
        return root / key(local.name) / "_C.so"

    monkeypatch.setattr(native, "compiler", lambda: "/bin/true")
    monkeypatch.setattr(native, "library_path", path)
    monkeypatch.setattr(native, "_extension_objects", lambda one, work: [])
    monkeypatch.setattr(
        native, "_compile", lambda command, *_: Path(command[command.index("-o") + 1]).write_bytes(b"x" * 900)
    )
    built = []
    threads = [threading.Thread(target=lambda: built.append(native.build())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(built) == 2 and all(path.exists() for path in built)
    assert not (root / key("a")).exists()


def test_loading_holds_the_folder() -> None:
    """The process of this test has loaded the library, so its folder cannot be taken."""
    library = Path(importlib.import_module("msadapter._C").__file__)
    if os.environ.get("MSADAPTER_LIBRARY"):
        pytest.skip("a library that the user names is not in the cache")
    entry = cache_limit.Entry(library.parent, 0, 0.0)
    with cache_limit._alone_in(entry) as alone:
        assert not alone
