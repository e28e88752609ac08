"""Runs preprocess_data.py of MindSpeed-LLM for several data sets in one process, and prints what it wrote as text.

    python preprocess.py SCRIPT FOLDER

FOLDER has cases.json: name -> {"arguments": arguments beside the common ones, "rows": the input, "info": of dataset_info.json}.
Prints a JSON object: name -> key of the data set -> its samples as text, without the labels that are ignored.
"""

from __future__ import annotations

import json
import logging
import runpy
import sys
import traceback
from pathlib import Path

import torch  # noqa: F401 before transformers
from transformers import AutoTokenizer

# Upstream's checkout has a package `tests` of its own, so this one is not found by its full name.
sys.path.insert(0, str(Path(__file__).parent))
import byte_tokenizer


def written(tokenizer, folder: Path) -> dict[str, list[str]]:
    """The samples of each data set in a folder. The name of a file ends with the key and the level."""
    from megatron.core.datasets.indexed_dataset import IndexedDataset

    found = {}
    for file in sorted(folder.glob("out*.idx")):
        samples = IndexedDataset(str(file.with_suffix("")))
        texts = [tokenizer.decode([int(word) for word in sample if word >= 0]) for sample in samples]
        found[file.stem.removeprefix("out_").removeprefix("packed_").removesuffix("_document")] = texts
    return found


def main(script: str, folder: Path) -> None:
    logging.disable(logging.INFO)
    byte_tokenizer.write(folder / "tokenizer")
    tokenizer = AutoTokenizer.from_pretrained(folder / "tokenizer")
    answers: dict[str, object] = {}
    for name, case in json.loads((folder / "cases.json").read_text()).items():
        place = folder / name
        place.mkdir()
        (place / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in case["rows"]))
        (place / "dataset_info.json").write_text(json.dumps({"rows.jsonl": {"file_name": "rows.jsonl"}}))
        words = f"""--input {place / "rows.jsonl"} --output-prefix {place / "out"} --tokenizer-type PretrainedFromHF
            --tokenizer-name-or-path {folder / "tokenizer"} --cache-dir {place / "cache"} --workers 1 {case["arguments"]}"""
        sys.argv = [script, *words.format(place=place).split()]
        try:
            runpy.run_path(script, run_name="__main__")
            answers[name] = written(tokenizer, place)
        except (Exception, SystemExit) as error:  # upstream's own error is the answer of its case
            traceback.print_exc()
            answers[name] = f"{type(error).__name__}: {error}"
    print("written", json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
