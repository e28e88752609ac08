"""The suite pickle_names: under which names pickles of PyTorch hold its public classes and functions.

A case is the name in the pickle, `module:qualified name`, or the first public name of an object that PyTorch cannot pickle.
Its answer is the list of public names whose value is that object. Methods of `torch.Tensor` and functions such as
`torch.add` are pickled as an attribute of a class, `torch._C:_VariableFunctionsClass.add`.
"""

from __future__ import annotations

import importlib
import inspect
import pickle
import pickletools
import types

from tests.golden import store
from tests.golden.make_surface import _MODULES

_FUNCTIONS = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
)


def name_in_pickle(pickled: bytes) -> str | None:
    """The name of the class or function in a pickle that holds nothing else; None if the pickle holds more than a name."""
    words: list[str] = []
    for code, argument, _ in pickletools.genops(pickled):
        if code.name == "GLOBAL":
            words.append(argument.replace(" ", ":", 1))
        elif code.name == "BINUNICODE":
            words.append(argument)
        elif code.name not in ("PROTO", "BINPUT", "LONG_BINPUT", "TUPLE2", "REDUCE", "STOP"):
            return None
    if len(words) == 1:
        return words[0]
    builtin = len(words) == 3 and words[0] in ("__builtin__:getattr", "builtins:getattr")
    return f"{words[1]}.{words[2]}" if builtin else None


def modules() -> list[str]:
    """The public modules: the namespaces of the suite surface, and the submodules that `import torch` loads."""
    loaded = {name for part in store.load("modules").cases.values() for name in part}
    public = {name for name in loaded if not any(part.startswith("_") for part in name.split("."))}
    needs_a_package = {"torch.utils.tensorboard"}
    return sorted((public | set(_MODULES.split()) | {"torch"}) - needs_a_package)


def public_values(torch) -> dict[str, object]:
    """Public name -> class or function of PyTorch."""
    holders = {path: importlib.import_module(path) for path in modules()} | {"torch.Tensor": torch.Tensor}
    found = {}
    for path, holder in holders.items():
        for name in dir(holder):
            value = None if name.startswith("_") else inspect.getattr_static(holder, name, None)
            if isinstance(value, (type, *_FUNCTIONS)) and _of_torch(value):
                found[f"{path}.{name}"] = value
    return found


def _of_torch(value: object) -> bool:
    module = getattr(value, "__module__", None)
    return not isinstance(value, type) and module is None or str(module).partition(".")[0] == "torch"


def golden_answers(torch) -> dict:
    groups: dict[int, list[str]] = {}
    values = public_values(torch)
    for path, value in values.items():
        groups.setdefault(id(value), []).append(path)
    found = {}
    for paths in groups.values():
        try:
            name = name_in_pickle(pickle.dumps(values[paths[0]], 2))
        except (pickle.PicklingError, AttributeError, TypeError):
            name = None
        found[name or paths[0]] = sorted(paths)
    return dict(sorted(found.items()))
