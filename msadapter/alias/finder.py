"""The finder in `sys.meta_path` that answers `import torch`."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import re
import sys
from collections.abc import Iterator, Mapping
from importlib.abc import Loader
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from .._host.troubleshooting import see
from .absent import AbsentFinder, explain
from .submodules import ELSEWHERE, OURS, PRESENT
from .waiting import is_waiting, stop_waiting, wait_for

SHIM = Path(__file__).resolve().parent / "shim"
OLDER = Path(__file__).resolve().parent / "older"  # a folder for PYTHONPATH for each older version
METADATA = SHIM / "torch.dist-info" / "METADATA"


def _stated_version(metadata: str) -> str:
    """Return the version in the text of a METADATA file. ValueError if it contains none."""
    for line in metadata.splitlines():
        if line.startswith("Version: "):
            return line.removeprefix("Version: ").strip()
    raise ValueError(f"{METADATA} states no version")


def _chosen_version(wanted: str) -> str:
    """Return the version of PyTorch that programs are told: the newest, or an older one that is asked for, such as 2.7.

    Raises:
        ValueError: there is no such version.
    """
    found = []
    for path in (METADATA, *sorted(OLDER.glob("*/torch.dist-info/METADATA"))):
        version = _stated_version(path.read_text(encoding="utf-8"))
        if not wanted or f"{version}.".startswith(f"{wanted}."):
            return version
        found.append(version)
    raise ValueError(
        f"MSADAPTER_TORCH_VERSION is {wanted!r}: set it to one of {', '.join(found)}, or unset it"
    )


# The version of the PyTorch interface is written in one place only: the METADATA file in the shim folder,
# which importlib.metadata can read without importing anything. Programs and libraries ask for the version and
# then use what is new in it. All names are there whichever version is chosen.
TORCH_VERSION = _chosen_version(os.environ.get("MSADAPTER_TORCH_VERSION", ""))

# What PyTorch brings along, so that packages use it without asking for it. The project depends on these packages.
REQUIRED = ("jinja2", "networkx", "sympy")

# alias -> the package that it stands for; if that package does not exist, neither does the alias
ALIASES = {
    "torch": "msadapter",
    "torch_npu": "msadapter.torch_npu",
    "functorch": "msadapter.functorch",  # which PyTorch brings along
    "mindio_ttp": "msadapter.mindio_ttp",  # which MindSpeed imports for its recovery
}

# alias -> (package, variable): only active if the environment variable is set, because programs test for it
OPTIONAL = {
    "transformer_engine": ("msadapter.transformer_engine", "MSADAPTER_TRANSFORMER_ENGINE"),
    "triton": ("msadapter.triton", "MSADAPTER_TRITON"),
    "flash_attn": ("msadapter.flash_attn", "MSADAPTER_FLASH_ATTN"),
}

# The stand-in packages of build/env.sh set this name. install() may replace them, but not a real torch.
SHIM_MARK = "__msadapter_shim__"


class _AliasLoader(Loader):
    """Returns a module that exists under its own name, without changing its attributes."""

    def __init__(self, target: str) -> None:
        self.target = target
        self._own_spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.target)
        self._own_spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just written the alias's spec into the module. Relative imports need its own
        # spec.
        alias = module.__spec__.name if module.__spec__ is not None else ""
        module.__spec__ = self._own_spec
        if alias.partition(".")[0] == "torch":
            explain(module, alias)
        if self.target == ALIASES["torch"]:
            show_submodules()

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the target module. `python -m torch.distributed.run` needs it."""
        loader = _require_spec(self.target).loader
        return loader.get_code(self.target)  # type: ignore[union-attr]

    def get_source(self, fullname: str) -> str | None:
        loader = _require_spec(self.target).loader
        return loader.get_source(self.target)  # type: ignore[union-attr]

    def is_package(self, fullname: str) -> bool:
        return _require_spec(self.target).submodule_search_locations is not None


class _AliasDistribution(importlib.metadata.Distribution):
    """The distribution that `importlib.metadata.version("torch")` reads."""

    def __init__(self, name: str, version: str) -> None:
        self._name = name
        self._version = version

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return metadata_text(self._name, self._version)
        return None

    def locate_file(self, path: str | os.PathLike[str]) -> Path:
        """Return a path in the folder `shim`, which programs find where they start with it on their path."""
        return SHIM / path


class AliasFinder:
    """Finds `alias` and `alias.x` for each entry alias -> target of a mapping."""

    def __init__(self, aliases: Mapping[str, str], versions: Mapping[str, str]) -> None:
        self.aliases = dict(aliases)
        self.versions = dict(versions)

    def target_of(self, fullname: str) -> str | None:
        """Return the module name that ``fullname`` stands for, or None if it is not an alias."""
        head, dot, rest = fullname.partition(".")
        if head not in self.aliases:
            return None
        if head == "torch":
            rest = ELSEWHERE.get(rest, rest)
        if head == "torch_npu" and (rest == "npu" or rest.startswith("npu.")):
            head = "torch"  # torch_npu.npu is torch.npu, whose modules would be loaded twice under two names
        return self.aliases[head] + dot + rest

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        own_name = self.target_of(fullname)
        if own_name is None:
            return None
        if fullname.startswith("torch.") and fullname.split(".")[1] in OURS:
            # With None, the next finder would look into the folder of msadapter and load the module a second time.
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
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
        """Does nothing, because nothing is cached. importlib calls it on every finder."""


