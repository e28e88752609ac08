"""torch.save and torch.load, which write and read PyTorch's files."""

import io
import os
import pickle
import struct
import tempfile
import threading
import uuid
import warnings
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from . import _utils
from ._errors import unsupported
from ._host import accelerator
from ._serialization import files, legacy, locations, names
from ._serialization.locations import default_restore_location, register_package
from ._serialization.pickler import SaveContext, make_pickler
from ._serialization.safe import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
    unsafe_globals,
)
from ._serialization.storage_ref import location_tag, storage_record
from ._serialization.weights_only import RestrictedUnpickler
from ._serialization.zip_reader import ZipReader
from ._serialization.zip_writer import ALIGNMENT, ZipWriter
from ._values.layout import LAYOUTS
from .tensor import TypedStorage, UntypedStorage, device

__all__ = [
    "SourceChangeWarning",
    "add_safe_globals",
    "check_module_version_greater_or_equal",
    "clear_safe_globals",
    "default_restore_location",
    "get_crc32_options",
    "get_default_load_endianness",
    "get_default_mmap_options",
    "get_safe_globals",
    "get_unsafe_globals_in_checkpoint",
    "load",
    "location_tag",
    "mkdtemp",
    "register_package",
    "safe_globals",
    "save",
    "set_crc32_options",
    "set_default_load_endianness",
    "set_default_mmap_options",
    "skip_data",
    "validate_cuda_device",
]

DEFAULT_PROTOCOL = 2
# Types that programs name in their own annotations.
STORAGE: TypeAlias = TypedStorage | UntypedStorage
MAP_LOCATION: TypeAlias = Callable[[STORAGE, str], STORAGE] | device | str | dict[str, str] | None
MAP_SHARED, MAP_PRIVATE = 1, 2
_options = threading.local()
_WEIGHTS_ONLY_FAILED = (
    "Weights only load failed. This file can still be loaded: torch.load with `weights_only=False` executes "
    "whatever "
    "the file holds, so do it only if you trust its source; or allow the global that the following line "
    "names.\n"
    "\tWeightsUnpickler error: {error}\n\tFile: {file}"
)


# The errors that damaged data causes. No code from the file runs, so there are no others.
_DAMAGE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    struct.error,
    TypeError,
    ValueError,
)


class SourceChangeWarning(Warning):
    """A warning about files of old PyTorch versions with source code. Nothing raises it here."""


# -- options -----------------------------------------------------------------------------------------------
def get_crc32_options() -> bool:
    """Return whether torch.save computes the checksum of each record (default True)."""
    return getattr(_options, "crc32", True)


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether torch.save computes checksums. Without them, load cannot notice damage."""
    _options.crc32 = bool(compute_crc32)


def get_default_mmap_options() -> int:
    """Return the kind of mapping that torch.load(mmap=True) uses: MAP_PRIVATE (default) or MAP_SHARED."""
    return getattr(_options, "mmap", MAP_PRIVATE)


class set_default_mmap_options:
    """Set the kind of mapping for mmap=True immediately. As a context manager, restore it at the end."""

    def __init__(self, flags: int):
        if flags not in (MAP_PRIVATE, MAP_SHARED):
            raise ValueError(
                "Invalid argument in function set_default_mmap_options, expected "
                "mmap.MAP_PRIVATE or "
                f"mmap.MAP_SHARED, but got {flags}"
            )
        self._before = get_default_mmap_options()
        _options.mmap = flags

    def __enter__(self):
        return None

    def __exit__(self, *exc):
        _options.mmap = self._before


class LoadEndianness:
    NATIVE, LITTLE, BIG = 1, 2, 3


def get_default_load_endianness():
    """Return the byte order of files that do not record it. None means the order of this machine."""
    return getattr(_options, "endianness", None)


def set_default_load_endianness(endianness) -> None:
    """Set the byte order of files that do not record it (LoadEndianness.X or None)."""
    _options.endianness = endianness


class skip_data:
    """Inside this block, torch.save writes zeros instead of the storages' data."""

    def __init__(self, materialize_fake_tensors: bool = False):
        self._materialize = materialize_fake_tensors

    def __enter__(self):
        self._before = getattr(_options, "skip_data", False)
        _options.skip_data = True

    def __exit__(self, *exc):
        _options.skip_data = self._before


# -- saving ------------------------------------------------------------------------------------------------
def save(
    obj,
    f,
    pickle_module=pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
    _disable_byteorder_record: bool = False,
) -> None:
    """Write `obj` (tensors, containers, modules, ...) to the path or binary file `f` in PyTorch's format.

    Tensors that share a storage also share it in the file. A path is written under a temporary name and
    renamed, so an interrupted save leaves the old file. RuntimeError if the folder does not exist.
    """
    if files.is_path(f) and not os.fspath(f):
        raise ValueError("torch.save: the path is empty")
    with files.open_for_writing(f) as stream:
        if _use_new_zipfile_serialization:
            _save_zip(
                obj, stream, files.archive_name(f), pickle_module, pickle_protocol, _disable_byteorder_record
            )
        else:
            legacy.save(obj, stream, pickle_module, pickle_protocol)


