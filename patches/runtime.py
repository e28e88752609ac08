"""Patches of modules outside of a converted tree, such as site-packages. An import hook applies them at import.

    install_patches([RuntimePatch(id="...", module="package.module", attribute="Class.method", ...)])

must run before the first import of the module ends. Later it raises an error, because other modules may have copied the
old function already. A patch that is applied in time reaches all users of the attribute.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from .drift import difference
from .rules import PatchError, check_reason, fingerprint


@dataclass(frozen=True)
class RuntimePatch:
    """A replacement of one attribute of a module.

    module, attribute: what to replace; `attribute` may be dotted. replacement(original): returns the new value.
    fingerprints: sha256 of the original's source, one for each supported version; another source is an error.
    expected: the original's source, for error messages.
    """

    id: str
    module: str
    attribute: str
    reason: str
    reason_class: str
    replacement: Callable[[Any], Any] = field(repr=False, compare=False)
    fingerprints: tuple[str, ...] = ()
    expected: str = field(default="", repr=False)
    link: str = ""
    until: str = ""

    def __post_init__(self) -> None:
        check_reason(self.id, self.reason, self.reason_class, self.link, self.until)
        if not self.fingerprints:
            raise PatchError(
                f"{self.id}: a rule needs fingerprints, the sha256 of the source that it was written for"
            )


class _Applied:
    """An applied patch with the original attribute, which remove_patches restores."""

    def __init__(self, owner: Any, name: str, original: Any) -> None:
        self.owner, self.name, self.original = owner, name, original


_waiting: dict[str, list[RuntimePatch]] = {}
_known: dict[str, RuntimePatch] = {}
_applied: dict[str, _Applied] = {}


def install_patches(patches: Iterable[RuntimePatch]) -> None:
    """Installs patches, each of which is applied when its module is imported. Installed patches are skipped.

    The module may be in the middle of its import, if it has not defined the attribute yet.

    Raises:
        PatchError: a module is already imported, or another patch has the same id. Nothing is installed then.
    """
    fresh = []
    for patch in patches:
        if patch.id in _known:
            if _known[patch.id] != patch:
                raise PatchError(f"two runtime patches have the id {patch.id}")
            continue
        if patch.module in sys.modules and not _before_definition(sys.modules[patch.module], patch):
            raise PatchError(
                f"{patch.id}: {patch.module} is imported already; install the patch before the first import of it"
            )
        fresh.append(patch)
    for patch in fresh:
        _known[patch.id] = patch
        _waiting.setdefault(patch.module, []).append(patch)
        if patch.module in sys.modules:
            sys.modules[patch.module].__spec__.__class__ = _Running
    if fresh and _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def remove_patches(ids: Iterable[str] | None = None) -> None:
    """Restores the originals of the patches with these ids (default: all), the last one first, and cancels pending ones."""
    for name in list(reversed(_known)) if ids is None else list(ids):
        patch = _known.pop(name, None)
        if patch is None:
            continue
        done = _applied.pop(name, None)
        if done is not None:
            setattr(done.owner, done.name, done.original)
        _waiting[patch.module] = [one for one in _waiting.get(patch.module, []) if one.id != name]
    if not _known and _finder in sys.meta_path:
        sys.meta_path.remove(_finder)


def applied_patches() -> list[str]:
    """The ids of the applied patches in the order of application."""
    return list(_applied)


def _apply(module: ModuleType) -> None:
    for patch in _waiting.get(module.__name__, ()):
        if patch.id in _applied:
            continue
        owner: Any = module
        *path, name = patch.attribute.split(".")
        for step in path:
            owner = _attribute(owner, step, patch)
        original = inspect.getattr_static(owner, name, None)
        if original is None:
            raise PatchError(f"{patch.id}: {patch.module} has no {patch.attribute}: upstream has changed")
        _check(patch, _attribute(owner, name, patch))
        setattr(owner, name, patch.replacement(original))
        _applied[patch.id] = _Applied(owner, name, original)


def _attribute(owner: Any, name: str, patch: RuntimePatch) -> Any:
    if not hasattr(owner, name):
        raise PatchError(f"{patch.id}: {patch.module} has no {patch.attribute}: upstream has changed")
    return getattr(owner, name)


def _check(patch: RuntimePatch, found: Any) -> None:
    """Raises PatchError if the attribute is not the one that the patch was written for."""
    name = f"{patch.id}: {patch.module}.{patch.attribute}"
    try:
        source = inspect.getsource(found)
    except (OSError, TypeError) as error:
        raise PatchError(f"{name} has no source that could be compared with the rule's: {error}") from None
    sha = fingerprint(source)
    if sha not in patch.fingerprints:
        shown = difference(patch.expected, source) if patch.expected else source
        raise PatchError(
            f"{name} is not the source that the rule was written for (sha256 {sha[:12]}...). Its reason: {patch.reason}\n{shown}"
        )


def _before_definition(module: ModuleType, patch: RuntimePatch) -> bool:
    """True if the module is being imported and has not yet defined the attribute that the patch replaces."""
    running = getattr(module.__spec__, "_initializing", False)
    return running and patch.attribute.partition(".")[0] not in vars(module)


class _Running(importlib.machinery.ModuleSpec):
    """The spec of a module that is being imported. The patches are applied when the import system marks it as loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name == "_initializing" and not value:
            object.__setattr__(self, "__class__", importlib.machinery.ModuleSpec)
            if self.name in sys.modules:  # not if the module's body raised an error
                _apply(sys.modules[self.name])


class _Loader(importlib.abc.Loader):
    """Wraps the module's loader and applies the patches after it."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: Any) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        _apply(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if not _waiting.get(fullname):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


_finder = _Finder()
