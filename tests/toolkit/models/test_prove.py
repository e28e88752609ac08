"""The command that proves families at toy size: a sample of them, and that it fails where it must."""

from __future__ import annotations

import pytest

from megatron_ms.models import catalogue, levels, prove, prove_megatron
from megatron_ms.models.foreign import FOREIGN
from megatron_ms.models.toys import TOYS, VARIANTS
from tests.toolkit.inference.conftest import _torch  # noqa: F401
from tests.toolkit.packages import needs_packages

pytest.importorskip("transformers", reason="needs the extra hf")


def test_toys_are_of_families_that_have_recipes() -> None:
    assert not set(TOYS) & set(FOREIGN)
    for family, toy in (TOYS | FOREIGN).items():
        assert catalogue.content(catalogue.RECIPES / f"{toy.recipe}.yaml")["about"]["family"] == family


def test_sizes_with_other_architectures_are_trained_too() -> None:
    """The 13B models of Baichuan have other position embeddings than the toy that is converted."""
    own = catalogue.architecture(FOREIGN["Baichuan"].recipe)
    found = prove_megatron._architectures("Baichuan")
    assert {recipe for options, recipe in found.items() if options != own} == {"baichuan-13b"}
    assert list(prove_megatron._architectures("Qwen").values()) == ["qwen-7b"]
    assert list(prove_megatron._architectures("Qwen2.5").values()) == ["qwen2.5-0.5b"]
    for family, toys in VARIANTS.items():
        for toy in toys:
            assert catalogue.read(toy.recipe).family == family
            assert catalogue.architecture(toy.recipe) != catalogue.architecture(TOYS[family].recipe)


@needs_packages
@pytest.mark.parametrize("family", ["Qwen3", "Mixtral"])
def test_a_family_is_proven(family, tmp_path) -> None:
    found = prove.prove(TOYS[family], tmp_path)
    assert (
        found["tokens"] == 12 and found["last loss"] < found["first loss"] and found["merged logits"] < 1e-4
    )


def test_a_wrong_token_is_noticed() -> None:
    model = TOYS["Qwen2.5"].build()
    right = model.generate

    def wrong(*args, **options):
        found = right(*args, **options)
        found[0, -1] = (found[0, -1] + 1) % 200
        return found

    assert prove.generates(model) == 12
    model.generate = wrong
    with pytest.raises(ValueError, match="token 16 of generate is not the likeliest one"):
        prove.generates(model)


def test_a_family_that_fails_is_not_recorded(monkeypatch, capsys, tmp_path) -> None:
    def fail(toy, folder):
        raise ValueError("it is broken")

    monkeypatch.setattr(prove, "prove", fail)
    monkeypatch.setattr(levels, "record", lambda *words: pytest.fail("nothing was proven"))
    assert prove.main(["Yi"]) == 1
    assert "yi-34b: ValueError: it is broken" in capsys.readouterr().out
