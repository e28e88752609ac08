"""A tokenizer of Hugging Face with one token for each byte: what it encodes can be read again, whatever the text."""

from __future__ import annotations

import json
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

START, FILLER, END = "<|im_start|>", "<|endoftext|>", "<|im_end|>"
SIZE = 256 + 3


def write(folder: Path) -> None:
    """Writes tokenizer.json and tokenizer_config.json. The bytes have the ids 0 to 255; START, FILLER and END follow."""
    letters = {letter: number for number, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(letters, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([START, FILLER, END])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 4096}
    words = {"eos_token": END, "pad_token": FILLER}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | words))
