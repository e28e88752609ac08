"""MindSpeed's op builders give our operators: its rules at run time, which wait for its modules."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_RULES = Path(__file__).resolve().parents[1] / "patches" / "__init__.py"


def install() -> None:
    """Have the rules wait for MindSpeed's modules. Calling it again changes nothing.

    Raises:
        PatchError: the modules are imported already.
    """
    rules = _rules()
    runtime = importlib.import_module(f"{rules.__name__}.runtime")
    runtime.install_patches(rules.runtime_rules("mindspeed"))


def _rules() -> ModuleType:
    """The package `patches` beside this one. A program, or Megatron-LM's own tree, may have another of that name: ours is
    then loaded under a name of its own."""
    name = "patches"
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != _RULES:
        name = "_msadapter_patches"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, _RULES, submodule_search_locations=[str(_RULES.parent)]
        )
        assert spec is not None and spec.loader is not None  # a file that is there has a loader
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]
