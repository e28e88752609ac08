"""The command `status`: runs, and checkpoints that are damaged."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.recovery import manifest
from megatron_ms.status import checkpoints
from megatron_ms.training.folder import RunFolder


def archive(path: Path) -> None:
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("archive/data.pkl", b"x" * 100)


@pytest.fixture
def run(tmp_path, monkeypatch) -> RunFolder:
    """A run with a checkpoint of two parts."""
    monkeypatch.chdir(tmp_path)
    one = RunFolder(tmp_path / "runs/toy/20260101-000000")
    one.path.mkdir(parents=True)
    one.write_status(
        {"state": "done", "task": "sft", "iteration": 4, "iterations": 4, "started": 10, "ended": 15}
    )
    one.losses.write_text("".join(f'{{"iteration": {n}, "lm loss": {9 - n}}}\n' for n in range(1, 5)))
    (one.path / "config.yaml").write_text("parallel: {tensor: 2}\n")
    for part in range(2):
        archive(one.checkpoints / f"iter_0000004/mp_rank_{part:02}/model_optim_rng.pt")
    return one


def test_runs_and_their_losses(run, capsys) -> None:
    assert commands.main(["status", "--losses", "2"]) == 0
    out = capsys.readouterr().out
    assert "runs/toy/20260101-000000  done  sft  4/4  5 s\n  losses  3: 6.0000  4: 5.0000\n" in out
    assert "  checkpoint 4  torch  0.0 MB  complete\n" in out and out.endswith("with --verify.\n")


def test_the_runs_of_a_configuration(run, capsys) -> None:
    """As every other command takes it: the folder and the name of its runs are in the file, or on the command line."""
    Path("toy.yaml").write_text("train: {iterations: 4}\n")
    other = RunFolder(run.path.parents[1] / "other/20260103-000000")
    other.path.mkdir(parents=True)
    other.write_status({"state": "done", "iteration": 1, "iterations": 1})
    for words, shown in (
        (["toy.yaml"], {"toy"}),
        (["toy.yaml", "name=other"], {"other"}),
        (["toy.yaml", "--name", "*"], {"toy", "other"}),
        ([], {"toy", "other"}),
    ):
        assert commands.main(["status", *words]) == 0
        out = capsys.readouterr().out
        assert {name for name in ("toy", "other") if f"runs/{name}/" in out} == shown
    for words, said in (
        (["toy.yaml", "run.folder=nowhere"], "there is no folder nowhere: name the one of run.folder"),
        (["toy.yaml", "name=third"], "runs has no runs of the name third"),
        (["runs", "name=toy"], "name=toy: changes a configuration, and runs is none"),
    ):
        assert commands.main(["status", *words]) == 2
        assert said in capsys.readouterr().err


def test_a_damaged_run_does_not_hide_the_others(run, capsys) -> None:
    other = RunFolder(run.path.with_name("20260102-000000"))
    other.path.mkdir()
    other.write_status({"state": "done", "task": "sft", "iteration": 7, "iterations": 7})
    (run.path / "config.yaml").write_text("parallel: {tensor: [\n")
    assert commands.main(["status", "--report", "runs.html"]) == 0
    out = capsys.readouterr().out
    assert f"  {run.path / 'config.yaml'}, line " in out and "20260102-000000  done  sft  7/7" in out
    assert "20260102-000000" in Path("runs.html").read_text()


def damage_cut(place: Path) -> None:
    file = place / "mp_rank_01/model_optim_rng.pt"
    file.write_bytes(file.read_bytes()[:60])


def damage_part(place: Path) -> None:
    (place / "mp_rank_01/model_optim_rng.pt").unlink()
    (place / "mp_rank_01").rmdir()


def damage_file(place: Path) -> None:
    (place / "mp_rank_00/model_optim_rng.pt").unlink()


def damage_content(place: Path) -> None:
    (place / "mp_rank_00/model_optim_rng.pt").unlink()
    (place / "mp_rank_00").rmdir()
    (place / "mp_rank_00").mkdir()
    with zipfile.ZipFile(place / "mp_rank_00/model_optim_rng.pt", "w") as file:
        file.writestr("other", b"x")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (damage_cut, "mp_rank_01/model_optim_rng.pt is truncated"),
        (damage_part, "it has 1 of 2 parts"),
        (damage_file, "mp_rank_00/model_optim_rng.pt is missing"),
        (damage_content, "mp_rank_00/model_optim_rng.pt contains no tensors"),
    ],
)
def test_damaged_checkpoints(run, capsys, damage, message) -> None:
    damage(run.checkpoints / "iter_0000004")
    assert commands.main(["status"]) == 1
    assert message in capsys.readouterr().out


def test_the_distributed_format(tmp_path) -> None:
    place = tmp_path / "iter_0000002"
    place.mkdir()
    for name in (".metadata", "common.pt", "metadata.json", "__0_0.distcp"):
        (place / name).write_text("x")
    (one,) = checkpoints.of(tmp_path)
    assert (one.iteration, one.format, one.size, one.fault) == (2, "torch_dist", 4, "")
    (place / "__0_0.distcp").write_text("")
    assert checkpoints.of(tmp_path)[0].fault == "__0_0.distcp is empty"
    (place / ".metadata").unlink()
    assert checkpoints.of(tmp_path)[0].fault == ".metadata is missing"


@pytest.mark.parametrize(
    ("words", "message"),
    [(["none"], "no folder none"), (["."], "has no runs"), (["--name", "x"], "of the name x")],
)
def test_no_runs(run, capsys, words, message) -> None:
    assert commands.main(["status", *words]) == 2
    assert message in capsys.readouterr().err


def test_manifests_tell_of_unfinished_and_unhealthy_checkpoints(run, capsys) -> None:
    place = run.checkpoints / "iter_0000004"
    manifest.demand(run.checkpoints)
    assert checkpoints.of(run.checkpoints)[0].fault == "it was not finished (it has no manifest)"
    manifest.write(place, manifest.measure(place))
    assert checkpoints.of(run.checkpoints)[0].fault == ""
    manifest.write(place, manifest.measure(place), manifest.Health(False, ("loss 99 at iteration 3",)))
    run.write_status(run.status() | {"state": "failed", "reason": "rank 1 ended with signal SIGKILL"})
    assert commands.main(["status"]) == 1
    out = capsys.readouterr().out
    assert (
        "MB  it is unhealthy: loss 99 at iteration 3\n" in out
        and "  rank 1 ended with signal SIGKILL\n" in out
    )


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_verify_reads_the_content_of_checkpoints(run, capsys) -> None:
    place = run.checkpoints / "iter_0000004"
    manifest.demand(run.checkpoints)
    manifest.write(place, manifest.measure(place))
    assert commands.main(["status", "--verify"]) == 0
    out = capsys.readouterr().out
    assert "MB  whole\n" in out and "--verify" not in out
    flip(place / "mp_rank_01/model_optim_rng.pt")
    assert commands.main(["status"]) == 0  # sizes are right
    out = capsys.readouterr().out
    assert "whole" not in out and "MB  complete\n" in out and "Their content is checked with --verify." in out
    assert commands.main(["status", "--verify"]) == 1
    out = capsys.readouterr().out
    assert "MB  mp_rank_01/model_optim_rng.pt has another content than when it was saved\n" in out


def test_verify_says_what_it_cannot_verify(run, capsys) -> None:
    assert commands.main(["status", "--verify"]) == 1
    assert "its content cannot be verified, because it was saved without manifests" in capsys.readouterr().out
