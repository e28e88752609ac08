"""The level of each family, computed from proofs that passed.

A test that proves something of a family calls `record` when it has passed. With MSADAPTER_RECORD_EVIDENCE=1 this adds a line
to evidence.tsv. Levels are never written by hand: `python -m megatron_ms.models.levels` computes levels.yaml from the lines,
and a test compares the two.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import yaml

from ..convert.steps import write_atomically
from . import catalogue

EVIDENCE = Path(__file__).with_name("evidence.tsv")
LEVELS = Path(__file__).with_name("levels.yaml")
PROOFS = {
    "trains": "the recipe trains at toy size with upstream's program",
    "logits": "the converted Hugging Face model has its logits",
    "back": "converted there and back it is the same bit for bit",
    "generates": "greedy tokens equal those of transformers",
    "lora": "the merged model has the output of model and adapter",
    "hf": "without Megatron: LoRA trains, generation equals whole forward passes, and merging keeps the output",
}
_ALL = set(PROOFS) - {"hf"}
_WANTED = {"released": _ALL, "validated": {"trains", "logits", "back"}, "preliminary": {"trains"}}
UNTESTED, PROVEN = "untested", "proven"
_COLUMNS = ("family", "proof", "test")


def record(family: str, proof: str, test: str) -> None:
    """Adds a proof that has just passed to the evidence, if the run asks for it.

    Raises:
        KeyError: there is no such proof.
    """
    PROOFS[proof]
    if os.environ.get("MSADAPTER_RECORD_EVIDENCE") == "1":
        rows = sorted({*_rows(), (family, proof, test)})
        lines = ["\t".join(_COLUMNS), *("\t".join(row) for row in rows)]
        write_atomically(EVIDENCE, "\n".join(lines) + "\n")


def _rows() -> list[tuple[str, str, str]]:
    if not EVIDENCE.is_file():
        return []
    with EVIDENCE.open(encoding="utf-8", newline="") as stream:
        return [(row["family"], row["proof"], row["test"]) for row in csv.DictReader(stream, delimiter="\t")]


def level(proofs: set[str]) -> str:
    """The highest level whose proofs are all there."""
    return next((name for name, wanted in _WANTED.items() if wanted <= proofs), UNTESTED)


def computed() -> dict[str, dict[str, str]]:
    """Family -> its level with Megatron's programs, and whether it is proven with transformers alone."""
    found = {}
    for name in sorted({catalogue.content(file)["about"]["family"] for file in catalogue.files()}):
        proofs = {proof for family, proof, _ in _rows() if family == name}
        found[name] = {"megatron": level(proofs), "hf": PROVEN if "hf" in proofs else UNTESTED}
    return found


def stored() -> dict[str, dict[str, str]]:
    """What levels.yaml says."""
    return dict(yaml.safe_load(LEVELS.read_text(encoding="utf-8")))


def main() -> None:
    """Writes levels.yaml."""
    head = "# Computed by `python -m megatron_ms.models.levels` from evidence.tsv; do not edit by hand.\n"
    write_atomically(LEVELS, head + yaml.safe_dump(computed(), sort_keys=True, default_flow_style=None))


if __name__ == "__main__":
    main()
