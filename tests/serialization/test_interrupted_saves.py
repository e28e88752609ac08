"""Saves that are killed, or that the disk refuses: the old file stays, nothing else does, and the error names the file."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import msadapter as torch
from msadapter._serialization import files

ROOT = Path(__file__).resolve().parents[2]
KILLED = """
import os, signal, sys
import msadapter as torch
class Fatal:
    def __reduce__(self):
        {action}
        return complex, (1.0, 0.0)
torch.save([torch.zeros(1000), Fatal()], sys.argv[1])
"""


def _in_another_process(path, action, **options):
    command = [sys.executable, "-c", KILLED.format(action=action), str(path)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, **options)


def _parts(folder) -> list:
    return [name for name in os.listdir(folder) if name.endswith(".part")]


def test_what_a_killed_save_leaves_goes_at_the_next_one(tmp_path):
    process = _in_another_process(tmp_path / "a.pt", "os.kill(os.getpid(), signal.SIGKILL)")
    assert process.wait(60) == -signal.SIGKILL
    assert len(_parts(tmp_path)) == 1
    torch.save(torch.ones(2), tmp_path / "b.pt")  # another file of the same folder
    assert os.listdir(tmp_path) == ["b.pt"]


def test_a_save_that_goes_on_keeps_its_file(tmp_path):
    action = "print('here', flush=True); sys.stdin.readline()"
    process = _in_another_process(
        tmp_path / "a.pt", action, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "here\n" and len(_parts(tmp_path)) == 1
    torch.save(torch.ones(2), tmp_path / "a.pt")
    assert len(_parts(tmp_path)) == 1
    process.communicate("\n", timeout=60)
    assert process.returncode == 0 and os.listdir(tmp_path) == ["a.pt"]
    assert torch.load(tmp_path / "a.pt")[0].shape == (1000,)


def test_files_of_others_stay(tmp_path):
    names = ["a.part", ".a.pt.12345678.part", "torch-save.part", ".x.torch-save.part.txt"]
    for name in names:
        (tmp_path / name).write_bytes(b"mine")
    (tmp_path / "kept").write_bytes(b"mine")
    (tmp_path / ".link.torch-save.part").symlink_to(tmp_path / "kept")
    (tmp_path / ".folder.torch-save.part").mkdir()
    torch.save(torch.ones(2), tmp_path / "a.pt")
    assert set(os.listdir(tmp_path)) == {
        *names,
        "kept",
        "a.pt",
        ".link.torch-save.part",
        ".folder.torch-save.part",
    }


def test_a_long_name(tmp_path):
    torch.save(torch.ones(2), tmp_path / ("x" * 250))
    assert torch.load(tmp_path / ("x" * 250)).tolist() == [1, 1]


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    torch.save(torch.zeros(2), tmp_path / "a.pt")

    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        torch.save(torch.ones(2), tmp_path / "a.pt")
    assert caught.value.filename == str(tmp_path / "a.pt")
    assert os.listdir(tmp_path) == ["a.pt"] and torch.load(tmp_path / "a.pt").tolist() == [0, 0]


def test_a_folder_that_nobody_may_write_names_the_file(tmp_path, monkeypatch):
    def refused(**options):
        raise PermissionError(errno.EROFS, "Read-only file system", str(tmp_path / ".a.pt.x.torch-save.part"))

    monkeypatch.setattr(files.tempfile, "mkstemp", refused)
    with pytest.raises(OSError, match="Read-only") as caught:
        torch.save(torch.ones(2), tmp_path / "a.pt")
    assert caught.value.filename == str(tmp_path / "a.pt")


def test_a_device_without_space_names_itself():
    with pytest.raises(OSError) as caught:
        torch.save(torch.ones(2), "/dev/full")
    assert caught.value.filename == "/dev/full"
