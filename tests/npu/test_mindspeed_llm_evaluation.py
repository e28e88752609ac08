"""evaluation.py of MindSpeed-LLM, unmodified, on a few questions of each benchmark's kind, with a model that repeats one answer.

Needs what test_mindspeed_llm_tools.py needs. The share of right answers then follows from the questions alone. Two parts of
evaluation.py are left out: needlebench, which draws its texts from data sets that are downloaded, and mmlu_ppl (see below).
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.npu.llm_trainer import ROOT, Trainer

_WORDS = ["Yes", "No", "A", "B", "C", "D", *map(str, range(10))]
_TOKENIZER = f"""
import json, sys, torch
from pathlib import Path
from tokenizers import Tokenizer, models, pre_tokenizers
folder = Path(sys.argv[1])
words = {{"<unk>": 0, "<end>": 1}} | {{word: place for place, word in enumerate({_WORDS}, 2)}}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer.add_special_tokens(["<end>"])
tokenizer.save(str(folder / "tokenizer.json"))
(folder / "tokenizer_config.json").write_text(
    json.dumps({{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>", "unk_token": "<unk>"}}))
"""
_FLAGS = """--use-mcore-models --transformer-impl local --num-layers 1 --hidden-size 32 --num-attention-heads 4
    --ffn-hidden-size 64 --untie-embeddings-and-output-weights --max-position-embeddings 4096 --seq-length 4096
    --make-vocab-size-divisible-by 1 --padded-vocab-size 64 --swiglu --micro-batch-size 1 --disable-bias-linear
    --tokenizer-type PretrainedFromHF --tokenizer-name-or-path words --tokenizer-not-use-fast --normalization RMSNorm
    --position-embedding-type rope --hidden-dropout 0 --attention-dropout 0 --no-gradient-accumulation-fusion
    --attention-softmax-in-fp32 --max-new-tokens 1 --task mmlu --no-chat-template"""
#: The right answers of the questions with four options: three quarters are A, one quarter is B.
_RIGHT = ["A", "B", "A", "A"]


def _table(file: Path, head: list[str], number: bool = False) -> None:
    """A file of questions with four options, as MMLU (without a head), CMMLU and C-Eval have them."""
    file.parent.mkdir(parents=True)
    with file.open("w", newline="", encoding="utf-8") as place:
        rows = csv.writer(place)
        if head:
            rows.writerow(head)
        for index, right in enumerate(_RIGHT):
            rows.writerow([*([index] if number else []), f"What is {index}?", 1, 2, 3, 4, right])


def _lines(file: Path, rows: list[dict]) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _function(number: int, value: int) -> dict:
    """A task of HumanEval whose function is complete; it passes its test if the value is 1."""
    name = f"f{number}"
    return {
        "task_id": f"HumanEval/{number}",
        "entry_point": name,
        "prompt": f"def {name}():\n    return {value}\n",
        "test": f"def check(candidate):\n    assert {name}() == 1\n",
    }


@pytest.fixture(scope="module")
def scores(trainer: Trainer, tmp_path_factory) -> dict[str, dict[str, float]]:
    if trainer.release < "26":
        pytest.skip("only tried with MindSpeed-LLM 26.1.0")
    folder = tmp_path_factory.mktemp("evaluation")
    options = ["question", "A", "B", "C", "D", "answer"]
    _table(folder / "mmlu/abstract_algebra_test.csv", [])
    _table(folder / "cmmlu/philosophy.csv", options)
    _table(folder / "ceval/accountant_val.csv", ["id", *options], number=True)
    letters = ["(A)1", "(B)2", "(C)3", "(D)4"]
    asked = {"passage": None, "question": "Which?", "options": letters, "answer": None}
    _lines(folder / "agi_eval/aqua-rat.jsonl", [asked | {"label": right} for right in _RIGHT])
    examples = [{"input": f"What is {n}?", "target": f"({right})"} for n, right in enumerate(_RIGHT)]
    (folder / "bbh_eval").mkdir()
    (folder / "bbh_eval/date_understanding.json").write_text(json.dumps({"examples": examples}))
    passages = [{"title": "a", "passage": "b", "question": "c", "answer": n != 2} for n in range(4)]
    _lines(folder / "boolq/dev.jsonl", passages)
    sums = [{"question": f"Sum {n}?", "answer": f"So it is #### {7 if n == 1 else 5}"} for n in range(4)]
    _lines(folder / "gsm8k/test.jsonl", sums)
    _lines(folder / "human_eval/tasks.jsonl", [_function(0, 1), _function(1, 2)])
    (folder / "words").mkdir()
    words = [sys.executable, "-c", f"import torch\n{_TOKENIZER}", folder / "words"]
    subprocess.run([str(word) for word in words], env=trainer.environment, check=True)
    launcher = [ROOT / "msadapter/distributed/_torchrun.py", "--standalone", "--nproc-per-node", 1]
    job = [ROOT / "tests/npu/jobs/evaluate.py", trainer.script.with_name("evaluation.py"), folder]
    run = subprocess.run(
        [str(word) for word in [sys.executable, *launcher, *job, *_FLAGS.split()]],
        cwd=folder, env=trainer.environment, capture_output=True, text=True, timeout=900,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    (folder / "log").write_text(run.stdout + run.stderr)
    return json.loads(re.findall(r"^found (.*)$", run.stdout, re.MULTILINE)[0])


@pytest.mark.slow
@pytest.mark.parametrize("task", ["mmlu", "cmmlu", "ceval", "agi_eval", "bbh_eval"])
def test_questions_with_options(scores, task: str) -> None:
    assert {answer: scores[answer][task] for answer in ("A", "B", "7")} == {"A": 0.75, "B": 0.25, "7": 0.0}


@pytest.mark.slow
def test_questions_of_another_kind(scores) -> None:
    """BoolQ compares the scores of "Yes" and "No"; GSM8K takes the last number; HumanEval runs the function."""
    assert [scores[answer]["boolq"] for answer in ("Yes", "No")] == [0.75, 0.25]
    assert [scores[answer]["gsm8k"] for answer in ("7", "A")] == [0.25, 0.0]
    assert scores["A"]["human_eval"] == 0.5
