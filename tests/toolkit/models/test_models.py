"""The recipes have the published sizes, and levels come from evidence alone."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.models import catalogue, levels, page

RECIPES = catalogue.recipes()
# The report of GLM-4.5 counts a layer for the prediction of further tokens, but no embeddings.
COUNTED_OTHERWISE = {"glm-4.5", "glm-4.5-air"}
FAMILIES = {
    "Aquila", "Aquila2", "Baichuan", "Baichuan2", "Bloom", "ChatGLM3", "CodeLlama", "DeepSeek-V3", "GLM-4.5", "GPT-3", "GPT-OSS",
    "Gemma", "Gemma 2", "InternLM", "InternLM2", "LLaMA", "LLaMA2", "LLaMA3", "Mistral", "Mixtral", "Qwen", "Qwen1.5", "Qwen2.5",
    "Qwen3", "Qwen3-MoE", "Yi",
}  # fmt: skip


def test_every_family_has_a_recipe() -> None:
    assert {recipe.family for recipe in RECIPES} == FAMILIES


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_the_number_of_parameters_is_the_published_one(recipe) -> None:
    """To the last published digit."""
    published = Decimal(recipe.published)
    counted = Decimal(recipe.form.parameters()) / 10**9
    digit = Decimal(10) ** int(published.as_tuple().exponent)
    assert abs(counted - published) <= (published / 100 if recipe.name in COUNTED_OTHERWISE else digit / 2)


@pytest.mark.parametrize(
    ("name", "billions"), [("mixtral-8x7b", 12.9), ("qwen3-30b-a3b", 3.3), ("qwen3-235b-a22b", 22.2), ("gpt-oss-120b", 5.7)]
)  # fmt: skip
def test_parameters_that_a_token_uses(name, billions) -> None:
    assert catalogue.read(name).form.active_parameters() / 1e9 == pytest.approx(billions, abs=0.06)


@pytest.mark.parametrize("name", sorted({recipe.name for recipe in RECIPES} - {"gpt3-175b"}))
def test_nothing_is_dropped_out(name) -> None:
    """Megatron's own default is 0.1, and transformers has 0 for these models. GPT-3 keeps 0.1, as GPT-2 has it."""
    model = catalogue.content(catalogue.RECIPES / f"{name}.yaml")["model"]
    assert (model["attention_dropout"], model["hidden_dropout"]) == (0.0, 0.0)


def test_a_bias_of_the_output_has_the_layers_that_have_it() -> None:
    """MindSpeed-LLM takes --add-dense-bias with all layers, and has the bias in those of this file alone."""
    for file in catalogue.files():
        model = catalogue.content(file)["model"]
        if model.get("add_dense_bias"):
            assert model["spec"] == ["mindspeed_llm.tasks.models.spec.phi35_moe_spec", "layer_spec"], (
                file.name
            )


def test_levels_are_computed() -> None:
    assert levels.stored() == levels.computed(), "run: python -m megatron_ms.models.levels"


@pytest.mark.parametrize(
    ("proofs", "level"),
    [
        (set(), "untested"),
        ({"logits", "back"}, "untested"),
        ({"trains"}, "preliminary"),
        ({"trains", "logits", "back"}, "validated"),
        ({"trains", "logits", "generates", "lora"}, "preliminary"),
        (set(levels.PROOFS) - {"hf"}, "released"),
        ({"hf"}, "untested"),
    ],
)
def test_a_level_wants_all_its_proofs(proofs, level) -> None:
    assert levels.level(proofs) == level


