"""Reads the .metadata of a checkpoint's folder: a pickle, of which nothing but descriptions is taken."""

import dataclasses
import enum
import io
import pathlib
import pickle
import sys

from ..._serialization import guarded, names, safe
from ..._serialization.weights_only import RestrictedUnpickler, set_state
from .metadata import Metadata

_NAME = ".metadata"


class _Unpickler(RestrictedUnpickler):
    """Plain values, paths, the classes that describe checkpoints, found in this package, and of the running program those
    derived from them and those without any code (Megatron's MCoreSavePlan, by release). It imports nothing else.

    An object of these classes is made without arguments and gets its fields. Nothing else is called.

    Raises:
        pickle.UnpicklingError: another global. `torch.serialization.add_safe_globals` allows more.
    """

    def load(self):
        self._described = set()
        return super().load()

    def _lookup(self, module: str, name: str):
        if safe.find(module, name) is not safe.MISSING:
            return super()._lookup(module, name)
        if module in ("pathlib", "pathlib._local") and name in ("PosixPath", "PurePosixPath", "Path"):
            return getattr(pathlib, name), _path
        found = _description(module, name)
        if found is None:
            raise pickle.UnpicklingError(
                f"{_NAME} of a checkpoint names {module}.{name}, which is not allowed. If you trust the checkpoint, allow it: "
                "torch.serialization.add_safe_globals"
            )
        if issubclass(found, enum.Enum):
            return found, _member(found)
        self._described.add(found)
        return found, _blank(found)

    def _build(self, inst, state):
        kind = type(inst)
        if kind not in self._described:
            super()._build(inst, state)
            return
        if not hasattr(kind, "__setstate__"):  # a class that has one takes its own form of state
            guarded.check_state(kind, state)
        set_state(inst, state)


def _description(module: str, name: str):
    """The class of that name that describes checkpoints, or None."""
    if module.startswith("torch.distributed."):
        found = names.find(module, name)
        if isinstance(found, type) and _describes(found):
            return found
    known = getattr(sys.modules.get(module), name, None)
    return known if isinstance(known, type) and (_is_empty(known) or _derived(known)) else None


def _is_empty(found: type) -> bool:
    """Whether a class has nothing of its own: its objects hold values, and making them runs no code."""
    own = {
        "__module__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__slotnames__",
    }  # the last is noted by copyreg
    return all(set(vars(c)) <= own for c in found.__mro__[:-1])


def _derived(found: type) -> bool:
    """Whether a class is a dataclass made of one of torch.distributed's."""
    return dataclasses.is_dataclass(found) and any(map(_describes, found.__mro__))


def _describes(found: type) -> bool:
    """Whether a class only holds values: a dataclass or an enumeration of torch.distributed's."""
    ours = found.__module__.startswith((f"{names.ROOT}.distributed.", "torch.distributed."))
    return ours and (dataclasses.is_dataclass(found) or issubclass(found, enum.Enum))


def _blank(kind: type):
    def make(*args):
        if args:
            guarded.refuse(f"{kind.__qualname__} is called with arguments")
        return object.__new__(kind)

    return make


def _member(kind: type):
    def find(*args):
        if len(args) != 1 or type(args[0]) not in (int, str):
            guarded.refuse(f"{kind.__qualname__} is called with what is no value of it")
        return kind(args[0])

    return find


def _path(*args):
    if any(type(part) is not str for part in args):
        guarded.refuse("a path is made of what is no text")
    return pathlib.PosixPath(*args)


def read_metadata(stream) -> Metadata:
    """The Metadata in a .metadata file; pickle.UnpicklingError for whatever else is in it."""
    try:
        metadata = _Unpickler(io.BytesIO(stream.read())).load()
        _check(metadata)
    except pickle.UnpicklingError:
        raise
    except Exception as err:  # a pickle of chance bytes can raise anything
        raise pickle.UnpicklingError(f"{_NAME} is damaged: {type(err).__name__}: {err}") from err
    return metadata


def _check(metadata) -> None:
    """Refuse what has the class of a Metadata, but not its fields."""
    if type(metadata) is not Metadata:
        guarded.refuse(f"{_NAME} holds {type(metadata).__name__}, no Metadata")
    if type(metadata.state_dict_metadata) is not dict or not isinstance(
        metadata.storage_data, (dict, type(None))
    ):
        guarded.refuse(f"{_NAME} is damaged: it lists no entries")
