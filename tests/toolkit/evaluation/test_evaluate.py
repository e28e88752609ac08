"""An oracle scores 100 % on every benchmark and a uniform model chance; scores of a model are those computed by hand."""

from __future__ import annotations

import gzip
import json
import math
import shutil
import subprocess

import pytest
from lm_eval.api.model import LM

from megatron_ms import commands
from megatron_ms.errors import UserError
from megatron_ms.evaluation import harness, needles
from megatron_ms.evaluation.benchmarks import BENCHMARKS
from megatron_ms.evaluation.code import passes
from megatron_ms.evaluation.rows import json_lines
from megatron_ms.evaluation.section import Evaluate
from tests.toolkit.evaluation import files

CHANCE = {"agieval": 1 / 5, "boolq": 1 / 2, "mmlu": 1 / 4, "cmmlu": 1 / 4, "ceval": 1 / 4, "hellaswag": 1 / 4}


class Scripted(LM):
    """An oracle knows every answer. Without knowledge the first choice is taken, and nothing is written."""

    def __init__(self, knows: bool):
        super().__init__()
        self.knows, self.prompts = knows, []

    def _right(self, doc) -> int:
        for key in ("answer", "Answer"):
            if isinstance(doc.get(key), str):
                return "ABCD".index(doc[key])
            if key in doc:
                return doc[key]
        if "gold" in doc:
            return doc["gold"][0] if isinstance(doc["gold"], list) else doc["gold"]
        return int(doc["label"])

    def loglikelihood(self, requests, **_):
        self.prompts += [r.args[0] for r in requests]
        wanted = [self._right(r.doc) if self.knows else 0 for r in requests]
        return [
            (0.0 if r.idx == right else -9.0, r.idx == right)
            for r, right in zip(requests, wanted, strict=True)
        ]

    def generate_until(self, requests, **_):
        self.prompts += [r.args[0] for r in requests]
        return [self._text(r.doc) if self.knows else "" for r in requests]

    def _text(self, doc) -> str:
        if "entry_point" in doc:
            return f"    return a + b + {doc['entry_point'].removeprefix('add')}\n"
        if "keyword" in doc:
            return f"It is {doc['keyword']}."
        if "target" in doc:
            return f"Think. So the answer is {doc['target']}."
        return doc["answer"]

    def loglikelihood_rolling(self, requests, **_):
        raise NotImplementedError


def _keys(data, names, tmp_path, **more) -> Evaluate:
    return Evaluate(
        benchmarks={name: str(data / name) for name in names}, output=str(tmp_path / "out"), **more
    )


def test_every_benchmark_has_toy_data():
    assert set(files.ALL) == set(BENCHMARKS)


def test_an_oracle_knows_everything_and_a_uniform_model_nothing(data, tmp_path):
    keys = _keys(data, files.ALL, tmp_path)
    scores, records = harness.run(Scripted(True), harness.make_tasks(keys), keys)
    assert {s.benchmark: s.value for s in scores} == dict.fromkeys(files.ALL, 1.0)
    counts = {s.benchmark: s.questions for s in scores}
    others = {"mmlu": 16, "humaneval": 4, "needlebench": 2 * 5 * 3}
    assert counts == {name: others.get(name, 8) for name in files.ALL}
    assert set(next(s for s in scores if s.benchmark == "mmlu").subjects) == {
        "mmlu_anatomy",
        "mmlu_world_religions",
    }
    assert len(records) == sum(counts.values())
    scores, _ = harness.run(Scripted(False), harness.make_tasks(keys), keys)
    found = {s.benchmark: s.value for s in scores}
    for name, value in found.items():
        assert value == pytest.approx(CHANCE.get(name, 0.0), abs=0.06), name


def test_exams_in_chinese_and_with_written_answers(tmp_path):
    files.agieval_more(tmp_path / "agieval")
    model, keys = Scripted(True), _keys(tmp_path, ["agieval"], tmp_path)
    (score,), _ = harness.run(model, harness.make_tasks(keys), keys)
    assert score.value == 1.0 and score.questions == 9 and len(score.subjects) == 3
    for prompt in ("Q: 0 + 1 = ?\nA: The answer is", "问题：0 + 1 = ?\n答案：",
                   "文\n问题：问 选项：(A)A (B)B (C)C (D)D\n答案：从A到D, 我们应选择"):  # fmt: skip
        assert prompt in model.prompts