def _save_zip(obj, stream, archive, pickle_module, protocol, no_byteorder):
    context = SaveContext()
    pickled = io.BytesIO()
    make_pickler(pickled, pickle_module, protocol, context).dump(obj)
    writer = ZipWriter(stream, archive, compute_crc=get_crc32_options())
    writer.write_record("data.pkl", pickled.getbuffer())
    writer.write_record(".format_version", b"1")
    writer.write_record(".storage_alignment", str(ALIGNMENT).encode())
    if not no_byteorder:
        writer.write_record("byteorder", b"little")
    for key, storage in context.storages.items():
        writer.write_record(f"data/{key}", _bytes_of(storage))
    writer.write_record("version", b"3\n")
    writer.write_record(".data/serialization_id", str(uuid.uuid4().int)[:40].rjust(40, "0").encode())
    writer.finish()


def _bytes_of(storage):
    if getattr(_options, "skip_data", False):
        return np.zeros(storage.nbytes(), dtype=np.uint8)
    return storage._numpy()


# -- loading -----------------------------------------------------------------------------------------------
def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read a file of torch.save (of this package or PyTorch) from a path or a seekable binary file.

    Args:
        map_location: None (the device at saving), a device, its name, a dict of names, or `f(storage,
        location) -> storage`.
        weights_only: True (default) accepts only tensors, containers and what add_safe_globals allows.
        Nothing else in the file is executed; pickle.UnpicklingError names it.
        mmap: map the file into memory instead of reading it (paths only).

    Raises:
        RuntimeError: the file is truncated or damaged.
    """
    weights_only = _decide_weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    if mmap and not files.is_path(f):
        raise ValueError("f must be a string filename in order to use mmap argument")
    place = _marked(locations.restore_function(map_location), callable(map_location))
    file = files.describe(f)
    unpickler = _unpickler_factory(weights_only, pickle_module or pickle, pickle_load_args)
    with files.open_for_reading(f) as stream:
        start = stream.tell()
        head = stream.read(4)
        stream.seek(start)
        zipped = head == b"PK\x03\x04"
        if not zipped:
            _refuse_other_formats(stream, start, head, file, mmap)
        try:
            if zipped:
                window = stream if start == 0 else files.Window(stream, start)
                found = _load_zip(ZipReader(window, file, _map(f) if mmap else None), unpickler, place)
            else:
                found = legacy.load(stream, file, unpickler, _wrap, place)
            _utils._check_sparse()
            return found
        except pickle.UnpicklingError as err:
            if weights_only:
                raise pickle.UnpicklingError(_WEIGHTS_ONLY_FAILED.format(error=err, file=file)) from err
            raise
        except _DAMAGE as err:
            if not weights_only or getattr(err, "of_map_location", False) or file in str(err):
                raise
            kind = type(err) if type(err) in (RuntimeError, EOFError) else RuntimeError
            what = err if kind is type(err) else f"{type(err).__name__} ({err})"
            raise kind(f"{what} (torch.load: {file} is damaged or is not a checkpoint)") from err
        finally:
            _utils._forget_sparse()


def _marked(place, users):
    """Return `place` such that its errors are recognised as those of the user's function."""
    if not users:
        return place

    def marked(storage, location):
        try:
            return place(storage, location)
        except Exception as err:
            err.of_map_location = True
            raise

    return marked


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "0").lower() in ("1", "y", "yes", "true")


def _decide_weights_only(weights_only, pickle_module) -> bool:
    """Return what ``weights_only`` means together with the variables of the environment.

    TORCH_FORCE_WEIGHTS_ONLY_LOAD overrules the program. The other variable does not: it only changes the default.
    """
    forced_on, forced_off = map(
        _is_set, ("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD")
    )
    if forced_on and forced_off:
        raise RuntimeError(
            "Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD`"
            "should be set, but both were set."
        )
    if forced_on:
        return True
    if weights_only is not None:
        return weights_only
    if not forced_off:
        return pickle_module is None
    warnings.warn(
        "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the"
        "`weights_only` argument was not explicitly passed to `torch.load`, forcing weights_only=False.",
        UserWarning,
        stacklevel=3,
    )
    return False


def _refuse_other_formats(stream, start, head, file, mmap):
    if not head:
        raise EOFError(f"Ran out of input: {file} is empty")
    header = stream.read(512)
    stream.seek(start)
    if header[257:262] == b"ustar":
        raise RuntimeError(
            f"{file} is in the legacy .tar format of PyTorch 0.1, which is not supported: "
            "load and save it again with a newer PyTorch (docs/coverage.md)"
        )
    if mmap:
        raise RuntimeError(
            "mmap can only be used with files saved with "
            f"`torch.save({file}, _use_new_zipfile_serialization=True), please torch.save "
            "your "
            "checkpoint with this option in order to use mmap."
        )


