"""Reads a configuration: the YAML file, the recipe that it names, and KEY=VALUE from the command line."""

from __future__ import annotations

import difflib
import functools
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import ValidationError

from ..errors import UserError
from .section import Section, flags_of
from .sections import SECTIONS, section_class

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
_TOP = ("recipe", "name")
_MOST = 1 << 20  # bytes of a configuration file
_DEEPEST = 50  # lists and mappings inside one another; libyaml's stack overflows at some ten thousand
S = TypeVar("S", bound=Section)


@dataclass(frozen=True)
class Document:
    """A configuration that has been read.

    values: section -> key -> value. origins: dotted key -> where it was given, such as "train.yaml, line 3".
    """

    path: Path
    values: Mapping[str, Any]
    origins: Mapping[str, str]

    def where(self, key: str) -> str:
        """Where a key was given. For a key that is absent: where its section begins, else the file."""
        while key:
            if key in self.origins:
                return self.origins[key]
            key = key.rpartition(".")[0]
        return str(self.path)

    def layer(self, key: str) -> int:
        """What gave a key: 0 for a recipe, 1 for the file, 2 for the command line. A higher one goes before a lower one."""
        where = self.where(key)
        if where.startswith("command line"):
            return 2
        return int(where == str(self.path) or where.startswith(f"{self.path}, "))

    def error(self, key: str, message: str) -> UserError:
        """The error for a value of the configuration."""
        return UserError(f"{self.where(key)}: {key}: {message}")

    def section(self, name: str, kind: type[S]) -> S:
        """The checked values of a section. A section that is absent has its defaults.

        Raises:
            UserError: a key is unknown, missing or has a wrong value. The message has a line for each.
        """
        given = self.values.get(name)
        if given is None:
            given = {}
        if not isinstance(given, dict):
            raise self.error(name, f"must be a section with keys, not {given!r}")
        try:
            return kind.model_validate(given)
        except ValidationError as error:
            found = [self._said(name, kind, dict(one)) for one in error.errors()]
            raise UserError("\n".join(found)) from None

    def _said(self, name: str, kind: type[Section], error: Mapping[str, Any]) -> str:
        """One line for one of pydantic's errors."""
        place = ".".join([name, *map(str, error["loc"])])
        if error["type"] == "extra_forbidden" and len(error["loc"]) == 1:
            message = unknown(str(error["loc"][0]), kind.model_fields, f"key of {name}")
        elif error["type"] == "missing":
            message = "is missing; " + (kind.model_fields[str(error["loc"][0])].description or "give a value")
        else:
            message = f"{error['msg'][0].lower()}{error['msg'][1:]}, not {error['input']!r}"
        return str(self.error(place, message))


def unknown(name: str, known: Iterable[str], what: str) -> str:
    """The message for an unknown name: it names the nearest one that exists."""
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"there is no such {what}" + (f"; did you mean {near[0]}?" if near else "")


def load(path: str | Path, overrides: Iterable[str] = ()) -> Document:
    """Reads a configuration file with the recipe that its key `recipe` names, and changes values by KEY=VALUE.

    Raises:
        UserError: a file is absent or no YAML, a section is unknown, or KEY=VALUE is malformed.
    """
    place = Path(path)
    layers = [_read_file(place), _read_overrides(overrides)]
    recipe = layers[1][0].get("recipe", layers[0][0].get("recipe"))
    seen = [place.resolve()]
    while recipe is not None:
        where = (layers[-1][1] | layers[0][1]).get("recipe", str(place))
        file = _recipe_file(str(recipe), where)
        if file.resolve() in seen:
            raise UserError(f"{where}: recipe: {recipe} leads back to itself")
        seen.append(file.resolve())
        layers.insert(0, _read_file(file))
        recipe = layers[0][0].get("recipe")
    origins: dict[str, str] = {}
    for values, places in layers:
        origins |= _checked_names(values, places)
    try:
        merged = OmegaConf.merge(*(OmegaConf.create(_own_names(values)) for values, _ in layers))
        whole = OmegaConf.to_container(merged, resolve=True)
    except OmegaConfBaseException as error:
        key = str(getattr(error, "full_key", "") or "")
        raise UserError(f"{origins.get(key, str(place))}: {key}: {str(error).splitlines()[0]}") from None
    assert isinstance(whole, dict)
    return Document(place, {str(name): value for name, value in whole.items()}, origins)


Layer = tuple[dict[str, Any], dict[str, str]]


def _recipe_file(name: str, where: str) -> Path:
    """The file of a recipe: one of ours by its name, or a path that ends with .yaml."""
    if name.endswith((".yaml", ".yml")):
        file = Path(name)
        if not file.is_file():
            raise UserError(f"{where}: recipe: there is no file {name}")
        return file
    file = RECIPES / f"{name}.yaml"
    if "/" in name or not file.is_file():
        known = [path.stem for path in RECIPES.glob("*.yaml")]
        message = unknown(name, known, "recipe")
        raise UserError(f"{where}: recipe: {message} (`python -m megatron_ms models` lists all)")
    return file