def test_exams_with_several_right_choices(tmp_path):
    """The exams of law have lists of letters as labels. lm-eval counts the likeliest choice if it is one of them."""
    folder = tmp_path / "agieval"
    row = {"passage": None, "question": "Q", "options": ["(A)a", "(B)b", "(C)c", "(D)d"], "answer": None}
    labels = [["A", "C"], ["D"], ["B", "A"], "A"]
    files._lines(folder / "jec-qa-kd.jsonl", [row | {"label": label} for label in labels])
    keys = _keys(tmp_path, ["agieval"], tmp_path)
    (score,), _ = harness.run(Scripted(False), harness.make_tasks(keys), keys)
    assert score.value == 3 / 4  # the first choice is right in all but the second
    for wrong in (["A", "E"], [], None):
        files._lines(folder / "jec-qa-kd.jsonl", [row | {"label": wrong}])
        with pytest.raises(UserError, match="row 1: label must be a letter up to D"):
            harness.make_tasks(keys)


def test_a_text_may_have_other_line_separators(tmp_path):
    """JSON allows them inside of texts."""
    file = tmp_path / "rows.jsonl"
    text = "one\u2028two\x85three"
    file.write_text(json.dumps({"text": text}, ensure_ascii=False) + "\r\n", encoding="utf-8", newline="")
    assert json_lines(file) == [{"text": text}]


def test_needles_are_hidden_where_they_shall_be(tmp_path):
    folder = tmp_path / "needlebench"
    files.needlebench(folder)
    shutil.copy(folder / "PaulGrahamEssays.jsonl", folder / "zh_finance.jsonl")
    found = needles.read(folder, [500])
    rows = found["needlebench_en"]["test"]
    assert "最相关的内容是什么。请按照 'x'." in found["needlebench_zh"]["test"][0]["prompt"]
    assert [row["depth"] for row in rows[::3]] == list(needles.DEPTHS)
    for row in rows:
        document = row["prompt"].partition("user is ")[2].partition("\n\nNow, the question is: ")[0]
        assert len(document) == 500
        before = document.index(row["needle"]) - 1
        assert before == (500 - len(row["needle"]) - 2) * row["depth"] // 100
    assert "most relevant to this question. Please answer in the format 'x'." in rows[0]["prompt"]
    assert needles.score("it is  Gold", "it was gold", "gold") == pytest.approx(0.2 * (1 - 3 / 9))
    assert needles.score("", "", "x") == 0.2 and needles.score("so gold it is", "a", "gold") == 1.0
    with pytest.raises(UserError, match="has less than 100000 characters"):
        needles.read(folder, [100_000])


def test_examples_stand_before_the_question(data, tmp_path):
    model = Scripted(True)
    keys = _keys(data, ["mmlu"], tmp_path, shots=2, limit=1)
    scores, _ = harness.run(model, harness.make_tasks(keys), keys)
    assert scores[0].questions == 2
    first = 'The following are multiple choice questions (with answers) about anatomy.\n\nWhich, 0?\nA. eins "0", said'
    assert model.prompts[0].startswith(first) and model.prompts[0].count("Answer:") == 3
    assert model.prompts[0].endswith('D. vier "0", said\nAnswer:')


def test_no_program_is_run(data, tmp_path, monkeypatch):
    """The harness would ask git for the state of the folder that the user is in."""

    def started(*arguments, **options):
        raise AssertionError(f"a program was started: {arguments}")

    monkeypatch.setattr(subprocess, "Popen", started)
    keys = _keys(data, ["boolq"], tmp_path)
    scores, _ = harness.run(Scripted(True), harness.make_tasks(keys), keys)
    assert [score.value for score in scores] == [1.0]


