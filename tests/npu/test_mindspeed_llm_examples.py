"""The example scripts of MindSpeed-LLM 26.1.0, with toy sizes: every kind of model trains, and faster flags change no loss.

Needs what test_mindspeed_llm.py needs, with MindSpeed-LLM v26.1.0.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.npu import llm_examples, llm_measured
from tests.npu.llm_trainer import Trainer


@pytest.mark.slow
@pytest.mark.parametrize("name", llm_examples.SCRIPTS)
def test_the_faster_flags_of_a_script_change_no_loss(
    trainer: Trainer, name: str, tmp_path: Path, record_property
) -> None:
    script = trainer.script.parent / "examples/mcore" / name
    if not script.is_file():
        pytest.skip(f"MindSpeed-LLM {trainer.release} has no example {name}")
    record_property("row", llm_examples.row_of(name))
    record_property("release", trainer.release)
    program, flags = llm_examples.of_script(script, tmp_path)
    toy = llm_examples.small(flags)
    assert set(toy) == llm_examples.recorded()[name], "run python -m tests.npu.llm_examples"
    fast = trainer.train(1, llm_examples.words(toy), program)
    slow = trainer.train(1, llm_examples.words(llm_examples.slower(toy)), program)
    assert len(set(fast.losses)) == len(fast.losses), "nothing was learned"
    assert sum(slow.operators.values()) < sum(fast.operators.values()), "both used the same fused operators"
    differences = [abs(a - b) for a, b in zip(fast.losses, slow.losses, strict=True)]
    record_property("largest_difference", max(differences))
    first, next_ones = llm_examples.limits(toy)
    of_a_step = len(differences) // 3
    assert max(differences[:of_a_step]) <= first, (fast.losses, slow.losses)
    assert max(differences[of_a_step:]) <= next_ones, (fast.losses, slow.losses)


def test_a_script_gives_its_flags(tmp_path: Path) -> None:
    """The variables of the script are filled in, a flag given twice has its last value, and paths are left out."""
    script = tmp_path / "train.sh"
    script.write_text(
        'TP=8\nARGS="--num-layers 80 --tensor-model-parallel-size ${TP} --swiglu --load x"\n'
        "torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS --lr 1 --num-layers 40 | tee logs/a.log\n"
    )
    program, flags = llm_examples.of_script(script, tmp_path / "work")
    assert program == "pretrain_gpt.py"
    assert flags["--tensor-model-parallel-size"] == ["8"] and flags["--num-layers"] == ["40"]
    toy = llm_examples.small(flags)
    assert toy["--num-layers"] == ["2"] and toy["--lr"] == ["1e-3"] and toy["--swiglu"] == []
    assert not {"--load", "--tensor-model-parallel-size"} & toy.keys()


def test_results_of_pytest_change_the_table(tmp_path: Path) -> None:
    case = (
        '<testcase><properties><property name="{0}" value="{1}"/><property name="release" value="26.1.0"/>{2}'
        "</properties>{3}</testcase>"
    )
    value = '<property name="largest_difference" value="{}"/>'
    cases = (
        case.format("row", "one", value.format(2.5e-7), "")
        + case.format("row", "two", "", "<failure/>")
        + case.format("row", "three", "", "<skipped/>")
    )
    file = tmp_path / "results.xml"
    file.write_text(
        f'<testsuites><testsuite timestamp="2026-01-02T03:04:05">{cases}</testsuite></testsuites>'
    )
    passed, failed = llm_measured.results(file)
    known = [
        llm_measured.Measured("26.1.0", name, "1.0e-06", "2025-12-31") for name in ("one", "two", "three")
    ]
    found = {row.row: row for row in llm_measured.merged(known, passed, failed)}
    assert found.keys() == {"one", "three"}
    assert (found["one"].difference, found["one"].day) == ("2.5e-07", "2026-01-02")
    assert found["three"] is known[2]