def test_evidence_is_recorded_once_and_only_on_request(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(levels, "EVIDENCE", tmp_path / "evidence.tsv")
    levels.record("Yi", "trains", "a::b", "MindSpeed-LLM 2.3.0", "yi-34b", "loss 6 to 5")
    assert not levels.EVIDENCE.exists() and levels.computed()["yi-34b"]["megatron"] == "untested"
    monkeypatch.setenv("MSADAPTER_RECORD_EVIDENCE", "1")
    monkeypatch.setattr(levels, "_commit", lambda: "c0ffee")
    levels.record("Yi", "trains", "a::b", "MindSpeed-LLM 2.3.0", "yi-34b", "loss 6 to 5")
    levels.record("Yi", "trains", "a::b", "MindSpeed-LLM 26.1.0", "yi-34b", "loss 5 to 4")
    head = "family\tproof\ttest\trelease\trecipe\tvalue\tcommit\n"
    row = "Yi\ttrains\ta::b\tMindSpeed-LLM 26.1.0\tyi-34b\tloss 5 to 4\tc0ffee\n"
    assert levels.EVIDENCE.read_text() == head + row
    levels.record("Qwen", "hf", "c::d", "transformers 5", "qwen-7b", "12 tokens")
    found = levels.computed()
    assert found["yi-34b"] == {"megatron": "preliminary", "hf": "untested", "level": "preliminary"}
    assert found["qwen-72b"] == {"megatron": "untested", "hf": "proven", "level": "validated with hf"}
    with pytest.raises(KeyError):
        levels.record("Yi", "sings", "a::b", "x", "yi-34b", 1)


def test_a_proof_counts_for_recipes_of_the_same_architecture(tmp_path, monkeypatch) -> None:
    """Sizes do not matter, and other positions or norms do. A second recipe has a line of its own."""
    monkeypatch.setattr(levels, "EVIDENCE", tmp_path / "evidence.tsv")
    monkeypatch.setenv("MSADAPTER_RECORD_EVIDENCE", "1")
    for proof in ("trains", "logits", "back"):
        levels.record("Baichuan", proof, "a::b", "x", "baichuan-7b", 1)
    levels.record("Baichuan", "trains", "a::b", "x", "baichuan-13b", 1)
    levels.record("GLM-4.5", "hf", "a::b", "x", "glm-4.5", 1)
    levels.record("Qwen2.5", "trains", "a::b", "x", "qwen2.5-0.5b", 1)
    found = levels.computed()
    assert (
        found["baichuan-7b"]["megatron"] == "validated" and found["baichuan-13b"]["megatron"] == "preliminary"
    )
    assert found["glm-4.5"]["hf"] == "proven" and found["glm-4.5-air"]["hf"] == "untested"
    assert found["qwen2.5-72b"]["megatron"] == "preliminary"
    assert len(levels.rows()) == 6


def test_lora_may_be_proven_with_the_other_backend(tmp_path, monkeypatch) -> None:
    """Megatron-LM alone has no LoRA. The level names the backend that has it."""
    monkeypatch.setattr(levels, "EVIDENCE", tmp_path / "evidence.tsv")
    monkeypatch.setenv("MSADAPTER_RECORD_EVIDENCE", "1")
    found = []
    for proof in ("logits", "back", "trains", "hf", "generates", "lora"):
        levels.record("GPT-OSS", proof, "a::b", "x", "gpt-oss-20b", 1)
        known = levels.computed()["gpt-oss-120b"]
        found.append((known["megatron"], known["level"]))
    assert found == [
        ("untested", "untested"),
        ("untested", "untested"),
        ("validated", "validated"),
        ("validated", "validated"),
        ("validated", "released (LoRA with hf)"),
        ("released", "released"),
    ]


def test_every_line_of_the_evidence_is_whole() -> None:
    """With its release, its recipe, what was measured, and the commit."""
    for row in levels.rows():
        assert all(row), row
        assert row.recipe in {recipe.name for recipe in RECIPES}, row


def test_the_page_is_current() -> None:
    assert page.PAGE.read_text(encoding="utf-8") == page.text(), "run: python -m megatron_ms.models.page"


def test_the_page_says_what_was_measured(tmp_path, monkeypatch) -> None:
    head = "\t".join(levels.Row._fields)
    row = "Yi\tlogits\tpython -m a.b\tMindSpeed-LLM 26.1.0\tyi-34b\tTP 2: 1e-6\tc0ffee"
    (tmp_path / "evidence.tsv").write_text(f"{head}\n{row}\n")
    monkeypatch.setattr(levels, "EVIDENCE", tmp_path / "evidence.tsv")
    found = page.text()
    assert "\n| logits | TP 2: 1e-6 | yi-34b | MindSpeed-LLM 26.1.0 | `a.b` | c0ffee |\n" in found
    assert "### Aquila\n\nNo proof has passed." in found
    for recipe in RECIPES:
        assert found.count(f"| `{recipe.name}` | {recipe.family} |") == 1


def test_the_readmes_count_the_proven_families() -> None:
    found = levels.families()
    released = sum(any(level.startswith("released") for level in known) for known in found.values())
    root = Path(__file__).resolve().parents[3]
    english, chinese = (
        (root / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh-CN.md")
    )
    assert f"recipes of {len(found)} model families ({released} of them proven" in english
    assert f"{len(found)} 个模型系列的配方（其中 {released} 个系列" in chinese


def test_the_command_lists_them(capsys, tmp_path) -> None:
    assert commands.main(["models", "qwen2.5"]) == 0
    out = capsys.readouterr().out
    assert out.count("\nqwen2.5-") == 7 and "7 recipes: 7 released" in out
    (tmp_path / "mine.yaml").write_text("recipe: yi-34b\n")
    assert commands.main(["models", str(tmp_path / "mine.yaml")]) == 0
    assert "\nyi-34b " in (out := capsys.readouterr().out) and "1 recipes: 1 released" in out
    assert commands.main(["models", str(tmp_path / "mine.yaml"), "recipe=gemma-7b"]) == 0
    assert "\ngemma-7b " in capsys.readouterr().out
    (tmp_path / "mine.yaml").write_text("train: {lr: 1}\n")
    assert commands.main(["models", str(tmp_path / "mine.yaml")]) == 2
    assert "names none of our recipes (it has no key recipe)" in capsys.readouterr().err
    assert commands.main(["models", "nothing"]) == 2
    assert "no recipe has nothing in its name" in capsys.readouterr().err
