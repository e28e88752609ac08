"""The meta-path finder behind `import torch`."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

from .submodules import ELSEWHERE, PRESENT
from .waiting import is_waiting, stop_waiting, wait_for

SHIM = Path(__file__).resolve().parent / "shim"
METADATA = SHIM / "torch.dist-info" / "METADATA"


def _stated_version(metadata: str) -> str:
    """The version that the text of a METADATA file states. ValueError if it states none."""
    for line in metadata.splitlines():
        if line.startswith("Version: "):
            return line.removeprefix("Version: ").strip()
    raise ValueError(f"{METADATA} states no version")


# The one place that says which PyTorch's interface is offered is the distribution that importlib.metadata finds in the
# stand-in folder without importing anything.
TORCH_VERSION = _stated_version(METADATA.read_text(encoding="utf-8"))

# alias -> the package that answers. One that does not exist is simply not found, and its alias neither.
ALIASES = {"torch": "msadapter", "torch_npu": "msadapter.torch_npu"}

# Answered only when a variable asks for it, because programs look whether it is there: alias -> (package, variable).
OPTIONAL = {
    "transformer_engine": ("msadapter.transformer_engine", "MSADAPTER_TRANSFORMER_ENGINE"),
    "triton": ("msadapter.triton", "MSADAPTER_TRITON"),
}

# The stand-in packages of build/env.sh carry this name; they may be replaced, a real torch may not.
SHIM_MARK = "__msadapter_shim__"


class _AliasLoader(Loader):
    """Hands out a module that exists under its own name, and leaves its attributes as they are."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just written the alias's spec into the module: a relative import would go wrong.
        module.__spec__ = self._own_spec
        if self.target == ALIASES["torch"]:
            show_submodules()

    def get_code(self, fullname: str) -> CodeType | None:
        """The target's code: `python -m torch.distributed.run` asks for it."""
        loader = _require_spec(self.target).loader
        return loader.get_code(self.target)  # type: ignore[union-attr]

    def get_source(self, fullname: str) -> str | None:
        loader = _require_spec(self.target).loader
        return loader.get_source(self.target)  # type: ignore[union-attr]

    def is_package(self, fullname: str) -> bool:
        return _require_spec(self.target).submodule_search_locations is not None


class _AliasDistribution(importlib.metadata.Distribution):
    """What `importlib.metadata.version("torch")` reads."""

    def __init__(self, name: str, version: str) -> None:
        self._name = name
        self._version = version

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return metadata_text(self._name, self._version)
        return None

    def locate_file(self, path):  # type: ignore[no-untyped-def]
        raise FileNotFoundError(f"{path}: {self._name} is answered by msadapter and has no files of its own")


class AliasFinder:
    """Finds `alias` and `alias.x` for each alias -> target of a mapping."""

    def __init__(self, aliases: Mapping[str, str], versions: Mapping[str, str]) -> None:
        self.aliases = dict(aliases)
        self.versions = dict(versions)

    def target_of(self, fullname: str) -> str | None:
        """The name that answers for fullname; None if it is none of ours."""
        head, dot, rest = fullname.partition(".")
        if head not in self.aliases:
            return None
        if head == "torch":
            rest = ELSEWHERE.get(rest, rest)
        return self.aliases[head] + dot + rest

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        own_name = self.target_of(fullname)
        if own_name is None:
            return None
        spec = _spec_of(own_name)
        if spec is None:
            return None
        is_package = spec.submodule_search_locations is not None
        found = ModuleSpec(fullname, _AliasLoader(own_name), origin=spec.origin, is_package=is_package)
        if is_package:
            found.submodule_search_locations = list(spec.submodule_search_locations or ())
        return found

    def find_distributions(
        self, context: importlib.metadata.DistributionFinder.Context | None = None
    ) -> Iterator[importlib.metadata.Distribution]:
        wanted = getattr(context, "name", None)
        for name, version in self.versions.items():
            if wanted is not None and _normal(wanted) != _normal(name):
                continue
            if _spec_of(self.aliases[name]) is not None:
                yield _AliasDistribution(name, version)

    def invalidate_caches(self) -> None:
        """Nothing is cached; importlib calls this on every finder."""


_finder: AliasFinder | None = None


def install() -> None:
    """From now on `import torch` gives msadapter, in this process. Calling it again changes nothing.

    Raises:
        RuntimeError: another torch is already imported; two of them in one process cannot work.
    """
    global _finder
    if _finder is not None and _finder in sys.meta_path:
        return
    aliases = ALIASES | {
        n: package for n, (package, variable) in OPTIONAL.items() if os.environ.get(variable) == "1"
    }
    _refuse_foreign(aliases)
    for name in _modules_of(aliases):
        del sys.modules[name]
    _finder = AliasFinder(aliases, {"torch": TORCH_VERSION, "torch_npu": TORCH_VERSION})
    sys.meta_path.insert(0, _finder)


def uninstall() -> None:
    """Takes the alias away: `import torch` looks for another torch again. Objects already made stay what they are."""
    global _finder
    if _finder is None:
        return
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    for name in _modules_of(_finder.aliases):
        del sys.modules[name]
    stop_waiting()
    _finder = None


def installed() -> bool:
    """True between install() and uninstall()."""
    return _finder is not None and _finder in sys.meta_path


def show_submodules() -> None:
    """Puts the submodules that PyTorch has in sys.modules after `import torch` there; what is not loaded waits for use."""
    package = ALIASES["torch"]
    for name in PRESENT:
        module = sys.modules[f"torch.{name}"] = wait_for(f"{package}.{name}")
        head, _, last = module.__name__.rpartition(".")
        parent = sys.modules.get(head)
        if (
            parent is not None
            and not is_waiting(module)
            and not is_waiting(parent)
            and last not in vars(parent)
        ):
            setattr(
                parent, last, module
            )  # the import system does so when it imports; it finds this one imported
    for name, own_name in ELSEWHERE.items():
        sys.modules[f"torch.{name}"] = wait_for(f"{package}.{own_name}")


def metadata_text(name: str, version: str) -> str:
    """The METADATA file of the distribution that stands for name."""
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: answered by msadapter, on MindSpore\n"


def _refuse_foreign(aliases: Mapping[str, str]) -> None:
    for name, target in aliases.items():
        module = sys.modules.get(name)
        if module is None or module is sys.modules.get(target) or hasattr(module, SHIM_MARK):
            continue
        where = getattr(module, "__file__", None) or "no file"
        raise RuntimeError(
            f"{name} is already imported from {where}: msadapter cannot take its place in this process. "
            f"Call msadapter.install() before the first `import {name}`, or start with `python -m msadapter script.py`."
        )


def _modules_of(aliases: Mapping[str, str]) -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in aliases]


def _spec_of(name: str) -> ModuleSpec | None:
    """The spec of name, None if there is no such module. Errors inside its parents are not hidden."""
    module = sys.modules.get(name)
    if module is not None:  # one that waits for its first use is loaded by this question
        # Modules made at run time (torch.ops and its like) have none.
        return module.__spec__ or ModuleSpec(name, None, is_package=hasattr(module, "__path__"))
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # A parent that does not exist, or is a module and no package: then name does not exist either.
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            return None
        raise


def _require_spec(name: str) -> ModuleSpec:
    spec = _spec_of(name)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return spec


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
