"""Installs the run-time rules that make MindSpeed's operator builders return our operators."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

_RULES = Path(__file__).resolve().parents[1] / "patches" / "__init__.py"


def install() -> None:
    """Registers the rules, which are applied when MindSpeed's modules are imported. A second call does nothing.

    Raises:
        PatchError: MindSpeed's modules are already imported.
    """
    rules = _rules()
    runtime = importlib.import_module(f"{rules.__name__}.runtime")
    runtime.install_patches(rules.runtime_rules("mindspeed"))


def _rules() -> ModuleType:
    """The package `patches` beside this one.

    If the program, or Megatron-LM's tree, has imported another package of this name, ours is loaded under another name.
    """
    name = "patches"
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None or Path(spec.origin).resolve() != _RULES:
        name = "_msadapter_patches"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(
            name, _RULES, submodule_search_locations=[str(_RULES.parent)]
        )
        assert spec is not None and spec.loader is not None  # an existing file has a loader
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]
