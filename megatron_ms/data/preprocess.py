"""Text to Megatron's .bin/.idx: train a sentencepiece tokenizer on the text, encode it, write the indexed data set.

The pair is written by megatron.core's own IndexedDatasetBuilder, so it is byte for byte what Megatron's tools write.
The script imports only torch and megatron.core beside sentencepiece: it runs the same on PyTorch.

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
        "--input", type=Path, required=True, help="UTF-8 text, paragraphs parted by blank lines"
    )
    parser.add_argument(
        "--output-prefix", type=Path, required=True, help="PREFIX.bin, .idx and .model are written"
    )
    parser.add_argument("--vocab-size", type=int, default=2048, help="pieces of the tokenizer (default 2048)")
    parser.add_argument("--tokenizer-model", type=Path, help="use this sentencepiece model, do not train one")
    return parser.parse_args()


def documents(text: str, at_least: int = DOCUMENT_CHARACTERS) -> Iterator[str]:
    """Neighbouring paragraphs together until they hold at_least characters: one document each."""
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
    """A BPE model of vocab_size pieces (bytes of a .model file); line ends are pieces, unknown characters fall to bytes."""
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
    """The file appears whole or not at all."""
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(content)
    os.replace(beside, path)


def main() -> None:
    args = parse_args()
    text = args.input.read_text(encoding="utf-8")
    if not text.strip():
        raise SystemExit(f"{args.input} holds no text")
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

    # The index names nothing of the data file, so the order of renames does not matter; the model goes first.
    write_atomically(prefix.with_name(f"{prefix.name}.model"), model)
    for ending, part in parts.items():
        os.replace(part, prefix.with_name(f"{prefix.name}.{ending}"))
    print(
        f"{tokens} tokens, {len(builder.document_indices) - 1} documents, vocabulary {tokenizer.vocab_size()}: "
        f"{prefix}.bin, .idx, .model"
    )


if __name__ == "__main__":
    main()
