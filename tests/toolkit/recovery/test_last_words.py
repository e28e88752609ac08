"""What ranks write after a failure, and what becomes a checkpoint."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from megatron_ms.monitor import events, outputs
from megatron_ms.recovery import last_parts, last_words, manifest
from megatron_ms.training import lines
from tests.megatron import lm_checkout as tools
from tests.megatron.faulty_runs import Run, Toy

PARTS = ["mp_rank_00", "mp_rank_01"]


def speak(disk: Path, rank: int, part: str, iteration: int, healthy: bool = True, **told) -> Path:
    """What a rank has written before its end. told: the numbers of the step, by file."""
    own = disk / last_parts.FOLDER / f"rank-{rank}"
    place = manifest.place_of(own, iteration)
    (place / part).mkdir(parents=True)
    (own / "parts.json").write_text(json.dumps({"part": part, "parts": PARTS, **told}))
    (place / part / "model.pt").write_bytes(f"{part} {iteration}".encode())
    manifest.write(place, manifest.measure(place), manifest.Health(healthy, () if healthy else ("loss 99",)))
    return place


def test_the_newest_step_with_all_parts_becomes_a_checkpoint(tmp_path: Path) -> None:
    """Ranks 0 and 2 have the first part, 1 and 3 the second. Rank 3 has come further, and rank 0 has failed."""
    speak(tmp_path, 2, PARTS[0], 6)
    speak(tmp_path, 1, PARTS[1], 6)
    speak(tmp_path, 3, PARTS[1], 7)
    manifest.demand(tmp_path)
    assert last_parts.put_together(tmp_path, tmp_path) == 6
    assert manifest.choose(tmp_path).iteration == 6 and (tmp_path / manifest.LATEST).read_text() == "6"
    files, health = manifest.read(manifest.place_of(tmp_path, 6))
    assert set(files) == {f"{part}/model.pt" for part in PARTS} and health.healthy
    assert not list(tmp_path.glob(".*")) and last_parts.put_together(tmp_path, tmp_path) is None


@pytest.mark.parametrize("damage", ["none", "unfinished", "unhealthy", "changed"])
def test_parts_that_are_not_whole_and_healthy_make_none(tmp_path: Path, damage: str) -> None:
    speak(tmp_path, 0, PARTS[0], 6)
    if damage != "none":
        place = speak(tmp_path, 1, PARTS[1], 6, healthy=damage != "unhealthy")
        if damage == "unfinished":
            (place / manifest.NAME).unlink()
        if damage == "changed":
            (place / PARTS[1] / "model.pt").write_bytes(b"mp_rank_01 7")
    assert last_parts.put_together(tmp_path, tmp_path) is None and not manifest.iterations(tmp_path)


def test_numbers_that_nobody_has_written_come_from_the_ranks_that_are_left(tmp_path: Path) -> None:
    """Rank 0 has recorded step 6, and the last rank has not printed it. The first stage does not know the loss."""
    for number, loss in ((5, 2.5), (6, 2.0)):
        events.write(tmp_path / outputs.MEASURED, {"iteration": number, "loss": loss})
    events.write(tmp_path / outputs.LOGGED, {"iteration": 5, "lm loss": 2.5})
    first, last = {"iteration": 6, "grad norm": 1.0}, {"iteration": 6, "grad norm": 1.0, "lm loss": 2.0}
    record = {"iteration": 6, "loss": 9.0}
    speak(tmp_path, 0, PARTS[0], 6, **{outputs.LOGGED: first, outputs.MEASURED: record})
    speak(tmp_path, 1, PARTS[1], 6, **{outputs.LOGGED: last, outputs.MEASURED: record})
    assert last_parts.put_together(tmp_path, tmp_path) == 6
    assert events.read(tmp_path, outputs.LOGGED) == [{"iteration": 5, "lm loss": 2.5}, last]
    assert [line["loss"] for line in events.read(tmp_path, outputs.MEASURED)] == [2.5, 2.0]


def test_numbers_have_the_digits_of_upstreams_log() -> None:
    text = " iteration        7/      12 | learning rate: 9.330127E-04 | lm loss: 5.188648E+00 | grad norm: 1.235 |"
    assert outputs.logged(7, 12, {"lm loss": 5.188648223876953}, 0.00093301270189, 1.2345678) == lines.record(
        text
    )


def test_an_older_step_than_that_on_the_disk_makes_none(tmp_path: Path) -> None:
    for rank, part in enumerate(PARTS):
        speak(tmp_path, rank, part, 6)
    place = manifest.place_of(tmp_path, 8)
    place.mkdir()
    (place / "common.pt").write_text("x")
    manifest.write(place, manifest.measure(place))
    assert last_parts.put_together(tmp_path, tmp_path) is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({}, ""),
        ({"save": None}, "the run writes no checkpoints"),
        ({"use_dist_ckpt": True, "ckpt_format": "torch_dist"}, "the ranks write the format torch_dist together"),
        ({"use_distributed_optimizer": True}, "the distributed optimizer divides its state among the ranks"),
        ({"fp8": "hybrid"}, "the scales of fp8 change in the forward pass"),
    ],
)  # fmt: skip
def test_trainings_whose_ranks_cannot_write_alone(given, why) -> None:
    assert last_words.against(SimpleNamespace(**{"save": "x", "ckpt_format": "torch", **given})) == why


@pytest.fixture(scope="module")
def toy(megatron_checkout: Path, tmp_path_factory) -> Toy:
    folder = tmp_path_factory.mktemp("words")
    return Toy(folder / "runs", tools.scratch_copy(megatron_checkout, folder))


@pytest.fixture(scope="module")
def base(toy):
    """The uninterrupted run with these words."""
    known: dict[tuple[str, ...], Run] = {}

    def whole(words: tuple[str, ...]) -> Run:
        if words not in known:
            run = toy.run(*words, name=f"base{len(known)}")
            assert run.code == 0, run.output[-3000:]
            known[words] = run
        return known[words]

    return whole


TENSORS = ("save.format=safetensors", "train.precision=bf16")
STAGES = ("parallel.pipeline=2",)
SHARDS = (
    "parallel.distributed_optimizer=true",
    "train.precision=bf16",
)  # upstream loads those of float32 wrongly


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "fault", "goes_on"),
    [
        ((), {"place": "all-reduce", "what": "kill", "rank": 0}, 6),
        ((), {"place": "forward", "what": "error"}, 6),
        ((), {"place": "optimizer", "what": "kill_after"}, 7),  # the rank that prints upstream's log
        ((), {"place": "optimizer", "what": "kill_after", "rank": 0}, 7),  # the rank that writes the records
        ((), {"place": "log", "what": "kill"}, 7),  # the others fail between two steps
        ((), {"place": "save", "what": "kill_opening", "rank": 0, "iteration": 8}, 8),
        (TENSORS, {"place": "all-reduce", "what": "kill", "rank": 0}, 6),
        (STAGES, {"place": "forward", "what": "error"}, 6),  # the rank with the error writes its part itself
        (STAGES, {"place": "forward", "what": "kill"}, 4),  # nobody else has it
        (SHARDS, {"place": "forward", "what": "kill"}, 4),
    ],
)
def test_the_ranks_that_are_left_lose_no_finished_step(toy, base, tmp_path, words, fault, goes_on) -> None:
    """The fault is in step 7, and checkpoints are written after every 4 steps."""
    lose_no_finished_step(toy, base(words), tmp_path, words, fault, goes_on)


@pytest.mark.slow
def test_the_same_with_a_newer_release(newer_megatron, tmp_path) -> None:
    """Its machine that runs steps again is on by default."""
    toy = Toy(tmp_path / "runs", tools.scratch_copy(newer_megatron, tmp_path))
    whole = toy.run(name="base")
    assert whole.code == 0, whole.output[-3000:]
    lose_no_finished_step(toy, whole, tmp_path, (), {"place": "all-reduce", "what": "kill"}, 6, ())


def lose_no_finished_step(toy, whole, tmp_path, words, fault, goes_on, logged=("lm loss",)) -> None:
    run = toy.run(*words, fault=fault, name=tmp_path.name)
    assert run.code == 0 and not run.left, run.output[-3000:]
    assert run.told("resume") == [f"goes on from checkpoint {goes_on}"], run.events
    assert run.curve() == whole.curve() and run.logged(*logged) == whole.logged(*logged)
    assert run.lost() == 6 - min(goes_on, 6)
    if words == SHARDS:  # each attempt says at its begin what a failure costs
        said = "after a failure the ranks that are left cannot write a checkpoint: the distributed optimizer divides its state"
        assert [text.startswith(said) for text in run.told("last words")] == [True, True], run.told(
            "last words"
        )
        assert "steps 5 to 6 are computed again (with recovery.memory=1" in run.told("restart")[0]
    assert not list((run.folder / "checkpoints").glob(".*")) and len(run.told("kept")) == (goes_on > 4)
