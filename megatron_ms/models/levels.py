"""The level of each model, computed from proofs that passed.

A command that has proven something of a family calls `record`. With MSADAPTER_RECORD_EVIDENCE=1 this adds a line
to evidence.tsv, with what was measured, of which recipe, over which release of upstream, and at which commit of this project.
A proof counts for all recipes of the family that differ from that one in sizes alone. Levels are never written by hand:
`python -m megatron_ms.models.levels` computes levels.yaml from the lines, and a test compares the two.
"""

from __future__ import annotations

import csv
import functools
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

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
UNTESTED, PROVEN, HF = "untested", "proven", "hf"


class Row(NamedTuple):
    """A proof that has passed: of which family, by which test, over which release, of which recipe, and at which commit.

    value: what was measured.
    """

    family: str
    proof: str
    test: str
    release: str
    recipe: str
    value: str
    commit: str


def record(family: str, proof: str, test: str, release: str, recipe: str, value: object) -> None:
    """Adds a proof that has just passed to the evidence, if the run asks for it, in place of an earlier one of the recipe.

    release: of upstream, such as "MindSpeed-LLM 26.1.0". value: what was measured.

    Raises:
        KeyError: there is no such proof.
    """
    PROOFS[proof]
    if os.environ.get("MSADAPTER_RECORD_EVIDENCE") == "1":
        own = (family, proof, test)
        kept = [row for row in rows() if row[:3] != own or row.recipe not in ("", recipe)]
        kept.append(Row(*own, release, recipe, str(value), _commit()))
        lines = ["\t".join(Row._fields), *("\t".join(row) for row in sorted(kept))]
        write_atomically(EVIDENCE, "\n".join(lines) + "\n")


@functools.cache
def _commit() -> str:
    """The commit of this project when the first proof is recorded; "" outside of a repository."""
    words = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=10", "HEAD"]
    found = subprocess.run(words, capture_output=True, text=True, check=False)
    return found.stdout.strip()


def rows() -> list[Row]:
    """The recorded proofs."""
    if not EVIDENCE.is_file():
        return []
    with EVIDENCE.open(encoding="utf-8", newline="") as stream:
        found = csv.DictReader(stream, delimiter="\t", restval="", quoting=csv.QUOTE_NONE)
        return [Row(*(row[name] for name in Row._fields)) for row in found]


def level(proofs: set[str]) -> str:
    """The highest level whose proofs are all there."""
    return next((name for name, wanted in _WANTED.items() if wanted <= proofs), UNTESTED)


def computed() -> dict[str, dict[str, str]]:
    """Recipe -> its level with Megatron's programs, whether it is proven with transformers alone, and which of both counts."""
    recorded = rows()
    found = {}
    for file in catalogue.files():
        name, family = file.stem, catalogue.content(file)["about"]["family"]
        kind = catalogue.architecture(name)
        proofs = {
            row.proof
            for row in recorded
            if row.family == family and catalogue.architecture(row.recipe) == kind
        }
        megatron, hf = level(proofs), PROVEN if "hf" in proofs else UNTESTED
        found[name] = {"megatron": megatron, "hf": hf, "level": _overall(proofs)}
    return found


def _overall(proofs: set[str]) -> str:
    """The level with both backends.

    With hf nothing is converted, and transformers' own class computes, so what is proven there is a model that is validated. It is
    tuned there, too, so LoRA may be proven with hf where all else is proven with Megatron's programs.
    """
    megatron = level(proofs)
    if HF not in proofs or megatron == "released":
        return megatron
    if level(proofs | {"lora"}) == "released":
        return f"released (LoRA with {HF})"
    return megatron if megatron == "validated" else f"validated with {HF}"


def families() -> dict[str, set[str]]:
    """Family -> the levels of its recipes with both backends."""
    known = stored()
    found: dict[str, set[str]] = {}
    for file in catalogue.files():
        found.setdefault(catalogue.content(file)["about"]["family"], set()).add(known[file.stem]["level"])
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
