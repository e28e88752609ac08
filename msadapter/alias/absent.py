"""What is said about names and modules that PyTorch has and this package has not.

The errors stay AttributeError and ModuleNotFoundError, so `hasattr` and `try: import` work as with any other module. Their
text uses torch's names and points to docs/coverage.md. The list of the absent names is written with that page, by
`python -m tests.contract.coverage`, and is read when the first such error is raised.
"""

from __future__ import annotations

import dis
import functools
import json
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import FrameType, ModuleType

LIST = Path(__file__).with_name("absent_names.json")


@functools.cache
def _listed() -> dict[str, str]:
    """Return the reason for every absent name and module."""
    found = json.loads(LIST.read_text(encoding="utf-8"))
    return {name: reason for reason, names in found.items() for name in names}


def reason_of(name: str) -> str | None:
    """Return why a name of PyTorch, such as "torch.contrib", is absent; None for a name that PyTorch does not have either."""
    reason = _listed().get(name)
    return None if reason is None else f"PyTorch has it, msadapter does not (docs/coverage.md): {reason}"


def attribute_text(module: str, name: str) -> str:
    """Return the text of the AttributeError for ``module.name``, both as in PyTorch."""
    text = f"module {module!r} has no attribute {name!r}"
    reason = reason_of(f"{module}.{name}") if not name.startswith("__") else None
    return text if reason is None else f"{text}. {reason}"


def module_text(name: str) -> str | None:
    """Return the text of the ModuleNotFoundError for a module of PyTorch; None if PyTorch does not have it either."""
    whole = name
    while "." in name:
        reason = reason_of(name)
        if reason is not None:
            return f"No module named {whole!r}. {reason}"
        name = name.rpartition(".")[0]
    return None


def explain(module: ModuleType, name: str) -> None:
    """Let a module answer for absent attributes under PyTorch's name of it, such as "torch.jit".

    A module that has another name here than in PyTorch is not an attribute of its parent. It is found here too.
    """
    space = vars(module)
    own = space.get("__getattr__")
    if getattr(own, "explains", False):
        return

    def __getattr__(attribute: str) -> object:
        found = sys.modules.get(f"{name}.{attribute}")
        if found is not None:
            return found
        if own is None:
            if _is_import_from(sys._getframe(1)):
                raise _import_error(module, name, attribute)
            raise AttributeError(attribute_text(name, attribute), name=attribute, obj=module)
        try:
            return own(attribute)
        except AttributeError as error:
            if _is_import_from(sys._getframe(1)):
                raise _import_error(module, name, attribute) from None
            if attribute.startswith("__") or reason_of(f"{name}.{attribute}") is None:
                raise
            raise AttributeError(attribute_text(name, attribute), name=attribute, obj=module) from error

    __getattr__.explains = True  # type: ignore[attr-defined]
    space["__getattr__"] = __getattr__


def _is_import_from(frame: FrameType) -> bool:
    """Whether ``frame`` is in the statement `from MODULE import NAME`, rather than in getattr or hasattr."""
    while frame.f_globals.get("__name__") == "msadapter.alias.waiting" and frame.f_back is not None:
        frame = frame.f_back  # the attribute is the first use of a module, and loads it
    at = frame.f_lasti
    return at >= 0 and frame.f_code.co_code[at] == dis.opmap["IMPORT_FROM"]


def _import_error(module: ModuleType, name: str, attribute: str) -> ImportError:
    """Return Python's error for `from name import attribute`, which would name the module as msadapter does."""
    file = getattr(module, "__file__", None)
    text = f"cannot import name {attribute!r} from {name!r} ({file or 'unknown location'})"
    reason = reason_of(f"{name}.{attribute}")
    return ImportError(text if reason is None else f"{text}. {reason}", name=name, path=file)


class AbsentFinder:
    """The last finder in `sys.meta_path`. It says so when a module of PyTorch is imported that is absent.

    A program may add finders of its own later, which stand behind this one. What they find is not absent.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what a later finder finds, or None.

        Raises:
            ModuleNotFoundError: an import statement asks for a module that PyTorch has and that no finder knows.
                `importlib.util.find_spec`, with which programs only ask, gets None.
        """
        caller = sys._getframe(
            2
        ).f_code.co_name  # the import system calls finders from one function of its own
        if fullname.startswith("torch.") and caller == "_find_and_load_unlocked":
            text = module_text(fullname)
            if text is not None:
                spec = self._found_later(fullname, path, target)
                if spec is None:
                    raise ModuleNotFoundError(text, name=fullname)
                return spec
        return None

    def _found_later(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None
    ) -> ModuleSpec | None:
        behind = sys.meta_path[sys.meta_path.index(self) + 1 :] if self in sys.meta_path else []
        for finder in behind:
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                return spec
        return None

    def invalidate_caches(self) -> None:
        """Does nothing, because nothing is cached. importlib calls it on every finder."""
