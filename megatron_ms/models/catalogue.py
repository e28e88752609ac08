"""Reads the recipes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..config.document import RECIPES
from ..config.training import About, Dataset, Model
from ..plan import geometry

# Words of a model that say no more of it than a size: YAML reads 1e-6 as a text.
_SIZES = ("norm_epsilon", "untie_embeddings_and_output_weights")


@dataclass(frozen=True)
class Recipe:
    """A recipe: its name, family, the published number of parameters in billions, the geometry, and tokens of a sample."""

    name: str
    family: str
    published: str
    form: geometry.Geometry
    length: int


def recipes() -> list[Recipe]:
    """All recipes, by name."""
    return [read(path.stem) for path in files()]


def files() -> list[Path]:
    return sorted(RECIPES.glob("*.yaml"))


def read(name: str) -> Recipe:
    """The recipe of a name, which is that of a file."""
    values = content(RECIPES / f"{name}.yaml")
    model, about = Model.model_validate(values["model"]), About.model_validate(values["about"])
    length = Dataset.model_validate(values["dataset"]).sequence_length
    return Recipe(
        name, about.family, about.published, geometry.of(model, length, model.model_extra or {}), length
    )


def architecture(name: str) -> tuple[str, ...]:
    """What a recipe says of its model beside sizes: two recipes of a family that differ here have other layers or positions."""
    given = content(RECIPES / f"{name}.yaml")["model"]
    found = {key: value for key, value in given.items() if isinstance(value, (bool, str, list))}
    return tuple(f"{key}={value}" for key, value in sorted(found.items()) if key not in _SIZES)


def content(file: Path) -> dict[str, Any]:
    """The sections of one of our own recipes. OmegaConf, which recipes do not need, would take ten times as long."""
    return dict(yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader))