_finder: AliasFinder | None = None
_absent = AbsentFinder()


def install() -> None:
    """Make `import torch` return msadapter, in this process. A second call changes nothing.

    Raises:
        RuntimeError: another torch is imported already. Two of them cannot work in one process.
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
    if os.environ.get("MSADAPTER_DEVICE", "").partition(":")[0].lower() == "cpu":
        # Libraries take torch_npu for a sign that there is an NPU.
        del aliases["torch_npu"]
        _hide_in_shim("torch_npu")
    _finder = AliasFinder(
        aliases, {name: TORCH_VERSION for name in ("torch", "torch_npu") if name in aliases}
    )
    sys.meta_path.insert(0, _finder)
    sys.meta_path.append(_absent)


def uninstall() -> None:
    """Remove the alias, so that `import torch` finds another torch again. Existing objects stay valid."""
    global _finder
    if _finder is None:
        return
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    if _absent in sys.meta_path:
        sys.meta_path.remove(_absent)
    for name in _modules_of(_finder.aliases):
        del sys.modules[name]
    if ALIASES["torch"] in sys.modules:
        sys.modules[ALIASES["torch"]].__name__ = ALIASES["torch"]
    stop_waiting()
    _finder = None


def installed() -> bool:
    """Return whether the alias is installed."""
    return _finder is not None and _finder in sys.meta_path


def show_submodules() -> None:
    """Add those submodules to sys.modules that `import torch` loads in PyTorch, and give the package torch's name.

    Modules that are not loaded yet are loaded at their first use.
    """
    package = ALIASES["torch"]
    explain(sys.modules[package], "torch")
    sys.modules[package].__name__ = "torch"  # libraries compare it with the names that they patch
    for name in PRESENT:
        module = sys.modules[f"torch.{name}"] = wait_for(f"{package}.{name}")
        if not is_waiting(module):
            explain(module, f"torch.{name}")
        head, _, last = module.__name__.rpartition(".")
        parent = sys.modules.get(head)
        if (
            parent is not None
            and not is_waiting(module)
            and not is_waiting(parent)
            and last not in vars(parent)
        ):
            setattr(
                parent,
                last,
                module,
                # like the import system, which finds this module already imported and does not set the attribute
            )
    for name, own_name in ELSEWHERE.items():
        sys.modules[f"torch.{name}"] = wait_for(f"{package}.{own_name}")


class _ShimFinder(FileFinder):
    """Finds what is in the folder `shim`, except for some names."""

    hidden: frozenset[str] = frozenset()

    def find_spec(self, fullname: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return None if fullname in self.hidden else super().find_spec(fullname, target)


def _hide_in_shim(*names: str) -> None:
    """Let Python find no modules of these names in the folder `shim`, if the folder is on the search path."""
    for entry in sys.path:
        if entry and Path(entry).resolve() == SHIM:
            finder = _ShimFinder(entry, (SourceFileLoader, SOURCE_SUFFIXES))
            finder.hidden = frozenset(names)
            sys.path_importer_cache[entry] = finder


def metadata_text(name: str, version: str) -> str:
    """Return the text of the METADATA file of the distribution ``name``."""
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    lines += ["Summary: answered by msadapter, on MindSpore"]
    if name == "torch":
        lines += [f"Requires-Dist: {package}" for package in REQUIRED]
    return "\n".join([*lines, ""])


def _refuse_foreign(aliases: Mapping[str, str]) -> None:
    for name, target in aliases.items():
        module = sys.modules.get(name)
        if module is None or module is sys.modules.get(target) or hasattr(module, SHIM_MARK):
            continue
        where = getattr(module, "__file__", None) or "no file"
        raise RuntimeError(
            f"{name} is already imported from {where}: msadapter cannot take its place in this process. "
            f"Call msadapter.install() before the first `import {name}`, or start with `python -m msadapter script.py` "
            f"{see('another-torch')}."
        )


def _modules_of(aliases: Mapping[str, str]) -> list[str]:
    return [name for name in sys.modules if name.partition(".")[0] in aliases]


def _spec_of(name: str) -> ModuleSpec | None:
    """Return the spec of a module, or None if it does not exist. Errors in its parents are raised."""
    module = sys.modules.get(name)
    if module is not None:  # this access loads a module that waits for its first use
        # Modules that are made at run time, such as torch.ops, have no spec.
        return module.__spec__ or ModuleSpec(name, None, is_package=hasattr(module, "__path__"))
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError as error:
        # If a parent does not exist, or is a module but not a package, then the module does not exist either.
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