def _map(f):
    mode = "c" if get_default_mmap_options() == MAP_PRIVATE else "r+"
    # a plain array is used, because slices of a memmap are slower; its base keeps the mapping alive
    return np.asarray(np.memmap(os.fspath(f), dtype=np.uint8, mode=mode))


def _unpickler_factory(weights_only, pickle_module, pickle_load_args):
    arguments = {"encoding": "utf-8", **pickle_load_args}

    def restricted(stream, persistent_load):
        unpickler = RestrictedUnpickler(stream, **arguments)
        unpickler.persistent_load = persistent_load
        return unpickler

    class TorchUnpickler(pickle_module.Unpickler):
        def find_class(self, module, name):
            kind = names.storage_type(module, name)
            if kind is not None:
                return kind
            if module == "torch" or module.startswith("torch."):
                return names.find(module, name)
            if name == "getattr" and module in ("builtins", "__builtin__"):
                return names.attribute
            return super().find_class(module, name)

    def full(stream, persistent_load):
        unpickler = TorchUnpickler(stream, **arguments)
        unpickler.persistent_load = persistent_load
        return unpickler

    return restricted if weights_only else full


def _wrap(untyped, dtype):
    return untyped if dtype is None else TypedStorage(wrap_storage=untyped, dtype=dtype)


def _load_zip(reader, make_unpickler, place):
    if "data.pkl" not in reader and "constants.pkl" in reader:
        raise unsupported("torch.load", "TorchScript archives are not supported")
    swap = _needs_swap(reader)
    loaded = {}

    def persistent_load(pid):
        kind, key, location, count = storage_record(pid, 5)
        dtype = kind.dtype
        if key not in loaded:
            size = count * (dtype.itemsize if dtype is not None else 1)
            array = np.empty(size, np.uint8) if location == "meta" else reader.read_array(f"data/{key}")
            if array.size < size:
                raise RuntimeError(
                    f"PytorchStreamReader failed reading file data/{key}: it holds "
                    f"{array.size} bytes "
                    f"where {size} are expected"
                )
            if swap and dtype is not None:
                array = _swapped(array, dtype)
            loaded[key] = place(UntypedStorage.from_numpy(array), location)
            if swap:
                loaded[key]._turned = 1 if dtype is None else _width(dtype)
        return _wrap(loaded[key], dtype)

    return make_unpickler(io.BytesIO(reader.read("data.pkl")), persistent_load).load()


def _needs_swap(reader) -> bool:
    if "byteorder" in reader:
        order = reader.read("byteorder")
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order.decode(errors='replace')}")
        return order == b"big"
    return get_default_load_endianness() == LoadEndianness.BIG


def _width(dtype) -> int:
    """Return the size in bytes of the numbers in an element of `dtype` (a part, for complex dtypes)."""
    return dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize


def _swapped(array, dtype):
    return np.ascontiguousarray(array.reshape(-1, _width(dtype))[:, ::-1]).reshape(-1)


def get_unsafe_globals_in_checkpoint(f) -> list:
    """Return the full names of the globals that a weights_only load of `f` would refuse. Executes nothing."""
    with files.open_for_reading(f) as stream:
        return unsafe_globals(ZipReader(stream, files.describe(f)).read("data.pkl"))


# -- names that libraries import ---------------------------------------------------------------------------
_LAYOUTS_BY_NAME = {str(layout): layout for layout in LAYOUTS.values()}


def _get_layout(name: str):
    """Return the layout with a name such as 'torch.strided'. KeyError for any other name.

    Checkpoints call this function with a name of their choice, so it looks only into the table of layouts.
    """
    return _LAYOUTS_BY_NAME[name]


def validate_cuda_device(location) -> int:
    """Return the index of the accelerator in a location tag. RuntimeError if there is no such device."""
    index = device(str(location)).index or 0
    if not accelerator.is_available() or index >= accelerator.device_count():
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() "
            "is False "
            "or the device does not exist. Use map_location=torch.device('cpu')."
        )
    return index


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True) -> bool:
    """Return whether `module.__version__` is at least the version, which is given as a tuple of ints."""
    try:
        version = tuple(int(part) for part in module.__version__.split(".")[: len(req_version_tuple)])
    except ValueError as err:
        if error_if_malformed:
            raise RuntimeError(
                f"'{module.__name__}' module version string is malformed '{module.__version__}'"
            ) from err
        warnings.warn(f"'{module.__name__}' module version string is malformed", stacklevel=2)
        return True
    return version >= tuple(req_version_tuple)


def mkdtemp():
    """A temporary folder, which is removed at the end of the ``with`` block."""
    return tempfile.TemporaryDirectory()


def _is_zipfile(f) -> bool:
    """Return whether a zip container begins at the present position of the stream."""
    start = f.tell()
    head = f.read(4)
    f.seek(start)
    return head == b"PK\x03\x04"


def _is_path(f) -> bool:
    return files.is_path(f)


def _get_restore_location(map_location):
    return locations.restore_function(map_location)
