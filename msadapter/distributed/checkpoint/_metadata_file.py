"""Reads the .metadata file of a checkpoint with a restricted unpickler, which creates only metadata classes."""

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
    """Accepts plain values, paths, and the classes of this package that describe checkpoints.

    It also accepts classes of the running program that are derived from these classes or have no code of their own, such as
    Megatron's MCoreSavePlan. It imports nothing else. An object of these classes is created without arguments, and then its
    fields are set. Nothing else is called.

    Raises:
        pickle.UnpicklingError: the file names another global. `torch.serialization.add_safe_globals` can allow it.
    """

    def load(self):
        self._described = set()
        self._hashed: dict[
            int, tuple[object, int]
        ] = {}  # by id: an object and the number of parts that its hash visits
        self._unfinished: dict[int, object] = {}  # objects that others contain, and that have no state yet
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
        if not hasattr(kind, "__setstate__"):  # a class with __setstate__ restores its state itself
            guarded.check_state(kind, state)
        if _hashes_its_fields(kind):
            self._check_hashed(inst, state)
        set_state(inst, state)

    def _check_hashed(self, inst, state) -> None:
        """Refuses a state that makes the hash of an object, which visits all of its parts, take forever."""
        kind = type(inst)
        if id(inst) in self._unfinished:
            guarded.refuse(f"a {kind.__qualname__} contains itself")
        waiting, visits = list(state.values()) if isinstance(state, dict) else [state], 1
        while waiting:
            part = waiting.pop()
            if type(part) in self._described and _hashes_its_fields(type(part)):
                if id(part) not in self._hashed:
                    self._unfinished[id(part)] = part
                visits += self._hashed.get(id(part), (part, 1))[1]
            elif isinstance(part, (tuple, frozenset)):  # lists, sets and dicts have no hash
                waiting += part
                visits += len(part)
            if visits > guarded.LARGEST_KEY:
                guarded.refuse(f"the state of a {kind.__qualname__} is too large")
        self._hashed[id(inst)] = inst, visits


def _hashes_its_fields(kind: type) -> bool:
    return kind.__hash__ not in (None, object.__hash__)


def _description(module: str, name: str):
    """The class of this name that describes checkpoints, or None."""
    if module.startswith("torch.distributed."):
        found = names.find(module, name)
        if isinstance(found, type) and _describes(found):
            return found
    # getattr could run the module's own __getattr__, which may import anything
    known = vars(sys.modules.get(module, object)).get(name)
    return known if isinstance(known, type) and (_is_empty(known) or _derived(known)) else None


def _is_empty(found: type) -> bool:
    """True if a class defines no code, so that creating its objects runs none."""
    own = {
        "__module__",
        "__doc__",
        "__dict__",
        "__weakref__",
        "__slotnames__",
    }  # the last is noted by copyreg
    return all(set(vars(c)) <= own for c in found.__mro__[:-1])


def _derived(found: type) -> bool:
    """True if a class is a dataclass that is derived from one of torch.distributed."""
    return dataclasses.is_dataclass(found) and any(map(_describes, found.__mro__))


def _describes(found: type) -> bool:
    """True if a class only holds values, that is, if it is a dataclass or an enumeration of torch.distributed."""
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
            guarded.refuse(f"{kind.__qualname__} is called with an argument that is not one of its values")
        return kind(args[0])

    return find


def _path(*args):
    if any(type(part) is not str for part in args):
        guarded.refuse("a path is made of something that is not text")
    return pathlib.PosixPath(*args)


def read_metadata(stream) -> Metadata:
    """Reads the Metadata from a .metadata file. Raises pickle.UnpicklingError for any other content."""
    try:
        metadata = _Unpickler(io.BytesIO(stream.read())).load()
        _check(metadata)
    except pickle.UnpicklingError:
        raise
    except Exception as err:  # a damaged pickle can raise any exception
        raise pickle.UnpicklingError(f"{_NAME} is damaged: {type(err).__name__}: {err}") from err
    return metadata


def _check(metadata) -> None:
    """Raises an error for a Metadata object without the proper fields."""
    if type(metadata) is not Metadata:
        guarded.refuse(f"{_NAME} holds {type(metadata).__name__}, no Metadata")
    if type(metadata.state_dict_metadata) is not dict or not isinstance(
        metadata.storage_data, (dict, type(None))
    ):
        guarded.refuse(f"{_NAME} is damaged: it lists no entries")
