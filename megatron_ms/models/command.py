"""The command `models`."""

from __future__ import annotations

import argparse
import collections

from ..commands import add_overrides

HELP = "list the recipes, their sizes and how far each family is proven"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name",
        nargs="?",
        default="",
        metavar="NAME or CONFIG.yaml",
        help="list only recipes whose name contains this, or the one of a configuration",
    )
    add_overrides(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints a line for each recipe."""
    from ..errors import UserError
    from . import catalogue, levels

    stored = levels.stored()
    name = arguments.name.lower()
    known = catalogue.recipes()
    if name.endswith((".yaml", ".yml")):
        from .. import config

        name = str(config.load(arguments.name, arguments.overrides).values.get("recipe", ""))
        if name not in (recipe.name for recipe in known):
            raise UserError(f"{arguments.name}: names none of our recipes ({name or 'it has no key recipe'})")
        known = [recipe for recipe in known if recipe.name == name]
    recipes = [recipe for recipe in known if name in recipe.name]
    if not recipes:
        raise UserError(f"no recipe has {arguments.name} in its name")
    print(
        f"{'recipe':<18}{'family':<13}{'billions':>9}{'active':>8}{'layers':>8}{'hidden':>8}  {'megatron':<13}{'hf':<10}level"
    )
    for one in recipes:
        active = f"{one.form.active_parameters() / 1e9:8.2f}" if one.form.experts else " " * 8
        size = f"{one.form.parameters() / 1e9:>9.3f}{active}{one.form.layers:>8}{one.form.hidden:>8}"
        level = stored[one.name]
        said = f"{level['megatron']:<13}{level['hf']:<10}{level['level']}"
        print(f"{one.name:<18}{one.family:<13}{size}  {said}")
    counts = collections.Counter(stored[one.name]["level"] for one in recipes)
    print(
        f"\n{len(recipes)} recipes: " + ", ".join(f"{count} {name}" for name, count in counts.most_common())
    )
    return 0
