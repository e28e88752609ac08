"""Converts a text to Megatron's .bin/.idx: trains a sentencepiece tokenizer on it, encodes it, writes the data set.

The files are written by megatron.core's IndexedDatasetBuilder, so they equal those of Megatron's tools byte for byte.
The script imports only torch, megatron.core and sentencepiece, so it also runs with real PyTorch.

    python -m msadapter megatron_ms/data/preprocess.py --input book.txt --output-prefix build/train/book
"""

from __future__ import annotations

import argparse
import io
import os
from collections.abc import Iterator
from pathlib import Path

import numpy
import sentencepiece
import torch
from megatron.core.datasets.indexed_dataset import DType, IndexedDatasetBuilder
from tqdm import tqdm

DOCUMENT_CHARACTERS = 2000
EOD_PIECE = "<eod>"


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--input", type=Path, required=True, help="UTF-8 text with blank lines between paragraphs"
    )
    parser.add_argument(
        "--output-prefix", type=Path, required=True, help="write PREFIX.bin, PREFIX.idx and PREFIX.model"
    )
    parser.add_argument(
        "--vocab-size", type=int, default=2048, help="number of pieces of the tokenizer (default 2048)"
    )
    parser.add_argument(
        "--tokenizer-model", type=Path, help="use this sentencepiece model instead of training one"
    )
    return parser.parse_args()


def documents(text: str, at_least: int = DOCUMENT_CHARACTERS) -> Iterator[str]:
    """Yields documents: consecutive paragraphs joined until they have at least `at_least` characters."""
    held: list[str] = []
    size = 0
    for paragraph in text.split("\n\n"):
        if not paragraph.strip():
            continue
        held.append(paragraph.strip("\n"))
        size += len(paragraph)
        if size >= at_least:
            yield "\n\n".join(held)
            held, size = [], 0
    if held:
        yield "\n\n".join(held)


def train_tokenizer(text: str, vocab_size: int) -> bytes:
    """Trains a BPE model of `vocab_size` pieces and returns the bytes of its .model file.

    Line ends are pieces of their own, and characters that have no piece are encoded as bytes.
    """
    model = io.BytesIO()
    lines = (line for line in text.split("\n") if line)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=lines,
        model_writer=model,
        model_type="bpe",
        vocab_size=vocab_size,
        byte_fallback=True,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        add_dummy_prefix=False,
        user_defined_symbols=["\n", EOD_PIECE],
        num_threads=1,
        minloglevel=2,
    )
    return model.getvalue()


def write_atomically(path: Path, content: bytes) -> None:
    """Writes a file completely or not at all."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    os.replace(beside, path)


def main() -> None:
    args = parse_args()
    text = args.input.read_text(encoding="utf-8")
    if not text.strip():
        raise SystemExit(f"{args.input} contains no text")
    prefix: Path = args.output_prefix
    prefix.parent.mkdir(parents=True, exist_ok=True)

    model = (
        args.tokenizer_model.read_bytes() if args.tokenizer_model else train_tokenizer(text, args.vocab_size)
    )
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=model)
    eod = tokenizer.piece_to_id(EOD_PIECE)
    if eod == tokenizer.unk_id():
        raise SystemExit(f"the tokenizer has no piece {EOD_PIECE}")

    parts = {ending: prefix.with_name(f"{prefix.name}.{ending}.part") for ending in ("bin", "idx")}
    builder = IndexedDatasetBuilder(str(parts["bin"]), dtype=DType.optimal_dtype(tokenizer.vocab_size()))
    tokens = 0
    for document in tqdm(list(documents(text)), desc="encode", unit="doc", dynamic_ncols=True, disable=None):
        ids = tokenizer.encode(document) + [eod]
        builder.add_item(torch.from_numpy(numpy.array(ids, dtype=numpy.int64)))
        builder.end_document()
        tokens += len(ids)
    builder.finalize(str(parts["idx"]))

    # The index does not refer to the data file, so the order of the renames does not matter. The model is first.
    write_atomically(prefix.with_name(f"{prefix.name}.model"), model)
    for ending, part in parts.items():
        os.replace(part, prefix.with_name(f"{prefix.name}.{ending}"))
    print(
        f"{tokens} tokens, {len(builder.document_indices) - 1} documents, vocabulary {tokenizer.vocab_size()}: "
        f"{prefix}.bin, .idx, .model"
    )


if __name__ == "__main__":
    main()
