"""The scenario mm without MindSpeed-MM: small repositories in its place, its job, and the files of its toy task."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from megatron_ms.convert import __main__ as command
from megatron_ms.convert import environment, mm_job, packages, scenario, shell, sources, upstream
from megatron_ms.convert.steps import ConvertError, Progress
from megatron_ms.examples import vision_questions
from patches import PatchError, discover
from tests.convert.test_scenarios import FILES, commit

PROJECT = '[project]\nname = "mindspeed-mm"\nversion = "0.1"\n'
TREES = FILES | {"MindSpeed-MM": {"pyproject.toml": PROJECT, "pretrain_vlm.py": "print(1)\n"}}


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> scenario.Run:
    """The scenario with three small repositories at fixed commits."""
    for module in (environment, upstream):
        monkeypatch.setattr(module, "PYTHON", Path(sys.executable))
    (release,) = sources.SCENARIOS["mm"]
    pins = []
    for source in release.sources:
        folder = tmp_path / "git" / source.name
        made = commit(folder, TREES[source.name], "pinned")
        pins.append(replace(source, url=str(folder), ref="pinned", commit=made))
    monkeypatch.setitem(sources.SCENARIOS, "mm", (replace(release, sources=tuple(pins)),))
    output = tmp_path / "build"
    output.mkdir()
    return scenario.Run("mm", output, output / "sources", {})


def test_converted_locked_and_listed(work: scenario.Run) -> None:
    scenario.fetch_all(work, Progress("test", live=False))
    assert scenario.convert_all(work, work.output / "logs", Progress("test", live=False)) is True
    assert scenario.check(work) == []
    taken = json.loads((work.home / "lock.json").read_text())["sources"]["MindSpeed-MM"]
    assert (taken["version"], taken["rules"], taken["files"]) == ("0.1", [], 2)
    trees = [work.tree(source) for source in reversed(work.sources)]
    env = shell.write_env(work.home, trees, device="npu", torch=shell.TORCH_OF_MINDSPEED)
    shell.record(work.home, "26.1.0", {source.name: work.tree(source) for source in work.sources})
    printed = subprocess.run(
        ["bash", "-c", f'. {env} && echo "$MINDSPEED_MM"'], capture_output=True, text=True, check=True
    )
    assert printed.stdout.strip() == str(work.home / "MindSpeed-MM")
    assert "MindSpeed-MM 0.1, 0 rules" in "\n".join(shell.listed(work.output))


def test_a_checkout_is_taken_and_another_refused(work: scenario.Run, tmp_path: Path) -> None:
    folder = tmp_path / "git/MindSpeed-MM"
    args = command.parse_args(["mm", "--source", f"MindSpeed-MM={folder}"])
    found = sources.parse_locals(args.source, args.scenario)
    assert found == {"MindSpeed-MM": folder}
    scenario.check_checkouts(replace(work, checkouts=found))
    wrong = replace(work, checkouts={"MindSpeed-MM": tmp_path / "git/MindSpeed"})
    with pytest.raises(ConvertError, match="is not a mindspeed_mm source tree: it has no pyproject.toml"):
        scenario.check_checkouts(wrong)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[project", "is no TOML"),
        ('[project]\nname = "other"\nversion = "0.1"\n', "not that of mindspeed-mm"),
        ('[project]\nname = "mindspeed-mm"\n', "states no version"),
        (PROJECT.replace("0.1", "0.2"), "0.2"),
    ],
)
def test_versions_that_are_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(PatchError, match=told):
        discover("mindspeed_mm")[0].version_of(tmp_path)


def test_packages_are_pinned_once_each() -> None:
    pins = packages.pins(sources.release_of("mm"))
    names = [pin.split("==")[0].lower().replace("_", "-") for pin in pins]
    assert len(set(names)) == len(names) and all(pin.count("==") == 1 for pin in pins)
    assert {"transformers", "peft", "torchvision", "diffusers", "jsonargparse"} <= set(names)


def test_losses_of_a_log(tmp_path: Path) -> None:
    """A training that was stopped after iteration 2 and went on. The later lines count."""
    work = scenario.Run("mm", tmp_path, tmp_path / "sources", {})
    place = mm_job.folder_of(work)
    place.mkdir()
    line = " [2026-01-01 00:00:00] iteration {:8d}/      40 | consumed samples: 8 | loss: {:.6E} | loss scale: 1.0 |\n"
    (place / "log.txt").write_text("noise\n" + line.format(1, 13.0))
    with pytest.raises(ConvertError, match="left no losses"):
        mm_job.losses(work)
    (place / "log.txt").write_text("".join(line.format(*row) for row in ((1, 13.0), (2, 9.0), (2, 8.0))))
    assert mm_job.losses(work) == (13.0, 8.0)


def test_the_script_says_what_it_needs() -> None:
    def run(*words: str, **names: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", mm_job.SCRIPT, *words],
            env={"PATH": "/usr/bin:/bin", **names},
            capture_output=True,
            text=True,
        )

    assert run().returncode == 2
    told = run("folder")
    assert told.returncode != 0 and "MINDSPEED_MM: is not set: source the env.sh" in told.stderr
    told = run("folder", MINDSPEED_MM="/nowhere", PARALLEL="layers")
    assert told.returncode == 2 and "must be data or tensor" in told.stderr


def test_the_toy_has_the_ids_of_qwen() -> None:
    """MindSpeed-MM has 151655 and 151652 in its code."""
    model = vision_questions.model_of_megatron()
    assert (model["img_context_token_id"], model["vision_start_token_id"]) == (151655, 151652)
    assert model["text_decoder"]["vocab_size"] == vision_questions.WORDS > 151656


def test_the_same_pictures_and_questions_each_time(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        vision_questions._write_images(tmp_path / name)
    rows = json.loads((tmp_path / "one/questions.json").read_text())
    assert len(rows) == 8 and len({row["messages"][1]["content"] for row in rows}) == 8
    for row in rows:
        (name,) = row["images"]
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
