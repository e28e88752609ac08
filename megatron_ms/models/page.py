"""The page docs/models.md, made from the recipes and the recorded proofs.

    python -m megatron_ms.models.page        writes it

The commands that record proofs write evidence.tsv; run this one after them, as `python -m megatron_ms.models.levels`.
"""

from __future__ import annotations

from ..convert.steps import ROOT, write_atomically
from . import catalogue, levels

PAGE = ROOT / "docs" / "models.md"
_HEAD = """# Models and their proofs

Written by `python -m megatron_ms.models.page` from the recipes in `megatron_ms/recipes` and the proofs in
`megatron_ms/models/evidence.tsv`; do not edit by hand. `python -m megatron_ms models` shows the first table too.

[The toolkit](toolkit.md#levels-of-models) says what the levels mean, and [the conversion](toolkit_conversion.md) how families are
converted. The proofs below name the recipe whose architecture was proven, at toy size. They count for the recipes of the family
that differ from it in sizes alone.

## Recipes

`megatron` is the level with the programs of MindSpeed-LLM or Megatron-LM, `hf` says whether the model is proven with
`run.backend: hf`, and `level` is that of the backend that is proven further; "released (LoRA with hf)" says that LoRA is proven
with `run.backend: hf` and all else with Megatron's programs.
Parameters are counted from the recipe, in billions; `active` are those that a token uses, where there are experts.
"""
_PROOFS = """
## Proofs

Each cell says what was measured when the proof passed. Losses are those of the first and the last step; logits are differences as
parts of the largest logit.
"""


def text() -> str:
    """The whole page."""
    return _HEAD + "\n" + _recipes() + _PROOFS + "\n" + _proofs()


def _recipes() -> str:
    stored = levels.stored()
    lines = [
        "| recipe | family | parameters | active | layers | hidden | heads | length | megatron | hf | level |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for one in sorted(
        catalogue.recipes(), key=lambda recipe: (recipe.family.lower(), recipe.form.parameters())
    ):
        form, known = one.form, stored[one.name]
        active = f"{form.active_parameters() / 1e9:.2f}" if form.experts else ""
        cells = [
            f"`{one.name}`", one.family, f"{form.parameters() / 1e9:.3f}", active, form.layers, form.hidden, form.heads, one.length,
            known["megatron"], known["hf"], known["level"],
        ]  # fmt: skip
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def _proofs() -> str:
    """A part for each family, with a row for each of its proofs."""
    found: dict[str, list[str]] = {}
    for row in levels.rows():
        test = row.test.removeprefix("python -m ")
        cells = [row.proof, row.value, row.recipe, row.release, f"`{test}`", row.commit]
        found.setdefault(row.family, []).append("| " + " | ".join(cells) + " |")
    head = "| proof | measured | recipe | over | by | commit |\n|---|---|---|---|---|---|\n"
    names = sorted({recipe.family for recipe in catalogue.recipes()}, key=str.lower)
    parts = [
        f"### {name}\n\n" + (head + "\n".join(found[name]) if name in found else "No proof has passed.")
        for name in names
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Writes the page."""
    write_atomically(PAGE, text())


if __name__ == "__main__":
    main()
