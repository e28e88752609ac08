"""The names of values in the code of a graph, and the objects that this code finds as globals."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from typing import Any, NamedTuple

import msadapter

from ..utils import _pytree as pytree
from . import _pytree as fx_pytree

__all__ = ["Namespace", "custom_builtins"]


class _CustomBuiltin(NamedTuple):
    """Something that the code of every graph finds as a global.

    Attributes:
        import_str: the statement that makes it in a file with this code.
        obj: the object.
    """

    import_str: str
    obj: Any


_illegal_names: dict[str, Any] = {name: object() for name in keyword.kwlist}
_illegal_names.update(vars(builtins))
custom_builtins: dict[str, _CustomBuiltin] = {}


def _register_custom_builtin(name: str, import_str: str, obj: Any) -> None:
    """Make an object a global of the code of every graph. No value of a graph gets this name."""
    custom_builtins[name] = _CustomBuiltin(import_str, obj)
    _illegal_names[name] = obj


_register_custom_builtin("inf", "from math import inf", math.inf)
_register_custom_builtin("nan", "from math import nan", math.nan)
_register_custom_builtin("NoneType", "NoneType = type(None)", type(None))
_register_custom_builtin("torch", "import torch", msadapter)
_register_custom_builtin("device", "from torch import device", msadapter.device)
_register_custom_builtin("fx_pytree", "import torch.fx._pytree as fx_pytree", fx_pytree)
_register_custom_builtin("pytree", "import torch.utils._pytree as pytree", pytree)


class Namespace:
    """Names of objects. Each object has one name, and no name is used twice or hides something of Python."""

    def __init__(self):
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return the name of an object. It is `candidate`, with a number behind it where that is taken.

        Args:
            candidate: the wanted name. What cannot be part of an identifier becomes an underscore.
            obj: the object, which keeps its name; None if nobody will ask again.
        """
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        candidate = f"_{candidate}" if candidate[0].isdigit() else candidate
        base, number = re.fullmatch(r"(.+?)(?:_(\d+))?", candidate).groups()
        if number is None or candidate in self._used_names:
            number = self._base_count.get(base, 0)
            if _illegal_names.get(candidate, obj) is not obj:
                number += 1
                candidate = f"{base}_{number}"
        number = int(number)
        while candidate in self._used_names:
            number += 1
            candidate = f"{base}_{number}"
        self._used_names.add(candidate)
        self._base_count[base] = number
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note that an object has a name that was made before."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        if obj not in self._obj_to_name:
            raise AssertionError(f"Object {obj} is not in _obj_to_name")
        self._obj_to_name[obj] = name
        self._used_names.add(name)
