"""Reading the trainer's lines."""

from __future__ import annotations

import pytest

from megatron_ms.training import lines

ITERATION = (
    " [2026-11-23 06:28:08] iteration        3/       4 | consumed samples:           24 | elapsed time per iteration (ms):"
    " 1466.5 | learning rate: 1.464466E-04 | global batch size:     8 | lm loss: 8.319577E+00 | loss scale: 1.0 | grad norm:"
    " 0.855 | number of skipped iterations:   0 | number of nan iterations:   0 |"
)


def test_an_iteration() -> None:
    found = lines.record(ITERATION)
    assert found is not None
    assert (found["iteration"], found["of"], found["milliseconds"], found["grad norm"]) == (
        3,
        4,
        1466.5,
        0.855,
    )
    assert lines.loss_of(found) == 8.319577


def test_a_skipped_iteration_has_no_loss() -> None:
    found = lines.record(ITERATION.replace("lm loss: 8.319577E+00 | ", ""))
    assert found is not None and lines.loss_of(found) is None


def test_a_validation() -> None:
    text = " validation loss at iteration 20 on validation set | lm loss value: 7.25E+00 | lm loss PPL: 1.40E+03 | "
    assert lines.record(text) == {
        "iteration": 20,
        "set": "validation",
        "lm loss value": 7.25,
        "lm loss PPL": 1400.0,
    }


def test_a_record_of_our_own_program() -> None:
    """Also behind a progress bar, which ends without a line's end."""
    found = lines.record('  50%|# | record: {"iteration": 1, "of": 4, "loss": 2.5, "learning_rate": 0.01}')
    assert found == {"iteration": 1, "of": 4, "loss": 2.5, "learning rate": 0.01}


def test_other_lines() -> None:
    assert lines.record("  successfully saved checkpoint from iteration 3 to x") is None


def test_the_reason_of_a_failure() -> None:
    """The last traceback with its error, without what the launcher says afterwards."""
    text = [
        "start",
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "ValueError: bad",
        "rank 0 ended with 1",
    ]
    assert lines.last_errors(text) == text[1:4]
    between = [
        *text[:3],
        "ERROR:root:the other process has gone",
        "    main()",
        "RuntimeError: sizes differ",
        "end",
    ]
    assert lines.last_errors(between) == between[1:6]
    several = [*text[:3], "RuntimeError: names differ:", "\tmissing: a", "end"]
    assert lines.last_errors(several) == several[1:5]
    assert lines.last_errors(["a", "error: unknown flag", "b"]) == ["error: unknown flag"]
    assert lines.last_errors(["a", "", "b"], 1) == ["b"]


def test_a_rank_that_only_waited_is_not_the_reason() -> None:
    cause = [
        "Traceback (most recent call last):",
        '  File "a.py", line 1',
        "ModuleNotFoundError: No module named 'x'",
    ]
    waited = [
        *cause[:2],
        "msadapter.distributed.errors.DistBackendError: [Rank 1] BARRIER(SeqNum=3) in process group '0' of ranks [0, 1] cannot end:"
        " the processes of ranks [0] have ended.",
    ]
    assert lines.last_errors([*cause, *waited, "rank 0 ended"]) == cause
    assert lines.last_errors([*waited, "rank 0 ended"]) == waited


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("AssertionError: OptimizerParamScheduler: class input value 48 and checkpointvalue 32 for total number of iterations do"
         " not match", "resume.schedule=new"),
        ("AssertionError: Megatron requires CUDA.", "run.device=cuda"),
        ("    assert param.grad.type() == 'torch.cuda.FloatTensor'", "run.device=cuda"),
        ("ModuleNotFoundError: No module named 'megatron.core.datasets.helpers_cpp'", "auto_convert.sh core --source"),
    ],
)  # fmt: skip
def test_advice_for_errors_of_upstream(line, key) -> None:
    (said,) = lines.advice(["begin", line, line])
    assert key in said
    assert lines.advice(["begin", "ValueError: other"]) == []
