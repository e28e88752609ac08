"""Checkpoints in memory, on one machine and on several, which have copies of their neighbours' files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from megatron_ms.recovery import copies, manifest, memory
from tests.distributed.ranks import torchrun

FILES = {number: {f"mp_rank_0{number}/model.pt": b"%d" % number * (100 + number)} for number in range(3)}
WHOLE = {name: content for files in FILES.values() for name, content in files.items()}


def put(folder: Path, iteration: int, files: dict[str, bytes], healthy: bool = True) -> Path:
    """A checkpoint in the memory of a machine that has these of the whole's files."""
    place, source = manifest.place_of(folder, iteration), folder.with_name(f"source-{iteration}")
    for name, content in WHOLE.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(content + b"%d" % iteration)
    for name in files:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes((source / name).read_bytes())
    place.mkdir(parents=True, exist_ok=True)
    health = manifest.Health(healthy, () if healthy else ("loss 99",))
    manifest.write(place, manifest.measure(source), health)
    return place


def machines(folder: Path, iteration: int) -> list[Path]:
    """Three machines, each with its own files and those of the one before."""
    places = [folder / f"memory-{number}" for number in range(3)]
    for number, place in enumerate(places):
        put(place, iteration, FILES[number] | FILES[(number - 1) % 3])
    return places


def test_one_machine_keeps_the_newest(tmp_path: Path) -> None:
    place, disk = tmp_path / "memory", tmp_path / "checkpoints"
    put(place, 6, WHOLE)
    put(place, 7, WHOLE)
    assert memory.keep(place, disk) == 7
    assert manifest.choose(disk).iteration == 7 and (disk / manifest.LATEST).read_text() == "7"
    assert memory.keep(place, disk) is None, "nothing is newer"


def test_a_damaged_or_unhealthy_one_is_not_kept(tmp_path: Path) -> None:
    place, disk = tmp_path / "memory", tmp_path / "checkpoints"
    put(place, 5, WHOLE)
    put(place, 6, WHOLE, healthy=False)
    damaged = put(place, 7, WHOLE) / next(iter(WHOLE))
    damaged.write_bytes(b"x" * damaged.stat().st_size)
    assert memory.keep(place, disk) == 5
    assert manifest.choose(disk).iteration == 5


@pytest.mark.parametrize("lost", range(3))
def test_two_of_three_machines_have_the_whole(tmp_path: Path, lost: int) -> None:
    places, disk = machines(tmp_path, 7), tmp_path / "checkpoints"
    left = [place for number, place in enumerate(places) if number != lost]
    assert [memory.keep(place, disk) for place in left] == [None, 7]
    assert not manifest.fault(manifest.place_of(disk, 7)) and manifest.choose(disk).iteration == 7
    assert [memory.keep(place, disk) for place in left] == [None, None]
    memory.discard(disk)
    assert not list(disk.glob(".*"))


def test_two_lost_machines_lose_a_part(tmp_path: Path) -> None:
    places, disk = machines(tmp_path, 7), tmp_path / "checkpoints"
    assert memory.keep(places[1], disk) is None and manifest.choose(disk).iteration is None
    memory.discard(disk)
    assert not any(disk.iterdir())


def test_machines_have_memories_of_their_own(tmp_path: Path) -> None:
    assert len({memory.place_for(tmp_path, number) for number in range(3)}) == 3
    assert memory.place_for(tmp_path) == memory.place_for(tmp_path, 0)


def test_large_files_go_in_pieces(monkeypatch) -> None:
    monkeypatch.setattr(copies, "_PIECE", 10)
    assert copies._pieces({"b": [25, ""], "a": [10, ""]}) == [
        ("a", 0, 10),
        ("b", 0, 10),
        ("b", 10, 10),
        ("b", 20, 5),
    ]


def test_the_launcher_says_which_machine_it_is(monkeypatch) -> None:
    for name, value in (
        ("GROUP_RANK", 2),
        ("GROUP_WORLD_SIZE", 3),
        ("LOCAL_RANK", 0),
        ("LOCAL_WORLD_SIZE", 8),
    ):
        monkeypatch.setenv(name, str(value))
    assert copies.here() == copies.Machine(2, 3, 0, 8) and copies.here().leads


def test_after_a_spike_the_machines_keep_the_last_healthy_one(tmp_path: Path) -> None:
    """Two machines with one rank each write 5, 6 and 7. Only rank 0 knows of the spike in 7."""
    words = [Path(__file__).with_name("machine_saves.py"), tmp_path, json.dumps({7: ["loss 99"]}), 5, 6, 7]
    done = torchrun("--nproc-per-node", 2, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    places = [tmp_path / "memory-0", tmp_path / "memory-1"]
    for place in places:
        assert manifest.iterations(place) == [6], "5 has been replaced, and 7 would never be used"
        files, health = manifest.read(manifest.place_of(place, 6))
        assert set(files) == {"mp_rank_00/model.pt", "mp_rank_01/model.pt"} and health.healthy
    disk = tmp_path / "checkpoints"
    assert 6 in [memory.keep(place, disk) for place in places]
    assert manifest.choose(disk).iteration == 6


def test_what_machines_gather_keeps_its_health(tmp_path: Path) -> None:
    source, target = (
        put(tmp_path / "memory", 7, WHOLE, healthy=False),
        tmp_path / "checkpoints" / "iter_0000007",
    )
    files, health = manifest.read(source)
    assert memory._gather(source, files, health, target)
    assert manifest.read(target)[1] == manifest.Health(False, ("loss 99",))
