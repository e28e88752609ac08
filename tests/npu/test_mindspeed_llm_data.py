"""preprocess_data.py of MindSpeed-LLM, unmodified: what each of its handlers writes for one row, read back as text.

Needs what test_mindspeed_llm_tools.py needs. The tokenizer has a token for each byte, so the expected texts are written here as
they are. HunyuanInstructionHandler is left out: it asks for the tokenizer that comes with Hunyuan's own code.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.npu.llm_trainer import ROOT, Trainer

_SYSTEM = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n"
_QWEN = "--prompt-type qwen --handler-name"


def _asked(question: str) -> str:
    """A question as the template of Qwen writes it, up to the place of the answer."""
    return f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"


_ALPACA = {"instruction": "Add.", "input": "1 and 2", "output": "3"}
_SAID = [{"from": "human", "value": "Say one."}, {"from": "gpt", "value": "One."}]
_SAID_TWICE = [*_SAID, {"from": "human", "value": "Again."}, {"from": "gpt", "value": "One!"}]
_CHAT = [{"role": "user", "content": "Say one."}, {"role": "assistant", "content": "One."}]
_MOSS = {
    "turn_1": {"Human": "<|Human|>: Say one.<eoh>\n", "MOSS": "<|MOSS|>: One.<eom>\n"},
    "turn_2": {"Human": "<|Human|>: Again.<eoh>\n", "MOSS": "<|MOSS|>: One!<eom>\n"},
}
_TASK = (
    "\nBelow is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request. "
    "Please note that you need to think through your response logically and step by step.\n"
)


def _told(question: str, answer: str) -> str:
    """A question and its answer as the template of Alpaca writes them."""
    return f"### Instruction:\n{question}\n### Response:\n{answer}\n"


def _tuning(prompt: str, answer: str) -> dict[str, list[str]]:
    """What a handler of instructions writes: the whole text, and the answer alone as labels."""
    return {"input_ids": [prompt + answer], "labels": [answer]}


_END = "<|im_end|>"
_ADDED = _tuning(_SYSTEM + _asked("Add.\n1 and 2"), f"3{_END}")
_TWICE = _SYSTEM + _asked("Say one.") + f"One.{_END}\n" + _asked("Again.")
# name -> (arguments, the row, what is written for each key but the attention's mask)
CASES: dict[str, tuple[str, dict, dict[str, list[str]]]] = {
    "GeneralPretrainHandler": ("--append-eod", {"text": "One day."}, {"text": [f"One day.{_END}"]}),
    "AlpacaPretrainHandler": (
        "--handler-name AlpacaPretrainHandler",
        _ALPACA,
        {
            "text": [
                "A chat between a curious user and an artificial intelligence assistant. The assistant gives helpful, "
                "detailed, and polite answers to the user's questions.USER: Below is an instruction that describes a task. "
                "Write a response that appropriately completes the request.\n\n### Instruction:\nAdd.\n\n### Input:\n"
                "1 and 2\n\n### Response: ASSISTANT: 3"
            ]
        },
    ),
    "SharegptPretrainHandler": (
        "--handler-name SharegptPretrainHandler --json-keys conversations",
        {"conversations": _SAID},
        {"conversations": ["Say one.One."]},
    ),
    "LlamaFactoryInstructionHandler": (
        f"{_QWEN} LlamaFactoryInstructionHandler --dataset-dir {{place}}",
        _ALPACA,
        _ADDED,
    ),
    "AlpacaStyleInstructionHandler": (f"{_QWEN} AlpacaStyleInstructionHandler", _ALPACA, _ADDED),
    "SharegptStyleInstructionHandler": (
        f"{_QWEN} SharegptStyleInstructionHandler",
        {"conversations": _SAID_TWICE},
        {"input_ids": [f"{_TWICE}One!{_END}"], "labels": [f"One.{_END}One!{_END}"]},
    ),
    "OpenAIInstructionHandler": (
        f"{_QWEN} OpenAIInstructionHandler",
        {"messages": _CHAT, "tools": ""},
        _tuning(_SYSTEM + _asked("Say one."), f"One.{_END}"),
    ),
    "AlpacaStylePairwiseHandler": (
        f"{_QWEN} AlpacaStylePairwiseHandler --map-keys {{{{"
        '"prompt":"instruction","query":"input","chosen":"better","rejected":"worse"}}',
        {"instruction": "Add.", "input": "1 and 2", "better": "3", "worse": "4"},
        {
            "chosen_input_ids": [f"{_SYSTEM}{_asked('Add.' + chr(10) + '1 and 2')}3{_END}"],
            "chosen_labels": [f"3{_END}"],
            "rejected_input_ids": [f"{_SYSTEM}{_asked('Add.' + chr(10) + '1 and 2')}4{_END}"],
            "rejected_labels": [f"4{_END}"],
        },
    ),
    "SharegptStylePairwiseHandler": (
        f"{_QWEN} SharegptStylePairwiseHandler",
        {
            "conversations": _SAID[:1],
            "chosen": {"from": "gpt", "value": "One."},
            "rejected": {"from": "gpt", "value": "Two."},
        },
        {
            "chosen_input_ids": [f"{_SYSTEM}{_asked('Say one.')}One.{_END}"],
            "chosen_labels": [f"One.{_END}"],
            "rejected_input_ids": [f"{_SYSTEM}{_asked('Say one.')}Two.{_END}"],
            "rejected_labels": [f"Two.{_END}"],
        },
    ),
    "PPOAlpacaStyleInstructionHandler": (
        f"{_QWEN} PPOAlpacaStyleInstructionHandler",
        _ALPACA,
        {"input_ids": [_SYSTEM + _asked("Add.\n1 and 2")]},
    ),
    "R1AlpacaStyleInstructionHandler": (
        f"{_QWEN} R1AlpacaStyleInstructionHandler --dataset-additional-keys labels",
        _ALPACA,
        {"input_ids": [_SYSTEM + _asked("Add.\n1 and 2")], "labels": ["3"]},
    ),
    "R1SharegptStyleInstructionHandler": (
        f"{_QWEN} R1SharegptStyleInstructionHandler --dataset-additional-keys labels",
        {"conversations": _SAID_TWICE},
        {"input_ids": [_TWICE], "labels": ["One!"]},
    ),
    "GeneralInstructionHandler": (
        "--handler-name GeneralInstructionHandler --append-eod",
        _ALPACA,
        {
            "input_ids": [f"{_TASK}{_told('Add.' + chr(10) + '1 and 2', '3')}{_END}"],
            "labels": [f"3\n{_END}"],
        },
    ),
    "BelleMultiTurnInstructionHandler": (
        "--handler-name BelleMultiTurnInstructionHandler",
        {"instruction": "Human: Say one.\nAssistant: One.\nHuman: Again.\nAssistant:", "output": "One!"},
        {
            "input_ids": [f"{_TASK}{_told('Say one.', 'One.')}{_told('Again.', 'One!')}"],
            "labels": ["One!\n"],
        },
    ),
    # The turns begin with the tokens 195 and 196, which upstream has for Baichuan.
    "MOSSMultiTurnHandler": (
        "--handler-name MOSSMultiTurnHandler",
        {"chat": _MOSS},
        {"labels": [f"{_END}One.{_END}One!{_END}"]},
    ),
    "MOSSInstructionHandler": (
        "--handler-name MOSSInstructionHandler",
        {"chat": _MOSS},
        {
            "input_ids": [
                f"{_TASK}{_told('Say one.', 'One.')}",
                f"{_TASK}{_told('Say one.', 'One.')}{_told('Again.', 'One!')}",
            ],
            "labels": ["One.\n", "One!\n"],
        },
    ),
    "LeetcodePythonInstructionHandler": (
        "--handler-name LeetcodePythonInstructionHandler",
        {
            "code_with_problem": "Add.\n```python\n1 + 2\n```",
            "code_only": "1 + 2",
            "explanation_only": "It is 3.",
        },
        {
            "input_ids": [f"{_TASK}{_told('Add.', '1 + 2' + chr(10) + 'It is 3.')}"],
            "labels": ["1 + 2\nIt is 3.\n"],
        },
    ),
    "StackOverflowPythonPretrainHandler": (
        "--handler-name StackOverflowPythonPretrainHandler",
        {"title": "add", "question_body": "How?", "answer_body": "With +."},
        {"text": ["In python, add\n### Question:\nHow?\n### Response:\nWith +.\n"]},
    ),
}

# Handlers that fail in upstream's own code -> how. Their test fails as soon as they work.
FAILING = {
    # get_dataset_list does not set it; the handlers without a dataset_info.json go another way.
    "LlamaFactoryInstructionHandler": "AttributeError: 'InstructionDatasetAttr' object has no attribute 'dataset_additional_keys'",
    # _pre_process returns nothing.
    "StackOverflowPythonPretrainHandler": "TypeError: 'NoneType' object is not subscriptable",
}


@pytest.fixture(scope="module")
def written(trainer: Trainer, tmp_path_factory) -> dict[str, dict[str, list[str]]]:
    folder = tmp_path_factory.mktemp("data")
    cases = {name: {"arguments": words, "rows": [row] * 2} for name, (words, row, _) in CASES.items()}
    (folder / "cases.json").write_text(json.dumps(cases))
    program = (
        "import torch, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    job = ROOT / "tests/npu/jobs/preprocess.py"
    words = [sys.executable, "-c", program, job, trainer.script.with_name("preprocess_data.py"), folder]
    run = subprocess.run(
        [str(word) for word in words],
        env=trainer.environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    (folder / "errors").write_text(run.stderr)
    return json.loads(re.findall(r"^written (.*)$", run.stdout, re.MULTILINE)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_each_handler_writes_its_samples(written, name: str) -> None:
    """Two equal rows are two equal parts of the data set."""
    expected = CASES[name][2]
    found = written[name]
    if name in FAILING:
        assert found == FAILING[name]
        return
    assert isinstance(found, dict), found
    assert {key: found.get(key) for key in expected} == {key: texts * 2 for key, texts in expected.items()}


@pytest.mark.slow
def test_every_handler_has_a_case(trainer: Trainer) -> None:
    source = (trainer.script.parent / "mindspeed_llm/tasks/preprocess/data_handler.py").read_text()
    handlers = set(re.findall(r"^class (\w+Handler)\(", source, re.MULTILINE))
    assert handlers - CASES.keys() == {"BaseDatasetHandler", "HunyuanInstructionHandler"}


def test_the_tokenizer_has_a_token_for_each_byte(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    from tests.npu.jobs import byte_tokenizer

    byte_tokenizer.write(tmp_path)
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    text = "Zwölf <|im_end|>\n\t€"
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text and len(ids) == len("Zwölf \n\t€".encode()) + 1
