"""Manifests of checkpoints: what is finished, whole and healthy, and what is chosen."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
from pathlib import Path

import pytest

from megatron_ms.recovery import manifest

FILES = {
    "mp_rank_00/model_optim_rng.pt": b"weights" * 300,
    "mp_rank_01/model_optim_rng.pt": b"more" * 500,
    "common.pt": b"c" * 99,
}


def put(folder: Path, iteration: int, healthy: bool = True) -> Path:
    """A finished checkpoint."""
    place = manifest.place_of(folder, iteration)
    for name, content in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content + str(iteration).encode())
    health = manifest.Health(healthy, () if healthy else ("loss 99 at iteration 3",))
    manifest.write(place, manifest.measure(place), health)
    return place


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_the_newest_is_chosen(tmp_path) -> None:
    for number in (10, 20, 1234567890):
        put(tmp_path, number)
    (tmp_path / "iter_0000030.changed-1").mkdir()
    choice = manifest.choose(tmp_path)
    assert choice.iteration == 1234567890 and not choice.refused and not choice.said(tmp_path)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda place: flip(place / "common.pt"), "common.pt has another content than when it was saved"),
        (lambda place: os.truncate(place / "common.pt", 7), "common.pt has 7 of 101 bytes"),
        (lambda place: (place / "mp_rank_01/model_optim_rng.pt").unlink(), "mp_rank_01/model_optim_rng.pt is missing"),
        (lambda place: (place / "manifest.json").unlink(), "it was not finished (it has no manifest)"),
        (lambda place: flip(place / "manifest.json"), "its manifest is damaged"),
        (lambda place: (place / "manifest.json").write_text('{"files": {}}'), "its manifest is damaged"),
        (lambda place: (place / "manifest.json").write_text("[" * 100_000), "its manifest is damaged"),
    ],
)  # fmt: skip
def test_the_one_before_is_chosen_and_said_so(tmp_path, damage, said) -> None:
    put(tmp_path, 10)
    damage(put(tmp_path, 20))
    choice = manifest.choose(tmp_path)
    assert choice.iteration == 10 and list(choice.refused) == [(20, said)]
    assert choice.said(tmp_path) == [
        f"checkpoint 20 in {tmp_path} is not used: {said}",
        "the run goes on from checkpoint 10, the newest that is whole and healthy",
    ]


def test_an_unhealthy_one_is_not_chosen(tmp_path) -> None:
    put(tmp_path, 10)
    put(tmp_path, 20, healthy=False)
    assert manifest.choose(tmp_path).refused == [(20, "it is unhealthy: loss 99 at iteration 3")]


def test_nothing_whole_is_an_error_with_all_reasons(tmp_path) -> None:
    put(tmp_path, 10, healthy=False)
    manifest.place_of(tmp_path, 20).mkdir()
    with pytest.raises(
        manifest.NothingWhole,
        match="(?s)checkpoint 20: it was not.*checkpoint 10: it is unhealthy.*resume.load",
    ):
        manifest.choose(tmp_path)


def test_a_first_checkpoint_that_was_not_finished_means_a_new_beginning(tmp_path) -> None:
    manifest.place_of(tmp_path, 10).mkdir()
    choice = manifest.choose(tmp_path)
    assert choice.iteration is None and "begins anew" in choice.said(tmp_path)[-1]


@pytest.mark.parametrize("name", ["../outside", "/etc/passwd", "a/../../b"])
def test_a_manifest_names_only_files_of_its_checkpoint(tmp_path, name) -> None:
    place = put(tmp_path, 10)
    content = json.loads((place / "manifest.json").read_text())
    content["files"][name] = [1, "0" * 64]
    del content["sha256"]
    content["sha256"] = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    (place / "manifest.json").write_text(json.dumps(content))
    assert manifest.fault(place) == f"its manifest names a file outside of it: {name}"


def test_shares_are_all_files(tmp_path) -> None:
    place = put(tmp_path, 10)
    whole: manifest.Measured = {}
    for share in range(2):
        whole |= manifest.measure(place, share, 2)
    assert whole == manifest.measure(place) and set(whole) == set(FILES)
    flip(place / "common.pt")
    assert sorted(bool(manifest.fault(place, share, 3)) for share in range(3)) == [False, False, True]


def test_killed_at_random_bytes_nothing_corrupt_is_chosen(tmp_path) -> None:
    """A process that saves is killed by SIGKILL after so many bytes; what is chosen then has the bytes that were saved."""
    put(tmp_path, 10)
    chances = random.Random(11)
    whole = sum(map(len, FILES.values())) + 2 * len(FILES)
    chosen = {None: 0, 10: 0, 20: 0}
    for _ in range(40):
        end = chances.randrange(whole + 600)  # the manifest has some 500 bytes
        child = os.fork()
        if child == 0:
            _save_and_die(tmp_path, end)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in (0, -signal.SIGKILL)
        choice = manifest.choose(tmp_path)
        chosen[choice.iteration] += 1
        assert choice.iteration is not None
        place = manifest.place_of(tmp_path, choice.iteration)
        for name, content in FILES.items():
            assert (place / name).read_bytes() == content + str(choice.iteration).encode()
        _remove(manifest.place_of(tmp_path, 20))
    assert chosen[10] > 20 and chosen[20] > 0 and not chosen[None]


def _save_and_die(folder: Path, end: int) -> None:
    """Saves like upstream, byte by byte in part, and kills this process at the byte `end`."""
    left = end
    real = os.write

    def write(handle: int, content: bytes) -> None:
        nonlocal left
        if len(content) > left:
            real(handle, content[:left])
            os.kill(os.getpid(), signal.SIGKILL)
        left -= len(content)
        real(handle, content)

    place = manifest.place_of(folder, 20)
    for name, content in FILES.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(place / name, os.O_WRONLY | os.O_CREAT)
        write(handle, content + b"20")
    measured = manifest.measure(place)
    if left < 300:
        handle = os.open(place / f".{manifest.NAME}.1.part", os.O_WRONLY | os.O_CREAT)
        write(handle, b"{" * 300)
    manifest.write(place, measured)
    os._exit(0)


def _remove(place: Path) -> None:
    for file in sorted(place.rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    if place.is_dir():
        place.rmdir()
