"""Files, recipes, KEY=VALUE and the errors of a configuration."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from megatron_ms import config
from megatron_ms.config import document, sections
from megatron_ms.errors import UserError


class Shape(config.Section):
    layers: int = config.key(2, "number of layers", flag="num-layers", gt=0)
    width: int = config.key(help="give a width")
    tied: bool = config.key(False)


class Speed(config.Section):
    model_config = {"extra": "allow", "frozen": True}
    rate: float = config.key(1e-3, "learning rate", flag="lr")


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Writes a file and reads it, with two sections and a recipe `base`."""
    table = {"shape": f"{__name__}:Shape", "speed": f"{__name__}:Speed"}
    monkeypatch.setitem(sys.modules, __name__, sys.modules[Shape.__module__])
    monkeypatch.setattr(sections, "SECTIONS", table)
    monkeypatch.setattr(document, "SECTIONS", table)
    monkeypatch.setattr(document, "RECIPES", tmp_path / "recipes")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes/base.yaml").write_text("shape:\n  layers: 4\n  width: 8\nspeed:\n  rate: 0.5\n")

    def read(text: str, *overrides: str) -> config.Document:
        path = tmp_path / "run.yaml"
        path.write_text(text)
        return config.load(path, overrides)

    return read


def test_a_file_lies_over_its_recipe_and_the_command_line_over_both(read) -> None:
    found = read("recipe: base\nshape:\n  width: 16\n", "speed.rate=1e-5", "shape.tied=true")
    assert found.section("shape", Shape) == Shape(layers=4, width=16, tied=True)
    assert found.section("speed", Speed).rate == 1e-5
    assert found.where("shape.layers").endswith("recipes/base.yaml, line 2")
    assert found.where("shape.width").endswith("run.yaml, line 3")
    assert found.where("speed.rate") == "command line, speed.rate=1e-5"


def test_a_recipe_may_be_named_on_the_command_line(read) -> None:
    assert read("speed:\n  rate: 1\n", "recipe=base").section("shape", Shape).width == 8


@pytest.mark.parametrize(
    "text",
    [
        "shape: {num-layers: 3, width: 1}",
        "shape: {num_layers: 3, width: 1}",
        "shape: {width: 1}\nspeed: {num-layers: 3}",
    ],
)
def test_the_flag_of_a_key_is_the_key(read, text) -> None:
    """Also where it changes a recipe that uses the key."""
    found = read(f"recipe: base\n{text}")
    assert found.section("shape", Shape).layers == 3
    assert found.section("speed", Speed).model_extra == {}
    assert found.where("shape.layers").endswith((", line 2", ", line 3"))


def test_further_flags_are_kept_under_one_name(read) -> None:
    found = read("speed:\n  adam-beta1: 0.9\n", "speed.adam_beta1=0.8")
    assert found.section("speed", Speed).model_extra == {"adam_beta1": 0.8}
    assert found.where("speed.adam_beta1") == "command line, speed.adam_beta1=0.8"


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("shape:\n  width: 1\n  layer: 2\n", [], r"run.yaml, line 3: shape.layer: there is no such key .*; did you mean layers\?"),
        ("shape:\n  layers: 2\n", [], r"run.yaml, line 1: shape.width: is missing; give a width"),
        ("shape:\n  width: many\n", [], r"run.yaml, line 2: shape.width: input should be a valid integer.*, not 'many'"),
        ("shape:\n  width: 1\n", ["shape.layers=0"], r"command line, shape.layers=0: shape.layers: .* greater than 0, not 0"),
        ("shape: 3\n", [], r"run.yaml, line 1: shape: must be a section with keys, not 3"),
        ("shap:\n  width: 1\n", [], r"run.yaml, line 1: shap: there is no such section; did you mean shape\?"),
        ("shape:\n  width: [1\n", [], r"run.yaml, line 3: .*expected ',' or ']'"),
        ("shape:\n\twidth: 1\n", [], r"run.yaml, line 2: found character .* YAML is indented with spaces, never with tabs"),
        ("shape:\n  width: 1\n  width: 2\n", [], r"run.yaml, line 3: found duplicate key width"),
        ("- 1\n", [], r"run.yaml: the file must have sections"),
        ("shape:\n  width: ${nothing}\n", [], r"run.yaml, line 2: shape.width: .*nothing.*not found"),
        ("recipe: bass\n", [], r"run.yaml, line 1: recipe: there is no such recipe; did you mean base\?"),
        ("recipe: none.yaml\n", [], r"run.yaml, line 1: recipe: there is no file none.yaml"),
        ("shape:\n  width: 1\n", ["layers"], r"layers: is not KEY=VALUE"),
        ("speed:\n  adam-beta1: 1\n  adam_beta1: 2\n", [], r"speed.adam.beta1: is given twice"),
        ("speed:\n  rate: 1\n  lr: 2\n", [], r"speed.rate: is given twice with different values, also as speed.lr"),
    ],
)  # fmt: skip
def test_errors_name_file_line_and_key(read, text, overrides, message) -> None:
    with pytest.raises(UserError, match=message):
        found = read(text, *overrides)
        found.section("shape", Shape)


def test_every_wrong_key_has_a_line(read) -> None:
    with pytest.raises(UserError) as error:
        read("shape:\n  width: x\n  layers: -1\n").section("shape", Shape)
    assert len(str(error.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no such file"),
        (b"\xff\xfe", "not UTF-8 text"),
        (b" " * 2**21, "larger than a megabyte"),
        (b"run:\n  a: " + b"[" * 10**5 + b"]" * 10**5, "line 2: more than 50 lists"),
    ],
)  # fmt: skip
def test_files_that_are_no_configuration(read, tmp_path: Path, content, message) -> None:
    path = tmp_path / "other.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UserError, match=message):
        config.load(path)


def test_a_folder_is_no_configuration(tmp_path) -> None:
    with pytest.raises(UserError, match="is a folder"):
        config.load(tmp_path)


def test_a_recipe_that_names_itself(read, tmp_path) -> None:
    (tmp_path / "recipes/base.yaml").write_text("recipe: base\n")
    with pytest.raises(UserError, match="leads back to itself"):
        read("recipe: base\n")