def test_a_benchmark_without_a_score_is_a_failure(data, tmp_path):
    class Broken(Scripted):
        def loglikelihood(self, requests, **_):
            return [(math.nan, False)] * len(requests)

    keys = _keys(data, ["gsm8k"], tmp_path)
    tasks = harness.make_tasks(keys)
    for task in tasks["gsm8k"]:
        task.process_results = lambda doc, results: {"other": 1.0}
        task._aggregation_list["other"] = lambda items: math.nan
    with pytest.raises(RuntimeError, match="gsm8k: gsm8k has no score"):
        harness.run(Broken(True), tasks, keys)


def test_a_models_scores_are_those_by_hand(model_folder):
    from megatron_ms.evaluation.scorer import Scorer
    from megatron_ms.inference.engine import Engine
    from megatron_ms.inference.section import Generate

    engine = Engine(Generate(model=str(model_folder), max_new_tokens=8))
    torch = engine.torch
    pairs = [([5, 6, 7], [8]), ([9], [10, 11, 12]), ([1] * 255, [2, 3]), ([4], [5] * 300)]
    found = Scorer(engine, 3)._loglikelihood_tokens([(None, a, b) for a, b in pairs], disable_tqdm=True)
    for (context, answer), (score, greedy) in zip(pairs, found, strict=True):
        text = (context + answer)[-257:]
        with torch.no_grad():
            logs = torch.log_softmax(engine.model(torch.tensor([text[:-1]])).logits[0].double(), -1)
        count = min(len(answer), len(text) - 1)
        expected = sum(logs[len(text) - 2 - i, text[-1 - i]].item() for i in range(count))
        assert score == pytest.approx(expected, abs=1e-3)
        assert greedy == all(logs[len(text) - 2 - i].argmax().item() == text[-1 - i] for i in range(count))
    whole = engine.until("Hello", [], 8)
    stop = whole[3:5]
    assert engine.until("Hello", [stop], 8) == whole[: whole.index(stop)]
    assert len(engine.until("x" * 1000, [], 8)) > 0


def test_the_command_writes_a_new_folder(data, model_folder, tmp_path, capsys):
    config = tmp_path / "evaluate.yaml"
    config.write_text(
        f"generate: {{model: {model_folder}}}\n"
        f"evaluate: {{benchmarks: {{boolq: {data / 'boolq'}, mmlu: {data / 'mmlu'}}}, output: {tmp_path / 'out'}, limit: 2}}\n"
    )
    assert commands.main(["evaluate", str(config)]) == 0
    assert "mmlu_world_religions" in capsys.readouterr().out
    results = json.loads((tmp_path / "out" / "results.json").read_text())["results"]
    assert results["mmlu"]["questions"] == 4 and results["mmlu"]["measure"] == "acc"
    assert len((tmp_path / "out" / "samples.jsonl").read_text().splitlines()) == 6
    assert (tmp_path / "out" / "results.png").read_bytes().startswith(b"\x89PNG")
    assert commands.main(["evaluate", str(config)]) == 2
    assert "exists and is not overwritten" in capsys.readouterr().err
    assert commands.main(["evaluate", str(config), f"evaluate.output={tmp_path / 'a' / 'b'}"]) == 2
    assert commands.main(["evaluate", "--list"]) == 0
    assert "HumanEval.jsonl" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("output", "said"),
    [("/proc/none", "No such file or directory"), ("{place}/link", "exists and is not overwritten")],
)
def test_a_place_that_cannot_be_written_costs_no_evaluation(
    data, tmp_path, capsys, monkeypatch, output, said
):
    """It is tried before the model is loaded."""
    from megatron_ms.inference import engine

    monkeypatch.setattr(engine, "Engine", lambda keys: pytest.fail("the model was loaded"))
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    place = output.format(place=tmp_path)
    config = tmp_path / "evaluate.yaml"
    config.write_text(
        f"generate: {{model: model}}\nevaluate: {{benchmarks: {{boolq: {data / 'boolq'}}}, output: {place}}}\n"
    )
    assert commands.main(["evaluate", str(config)]) == 2
    assert said in capsys.readouterr().err
    words = [f"evaluate.output={tmp_path / 'out'}", "evaluate.benchmarks.boolq=nowhere"]
    assert commands.main(["evaluate", str(config), *words]) == 2
    assert "evaluate.benchmarks.boolq: there is no folder nowhere" in capsys.readouterr().err
    assert not list(tmp_path.glob(".out*"))


