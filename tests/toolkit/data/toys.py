"""Toys for the tests of data: a tokenizer of bytes that knows the tokens of all templates, and rows of each form."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from megatron_ms.data import templates

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

ALPACA: list[dict[str, Any]] = [
    {
        "instruction": "Say hello",
        "input": "in German",
        "output": "Hallo!",
        "history": [["Birnen?", "Nein."], ["Äpfel\n?", " ja "]],
        "system": "Be brief.",
    },
    {"instruction": "你好", "input": "", "output": "<think>hm</think>\n\n好", "history": [], "system": ""},
    {
        "instruction": "A",
        "input": "B",
        "output": "C" * 30,
        "history": [["x", "<think>y</think>z"]],
        "system": "",
    },
    {"instruction": "Count", "input": "", "output": "one two three " * 3, "history": [], "system": "S"},
    {"instruction": "D", "input": "", "output": "E", "history": [], "system": ""},
]
_CALL = '{"name": "weather", "arguments": {"city": "Köln"}}'
SHAREGPT: list[dict[str, Any]] = [
    {
        "conversations": [
            {"from": "system", "value": "Be kind."},
            {"from": "human", "value": "Hi"},
            {"from": "gpt", "value": "Hello"},
            {"from": "human", "value": "And?"},
            {"from": "gpt", "value": "<think>so</think>\nFine."},
        ]
    },
    {"conversations": [{"from": "gpt", "value": "no question"}, {"from": "human", "value": "here"}]},
    {
        "conversations": [
            {"from": "human", "value": "1"},
            {"from": "gpt", "value": "2"},
            {"from": "human", "value": "3"},
        ]
    },
    {"conversations": [{"from": "human", "value": "Ü"}, {"from": "gpt", "value": "ß"}]},
]
TOOLS: list[dict[str, Any]] = [
    {
        "conversations": [
            {"from": "human", "value": "How warm is it?"},
            {"from": "function_call", "value": _CALL},
            {"from": "observation", "value": "21"},
            {"from": "gpt", "value": "21 degrees"},
        ]
    }
]
ALPACA_PAIRS: list[dict[str, Any]] = [
    {
        "instruction": "Good?",
        "input": "",
        "chosen": "Yes.",
        "rejected": "<think>n</think>No.",
        "history": [["a", "b"]],
    },
    {"instruction": "Bad", "input": "?", "chosen": "<think>m</think>M", "rejected": "N", "history": []},
]
SHAREGPT_PAIRS: list[dict[str, Any]] = [
    {
        "conversations": [
            {"from": "human", "value": "Hi"},
            {"from": "gpt", "value": "<think>q</think>Hello"},
            {"from": "human", "value": "And?"},
        ],
        "chosen": {"from": "gpt", "value": "Good"},
        "rejected": {"from": "gpt", "value": "Bad"},
    }
]
TEXTS: list[dict[str, Any]] = [
    {"text": "Once upon a time.", "title": "A"},
    {"text": "", "title": "empty"},
    {"text": "Grüße, 世界 🌍", "title": "Ö"},
    {"text": "the end\n", "title": ""},
]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Writes rows as JSON lines."""
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def make_tokenizer(folder: Path, chat_template: str | None = CHAT_TEMPLATE) -> Path:
    """A Hugging Face tokenizer: an id for each byte, and one for each token that a template needs."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    words = sorted(pre_tokenizers.ByteLevel.alphabet())
    special = [
        "<s>",
        "</s>",
        "<pad>",
        *sorted(_words(yaml.safe_load(templates.FILE.read_text(encoding="utf-8")))),
    ]
    inner = Tokenizer(models.BPE({word: id for id, word in enumerate([*words, *special])}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(word, special=True) for word in special])
    folder.mkdir(parents=True, exist_ok=True)
    inner.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 1 << 20}
    config |= {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    if chat_template is not None:
        config["chat_template"] = chat_template
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def _words(facts: Any) -> set[str]:
    """The tokens and stop words that templates name."""
    return set(_named(facts))


def _named(facts: Any) -> Iterator[str]:
    if isinstance(facts, list):
        for one in facts:
            yield from _named(one)
    elif isinstance(facts, dict):
        if isinstance(facts.get("token"), str):
            yield facts["token"]
        yield from facts.get("stop", [])
        for one in facts.values():
            yield from _named(one)
