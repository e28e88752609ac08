"""Makes lm-eval's tasks over local rows, runs them, and checks that every benchmark has a score."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from ..errors import UserError
from . import needles
from .benchmarks import BENCHMARKS, Rows
from .section import Evaluate


@dataclass
class Score:
    """The result of a benchmark: the mean over its questions, and the same for each subject."""

    benchmark: str
    metric: str
    value: float
    questions: int
    subjects: dict[str, tuple[float, int]] = field(default_factory=dict)


def check_places(keys: Evaluate, allow_code: bool) -> None:
    """Raises UserError if the place of a benchmark is not there, or if code would run that was not allowed."""
    for name, place in keys.benchmarks.items():
        benchmark = BENCHMARKS[name]
        if benchmark.runs_code and not allow_code:
            raise UserError(
                f"evaluate.benchmarks.{name}: runs programs that the model writes, with your rights: allow it with --allow-code"
            )
        if not Path(place).exists():
            raise UserError(
                f"evaluate.benchmarks.{name}: there is no folder {place}; it must have {benchmark.layout}"
            )


def make_tasks(keys: Evaluate) -> dict[str, list[Any]]:
    """Benchmark -> lm-eval's tasks for the subjects whose files are there. `check_places` has been called.

    Raises:
        UserError: a file is absent or damaged, or a subject is unknown.
    """
    logging.getLogger("lm_eval").setLevel(logging.ERROR)  # it warns about every option that is given here
    made = {}
    for name, place in keys.benchmarks.items():
        benchmark, folder = BENCHMARKS[name], Path(place)
        subjects = benchmark.read(folder, keys.haystack) if benchmark.haystack else benchmark.read(folder)
        configs = _own_tasks() if benchmark.tasks is None else _configs(benchmark.tasks)
        unknown = [subject for subject in subjects if subject not in configs]
        if unknown:
            raise UserError(
                f"{folder}: lm-eval has no task {unknown[0]}: is the file named as its authors name it?"
            )
        made[name] = [_task(configs[subject], splits, keys, folder) for subject, splits in subjects.items()]
    return made


def _own_tasks() -> dict[str, dict[str, Any]]:
    """The tasks that are defined here."""
    return {"humaneval": _humaneval(), **{name: needles.task(name) for name in needles.SUBJECTS}}


def _configs(folder: str) -> dict[str, dict[str, Any]]:
    """Name -> configuration of lm-eval's tasks in one of its folders."""
    import lm_eval.tasks
    from lm_eval.tasks import TaskManager
    from lm_eval.tasks._yaml_loader import load_yaml

    root = Path(lm_eval.tasks.__file__).parent / folder
    manager = TaskManager(include_defaults=False, include_path=str(root))
    return {
        name: load_yaml(entry.yaml_path, resolve_func=True)
        for name, entry in manager.task_index.items()
        if name in manager.all_subtasks
    }


def _task(config: Mapping[str, Any], splits: Mapping[str, Rows], keys: Evaluate, folder: Path) -> Any:
    import datasets
    from lm_eval.api.task import ConfigurableTask

    def rows(**_: Any) -> dict[str, Any]:
        return {name: datasets.Dataset.from_list(list(content)) for name, content in splits.items()}

    # A split without a file is none, so that lm-eval neither asks for it nor takes examples from the questions.
    absent = {key: None for key in _SPLITS if config.get(key) and config[key] not in splits}
    own = {key: value for key, value in config.items() if key not in ("tag", "group")} | absent
    samples = (config.get("fewshot_config") or {}).get("samples")
    if (
        keys.shots
        and not isinstance(samples, list)
        and not (own.get("fewshot_split") or own.get("training_split"))
    ):
        raise UserError(f"evaluate.shots: {folder} has no file with examples for {config['task']}")
    metadata = config.get("metadata") or {}
    task = ConfigurableTask(
        config={**own, "custom_dataset": rows, "dataset_kwargs": None, "metadata": metadata}
    )
    if keys.shots is not None:
        task.set_config(key="num_fewshot", value=keys.shots)
    return task