def test_an_evaluation_that_fails_leaves_nothing(data, tmp_path, capsys):
    config = tmp_path / "evaluate.yaml"
    config.write_text(
        f"generate: {{model: nowhere}}\nevaluate: {{benchmarks: {{boolq: {data / 'boolq'}}}, output: {tmp_path / 'out'}}}\n"
    )
    assert commands.main(["evaluate", str(config)]) == 2
    assert "there is no folder nowhere" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["evaluate.yaml"]


def test_files_of_other_programs(tmp_path):
    """A mark of the order of bytes, and a file whose compressed content is damaged."""
    lines = '{"question": "Q", "passage": "P", "answer": true}\n'
    (tmp_path / "val.jsonl").write_text(lines, encoding="utf-8-sig")
    assert BENCHMARKS["boolq"].read(tmp_path)["boolq"]["validation"][0]["question"] == "Q"
    place = tmp_path / "HumanEval.jsonl.gz"
    place.write_bytes(gzip.compress(lines.encode())[:10] + b"\xff" * 9)
    with pytest.raises(UserError, match="HumanEval.jsonl.gz cannot be read"):
        BENCHMARKS["humaneval"].read(tmp_path)


def _damage(folder, name):
    path = next(p for p in sorted(folder.rglob("*")) if p.is_file() and not p.name.startswith("train"))
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(b"{"))
    elif path.suffix == ".csv":
        path.write_text(path.read_text().replace('",A\r', '",E\r').replace(",A\n", ",E\n"), newline="")
        path.write_text("too,few\n")
    else:
        path.write_text('{"examples": [{}]}' if path.suffix == ".json" else '{"no": 1}\n')
    return path


@pytest.mark.parametrize("name", sorted(files.ALL))
def test_damaged_and_absent_files_are_named(name, tmp_path):
    from megatron_ms.errors import UserError

    files.ALL[name](tmp_path / name)
    path = _damage(tmp_path / name, name)
    with pytest.raises(UserError, match=path.name):
        harness.make_tasks(_keys(tmp_path, [name], tmp_path))
    path.unlink()
    with pytest.raises(UserError):
        harness.make_tasks(_keys(tmp_path, [name], tmp_path))
    with pytest.raises(UserError, match="there is no folder"):
        harness.check_places(_keys(tmp_path / "nowhere", [name], tmp_path), True)


def test_wrong_input_is_named(data, tmp_path):
    from pydantic import ValidationError

    from megatron_ms.errors import UserError

    with pytest.raises(ValidationError, match="there is no benchmark mmlo"):
        _keys(data, ["mmlo"], tmp_path)
    with pytest.raises(UserError, match="--allow-code"):
        harness.check_places(_keys(data, ["humaneval"], tmp_path), False)
    with pytest.raises(UserError, match="no file with examples"):
        harness.make_tasks(_keys(data, ["hellaswag"], tmp_path, shots=3))
    files.mmlu(tmp_path / "mmlu")
    for split in ("test", "dev"):
        (tmp_path / "mmlu" / split / f"anatomy_{split}.csv").rename(
            tmp_path / "mmlu" / split / f"odd_{split}.csv"
        )
    with pytest.raises(UserError, match="no task mmlu_odd"):
        harness.make_tasks(_keys(tmp_path, ["mmlu"], tmp_path))


def test_programs_run_with_limits(tmp_path):
    assert passes("assert 1 + 1 == 2")
    assert not passes("assert 1 + 1 == 3")
    assert not passes("syntax error (")
    assert not passes("while True: pass", seconds=1)
    assert not passes("bytearray(4 << 30)")
    assert not passes("open('big', 'wb').write(bytes(4 << 20))")
    assert not passes("import sys; sys.exit(3)")
    # What a program starts ends with it.
    mark = tmp_path / "mark"
    child = f"import time; time.sleep(2); open({str(mark)!r}, 'w')"
    assert passes(f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {child!r}])")
    assert passes("import os; assert 'SECRET' not in os.environ")
    assert not mark.exists()