def _read_file(path: Path) -> Layer:
    try:
        if path.stat().st_size > _MOST:
            raise UserError(f"{path} is larger than a megabyte: is it a configuration?")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a YAML file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: byte {error.start} is not UTF-8 text: is it a YAML file?") from None
    try:
        _check_depth(text, path)
        values = OmegaConf.to_container(OmegaConf.load(io.StringIO(text)), resolve=False)
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        place = error.problem_mark
        tabs = place is not None and "\t" in text.split("\n")[place.line][: place.column + 1]
        hint = ": YAML is indented with spaces, never with tabs" if tabs else ""
        raise UserError(f"{path}{line}: {error.problem or 'this is not YAML'}{hint}") from None
    except (yaml.YAMLError, OmegaConfBaseException, OSError) as error:
        raise UserError(f"{path}: {str(error).splitlines()[0]}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path}: the file must have sections, such as `data:`")
    origins: dict[str, str] = {}
    _lines(node, path, "", origins)
    return _normal(values, origins)


def _check_depth(text: str, path: Path) -> None:
    """Refuses lists and mappings that lie too deep, before they are built. This parser keeps its state outside the stack."""
    depth = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise UserError(
                f"{path}, line {event.start_mark.line + 1}: more than {_DEEPEST} lists or mappings inside one another"
            )


def _lines(node: yaml.Node | None, path: Path, prefix: str, found: dict[str, str]) -> None:
    """Collects where each key of a file stands."""
    if not isinstance(node, yaml.MappingNode):
        return
    for name, value in node.value:
        key = f"{prefix}{name.value}"
        found[key] = f"{path}, line {name.start_mark.line + 1}"
        _lines(value, path, f"{key}.", found)


def _read_overrides(overrides: Iterable[str]) -> Layer:
    origins = {}
    words = list(overrides)
    for word in words:
        name, sign, _ = word.partition("=")
        if not sign or not name or name.startswith("-"):
            raise UserError(f"{word}: is not KEY=VALUE, such as train.lr=1e-4")
        origins[name] = f"command line, {word}"
    try:
        values = OmegaConf.to_container(OmegaConf.from_dotlist(words), resolve=False)
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise UserError(f"KEY=VALUE: {str(error).splitlines()[0]}") from None
    assert isinstance(values, dict)
    return _normal(values, origins)


def _normal(values: Mapping[Any, Any], origins: Mapping[str, str]) -> Layer:
    """The same with underscores instead of dashes in the names of sections and of their keys."""
    renamed: dict[str, Any] = {}
    for section, content in values.items():
        keys = content
        if isinstance(content, dict):
            keys = {}
            for name, value in content.items():
                own = str(name).replace("-", "_")
                if own in keys:
                    place = origins.get(f"{section}.{name}", "")
                    raise UserError(f"{place}: {section}.{name}: is given twice, with dashes and underscores")
                keys[own] = value
        renamed[str(section).replace("-", "_")] = keys
    places = {}
    for key, place in origins.items():
        parts = key.split(".", 2)
        places[".".join([part.replace("-", "_") for part in parts[:2]] + parts[2:])] = place
    return renamed, places


def _checked_names(values: Mapping[str, Any], origins: Mapping[str, str]) -> dict[str, str]:
    """The origins, with upstream's flags replaced by our keys. UserError if a section is unknown."""
    for name in values:
        if name not in SECTIONS and name not in _TOP:
            message = unknown(name, [*SECTIONS, *_TOP], "section")
            raise UserError(f"{origins.get(name, '')}: {name}: {message}")
    moves = _moves()
    return {moves.get(key, key): place for key, place in origins.items()}


def _moves() -> dict[str, str]:
    """SECTION.FLAG -> SECTION.KEY for the flags that a key stands for: in its own section and in those that take flags."""
    return _moves_of(tuple(SECTIONS))


@functools.cache
def _moves_of(names: tuple[str, ...]) -> dict[str, str]:
    kinds = {name: section_class(name) for name in names}
    own = {f"{name}.{key}" for name, kind in kinds.items() for key in kind.model_fields}
    moves: dict[str, str] = {}
    for name, kind in kinds.items():
        for flag, key in flags_of(kind).items():
            takers = [taker for taker in kinds if taker == name or kinds[taker].takes_flags()]
            moves |= {f"{taker}.{flag}": f"{name}.{key}" for taker in takers}
    return {flag: key for flag, key in moves.items() if flag not in own}


def _own_names(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with each upstream flag that one of our keys stands for moved to this key."""
    moves = _moves()
    result: dict[str, Any] = {
        name: {} if isinstance(value, dict) else value for name, value in values.items()
    }
    for name, content in values.items():
        if not isinstance(content, dict):
            continue
        for own, value in content.items():
            section, _, key = moves.get(f"{name}.{own}", f"{name}.{own}").partition(".")
            target = result.setdefault(section, {})
            if key in target and target[key] != value:
                raise UserError(
                    f"{section}.{key}: is given twice with different values, also as {name}.{own}"
                )
            target[key] = value
    return result
