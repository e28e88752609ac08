"""The scenario llm without training: its log, the checks of its script, and its folders."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from megatron_ms.convert import llm_job, scenario
from megatron_ms.examples import plot_log

_LINE = (
    " [2026-01-01 00:00:00] iteration {n:8d}/     100 | consumed samples:          {n} | elapsed time per iteration (ms): 7.1 |"
    " learning rate: 1.0E-03 | lm loss: {loss:.6E} | loss scale: 1.0 | grad norm: {norm:.3f} | number of skipped"
)


def test_the_curve_of_a_log(tmp_path: Path, capsys) -> None:
    """A run stopped at step 20 and continued from 10. The later lines of the log count."""
    log = tmp_path / "log.txt"
    lines = [
        _LINE.format(n=n, loss=loss, norm=1.5) for n, loss in ((10, 7.0), (20, 6.5), (20, 6.25), (30, 5.0))
    ]
    check = " validation loss at iteration 30 on validation set | lm loss value: 5.500000E+00 | lm loss PPL: 2.4E+02 | "
    log.write_text("\n".join(["noise", *lines, check]))
    assert plot_log.main([str(log), "--save", str(tmp_path / "out")]) == 0
    assert "loss 7.0000 at iteration 10, 5.0000 at 30" in capsys.readouterr().out
    found = json.loads((tmp_path / "out/losses.json").read_text())
    assert [step["loss"] for step in found["iterations"]] == [7.0, 6.25, 5.0]
    assert found["iterations"][0] == {"iteration": 10, "loss": 7.0, "grad_norm": 1.5}
    assert found["validation"] == [{"iteration": 30, "loss": 5.5}]
    assert (tmp_path / "out/loss.png").read_bytes().startswith(b"\x89PNG")


def test_a_log_without_losses(tmp_path: Path, capsys) -> None:
    assert plot_log.main([str(tmp_path / "none"), "--save", str(tmp_path / "out")]) == 1
    (tmp_path / "log").write_text("nothing\n")
    assert plot_log.main([str(tmp_path / "log"), "--save", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert "No such file" in told and "no line with an iteration" in told
    assert not (tmp_path / "out").exists()


def test_the_script_says_what_it_needs() -> None:
    def run(*words: str, **names: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["bash", llm_job.SCRIPT, *words],
            env={"PATH": "/usr/bin:/bin", **names},
            capture_output=True,
            text=True,
        )

    assert run("one").returncode == 2
    told = run("prefix", "save")
    assert told.returncode != 0 and "MINDSPEED_LLM: is not set: source the env.sh" in told.stderr


def test_places_of_a_scenario(tmp_path: Path) -> None:
    work = scenario.Run("llm", tmp_path, tmp_path / "sources", {})
    assert llm_job.megatron_of(work) == tmp_path / "llm/Megatron-LM"
    assert llm_job.folder_of(work) == tmp_path / "train-llm"
