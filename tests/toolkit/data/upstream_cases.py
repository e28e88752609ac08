"""What MindSpeed-LLM's preprocess_data.py and our command are both given: the cases of golden/upstream.json.

    python -m tests.toolkit.data.record MINDSPEED-LLM MINDSPEED MEGATRON-LM

writes the hashes of what upstream makes; with MSADAPTER_MINDSPEED_LLM a test runs upstream again.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.toolkit.data import toys

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = Path(__file__).with_name("golden") / "upstream.json"
_COLUMNS = {"history": "history", "system": "system"}


@dataclass(frozen=True)
class Case:
    """One run: the rows, upstream's arguments, and our keys of the section `data`."""

    name: str
    rows: str
    words: list[str] = field(default_factory=list)
    keys: dict[str, Any] = field(default_factory=dict)


def cases() -> list[Case]:
    from megatron_ms.data.templates import names

    found = []
    for template in names():
        found += _of_template(template)
    for name, words, keys in (
        ("pack", ["--pack"], {"pack": True}),
        ("numbered", ["--pack", "--neat-pack"], {"pack": "numbered"}),
        ("long", [], {}),
    ):
        # Upstream cuts what is longer when it numbers, and we drop it.
        limit = 500 if name == "numbered" else 140
        for template in ("qwen", "gemma", "qwen_lf"):
            case = _conversation(template, f"{name}-{template}", "ALPACA", "AlpacaStyleInstructionHandler")
            words_of = [*case.words, *words, "--seq-length", str(limit)]
            found.append(Case(case.name, case.rows, words_of, {**case.keys, **keys, "seq_length": limit}))
    for value in (True, False):
        for task, rows, handler in (
            ("instruction", "ALPACA", "AlpacaStyleInstructionHandler"),
            ("pairs", "ALPACA_PAIRS", "AlpacaStylePairwiseHandler"),
        ):
            case = _conversation("qwen3", f"thinking-{value}-{task}", rows, handler)
            words_of = [*case.words, "--enable-thinking", str(value)]
            found.append(Case(case.name, rows, words_of, {**case.keys, "thinking": value}))
    text = {"task": "pretrain", "keys": ["text", "title"], "dtype": "int32"}
    found.append(Case("pretrain", "FULL_TEXTS", ["--json-keys", "text", "title", "--append-eod"], text))
    return found


def _of_template(template: str) -> list[Case]:
    found = [
        _conversation(template, f"alpaca-{template}", "ALPACA", "AlpacaStyleInstructionHandler"),
        _conversation(template, f"sharegpt-{template}", "SHAREGPT", "SharegptStyleInstructionHandler"),
        _conversation(template, f"pairs-{template}", "ALPACA_PAIRS", "AlpacaStylePairwiseHandler"),
        _conversation(
            template, f"sharegpt-pairs-{template}", "SHAREGPT_PAIRS", "SharegptStylePairwiseHandler"
        ),
    ]
    # Upstream leaves the words {{idx}} in what a tool returned with chatglm2, and fails at calls of tools with qwen3.
    if template not in ("chatglm2", "qwen3"):
        found.append(_conversation(template, f"tools-{template}", "TOOLS", "SharegptStyleInstructionHandler"))
    return found


def _conversation(template: str, name: str, rows: str, handler: str) -> Case:
    words = ["--handler-name", handler, "--prompt-type", template]
    if rows.startswith("ALPACA"):
        columns = {"history": "history"} if rows == "ALPACA_PAIRS" else _COLUMNS
        words += ["--map-keys", json.dumps(columns)]
    task = "pairs" if "Pairwise" in handler else "instruction"
    return Case(name, rows, words, {"task": task, "template": template})


def prepare(folder: Path) -> None:
    """Writes the tokenizer and the rows."""
    toys.make_tokenizer(folder / "tokenizer")
    for name in ("ALPACA", "SHAREGPT", "TOOLS", "ALPACA_PAIRS", "SHAREGPT_PAIRS"):
        toys.write_rows(folder / f"{name}.jsonl", getattr(toys, name))
    # Upstream leaves empty texts out, and Megatron's own tool does not; the case has none of them.
    toys.write_rows(folder / "FULL_TEXTS.jsonl", [row for row in toys.TEXTS if row["text"] and row["title"]])


def hashes(folder: Path) -> dict[str, str]:
    """The name of each file of a data set -> the hash of its content."""
    files = [path for path in sorted(folder.iterdir()) if path.suffix in (".bin", ".idx")]
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in files}


_PROGRAM = """
import json, os, sys
import torch
import datasets
datasets.disable_progress_bars()
import transformers
add = transformers.PreTrainedTokenizerBase.add_special_tokens
def add_special_tokens(self, tokens, replace_additional_special_tokens=True):
    # Upstream uses the names of transformers 4; 5 has others for the same.
    tokens = {name.replace("additional_", "extra_"): value for name, value in tokens.items()}
    return add(self, tokens, replace_additional_special_tokens)
transformers.PreTrainedTokenizerBase.add_special_tokens = add_special_tokens
import preprocess_data
from mindspeed_llm.tasks.preprocess import templates
parse = preprocess_data.get_args
def get_args():
    # The file of templates has minicpm3, but upstream's list of the names that it accepts lacks it.
    lacking = "minicpm3" in sys.argv
    sys.argv = ["empty" if word == "minicpm3" else word for word in sys.argv]
    args = parse()
    args.prompt_type = "minicpm3" if lacking else args.prompt_type
    args.workers = None  # datasets then uses no other process
    return args
preprocess_data.get_args = get_args
for words in json.loads(sys.stdin.read()):
    templates.templates.clear()
    sys.argv = ["preprocess_data.py", *words]
    preprocess_data.main()
"""


def run_upstream(folder: Path, checkouts: list[Path]) -> dict[str, dict[str, str]]:
    """Runs upstream's program for all cases in one process. checkouts: MindSpeed-LLM, MindSpeed, Megatron-LM."""
    prepare(folder)
    for case in cases():
        (folder / "upstream" / case.name).mkdir(parents=True)
    shared = [
        "--tokenizer-name-or-path",
        folder / "tokenizer",
        "--overwrite-cache",
        "--cache-dir",
        folder / "cache",
    ]
    jobs = [
        [
            *[
                "--input",
                folder / f"{case.rows}.jsonl",
                "--output-prefix",
                folder / "upstream" / case.name / "out",
            ],
            *shared,
            *case.words,
        ]
        for case in cases()
    ]
    outside = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    places = [ROOT / "msadapter/alias/shim", ROOT, *checkouts, *outside]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "MSADAPTER_DEVICE": "npu",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "HF_HOME": str(folder / "home"),
    }
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        input=json.dumps([[str(word) for word in job] for job in jobs]),
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    return {case.name: hashes(folder / "upstream" / case.name) for case in cases()}