_SPLITS = ("training_split", "validation_split", "test_split", "fewshot_split")


def _humaneval() -> dict[str, Any]:
    """HumanEval's task. lm-eval's own runs programs inside of its process, and loads code from the network for it."""
    from .code import passes

    def results(doc: dict[str, Any], answers: list[str]) -> dict[str, float]:
        program = f"{doc['prompt']}{answers[0]}\n{doc['test']}\ncheck({doc['entry_point']})\n"
        return {"pass@1": float(passes(program))}

    return {
        "task": "humaneval",
        "output_type": "generate_until",
        "test_split": "test",
        "doc_to_text": "{{prompt}}",
        "doc_to_target": "",
        "process_results": results,
        "metric_list": [{"metric": "pass@1", "aggregation": "mean", "higher_is_better": True}],
        "generation_kwargs": {
            "until": ["\nclass", "\ndef", "\n#", "\nif", "\nprint"],
            "max_gen_toks": 1024,
            "do_sample": False,
        },
        "num_fewshot": 0,
        "repeats": 1,
        "metadata": {"version": 1.0},
    }


def run(
    model: Any, tasks: Mapping[str, list[Any]], keys: Evaluate
) -> tuple[list[Score], list[dict[str, Any]]]:
    """The scores of the benchmarks, and a record of every question.

    Raises:
        RuntimeError: a benchmark has no score.
    """
    from lm_eval import evaluator
    from lm_eval.tasks import TaskManager

    # The harness would run git in the user's folder, whose error would be printed, and collect what the machine has.
    with (
        mock.patch.object(evaluator, "get_git_commit_hash", lambda: None),
        mock.patch.object(evaluator, "add_env_info", lambda results: None),
    ):
        found = evaluator.simple_evaluate(
            model,
            tasks=[task for all_tasks in tasks.values() for task in all_tasks],
            num_fewshot=keys.shots,
            limit=keys.limit,
            bootstrap_iters=0,
            log_samples=True,
            task_manager=TaskManager(include_defaults=False),  # else it reads the files of all its tasks
        )
    assert found is not None
    names = {task.config.task: benchmark for benchmark, all_tasks in tasks.items() for task in all_tasks}
    scores = [_score(name, [t.config.task for t in all_tasks], found) for name, all_tasks in tasks.items()]
    records = [
        {
            "benchmark": names[subject],
            "subject": subject,
            "prompt": sample["arguments"][0][0] if sample["arguments"] else "",
            "target": str(sample["target"]),
            "answers": sample["filtered_resps"],
        }
        for subject, samples in found["samples"].items()
        # A question has a record for each filter of its answer; the first filter is the one that is scored.
        for sample in {one["doc_id"]: one for one in reversed(samples)}.values()
    ]
    return scores, records


# The measure of a task that is reported, the first of these that it has.
_MEASURES = ("pass@1", "acc", "exact_match", "needle")


def _score(benchmark: str, subjects: list[str], found: Mapping[str, Any]) -> Score:
    total, questions, named, each = 0.0, 0, "", {}
    for subject in subjects:
        values = found["results"].get(subject, {})
        count = found["n-samples"].get(subject, {}).get("effective", 0)
        measures = {key.partition(",")[0]: (key, value) for key, value in reversed(list(values.items()))}
        metric = next((m for m in _MEASURES if m in measures), None)
        value = float("nan") if metric is None else measures[metric][1]
        if metric is None or not count or not isinstance(value, (int, float)) or math.isnan(value):
            raise RuntimeError(f"{benchmark}: {subject} has no score; lm-eval returned {dict(values)}")
        named, each[subject] = metric, (float(value), count)
        total, questions = total + value * count, questions + count
    return Score(benchmark, named, total / questions, questions, each)
