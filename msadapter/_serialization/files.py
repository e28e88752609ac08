"""The file arguments of torch.save and torch.load: paths, os.PathLike and open binary files."""

import contextlib
import fcntl
import io
import os
import stat
import tempfile


def is_path(f) -> bool:
    return isinstance(f, (str, os.PathLike))


def describe(f) -> str:
    """Return the name of the file for error messages."""
    if is_path(f):
        return os.fspath(f)
    return str(getattr(f, "name", None) or f"<{type(f).__name__}>")


def archive_name(f) -> str:
    """Return the folder inside the zip container: the file's name without its last extension, or 'archive'."""
    if not is_path(f):
        return "archive"
    name = os.path.basename(os.fspath(f))
    stem = name.rpartition(".")[0] or name
    return stem if stem.isascii() else "archive"


@contextlib.contextmanager
def open_for_writing(f):
    """Return a binary stream that writes to `f`.

    A path is written beside its target, synced and renamed: readers see the old file or the whole new one. What a
    killed process has left beside it goes at the next save into that folder.
    """
    if not is_path(f):
        if not hasattr(f, "write"):
            raise AttributeError(
                "expected 'f' to be string, path, or a file-like object with a 'write' "
                "attribute, "
                f"got {type(f).__name__}"
            )
        yield f
        f.flush() if hasattr(f, "flush") else None
        return
    path = os.path.realpath(os.fspath(f))
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    with errors_name(path):
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "wb") as stream:  # a device or a pipe cannot be replaced
                yield stream
            return
        with _replacing(path, folder) as stream:
            yield stream


@contextlib.contextmanager
def errors_name(path):
    """A block whose OSErrors name `path`, instead of no file or a temporary one."""
    try:
        yield
    except OSError as err:
        unnamed = err.filename is None or str(err.filename).endswith(_ENDING)
        if err.errno is None or not unnamed:
            raise
        raise type(err)(err.errno, err.strerror, os.fspath(path)) from err


# The end of the name of a file that a save has begun. No other program ends its files like this.
_ENDING = ".torch-save.part"


@contextlib.contextmanager
def _replacing(path, folder):
    _remove_abandoned(folder)
    handle, temporary = _begin(path, folder)
    try:
        # It is renamed before it is closed: who closes it gives up the lock, and it would look abandoned.
        with os.fdopen(handle, "wb", buffering=1 << 20) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            os.chmod(temporary, _mode_for(path))
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _begin(path, folder):
    """Create a new file beside `path` and return (descriptor, name). It stays locked while this process has it open."""
    name = os.path.basename(path).encode()[:150].decode(errors="ignore")
    while True:
        handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=_ENDING, dir=folder)
        if not _lock(handle) or _is(temporary, handle):
            return handle, temporary
        os.close(handle)  # another save found it before it was locked, and has removed it


def _remove_abandoned(folder) -> None:
    """Remove the temporary files of killed saves: those that have our names and owner, and that no process has locked."""
    for entry in os.scandir(folder):
        if not entry.name.endswith(_ENDING) or not entry.is_file(follow_symlinks=False):
            continue
        with contextlib.suppress(OSError):  # another process removes it, or we may not open it
            handle = os.open(entry.path, os.O_RDWR | os.O_NOFOLLOW)
            try:
                if os.fstat(handle).st_uid == os.geteuid() and _lock(handle) and _is(entry.path, handle):
                    os.unlink(entry.path)
            finally:
                os.close(handle)


def _lock(handle) -> bool:
    """Lock an open file, and return whether that succeeded. On a file system without locks it fails, and nothing is removed."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is(path, handle) -> bool:
    """Whether the open file is still the one at `path`."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(handle))
    return False


def _mode_for(path) -> int:
    if os.path.exists(path):
        return stat.S_IMODE(os.stat(path).st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync_folder(folder):
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:  # some network file systems cannot sync a folder; the file itself has been synced
        pass
    finally:
        os.close(handle)


@contextlib.contextmanager
def open_for_reading(f):
    """Return a seekable binary stream for `f`.

    A file object stays open, and is read from its present position.
    """
    if is_path(f):
        with open(os.fspath(f), "rb") as stream:
            yield stream
        return
    for method in ("read", "readline", "seek", "tell"):
        if not hasattr(f, method):
            raise AttributeError(
                f"'{type(f).__name__}' object has no attribute '{method}'. You can only torch.load from a "
                "file that "
                "is seekable. Please pre-load the data into a buffer like io.BytesIO and try to load from it "
                "instead."
            )
    try:
        f.tell()
    except (io.UnsupportedOperation, OSError) as err:
        raise io.UnsupportedOperation(
            f"{err}. You can only torch.load from a file that is seekable. Please pre-load the data into a "
            "buffer "
            "like io.BytesIO and try to load from it instead."
        ) from err
    yield f


class Window:
    """A seekable file that begins at an offset of another file, because a checkpoint may follow other data."""

    def __init__(self, stream, start: int):
        self._stream, self._start = stream, start

    def seek(self, offset, whence=0):
        return self._stream.seek(offset + (self._start if whence == 0 else 0), whence) - self._start

    def tell(self):
        return self._stream.tell() - self._start

    def read(self, count=-1):
        return self._stream.read(count)

    def seekable(self):
        return True

    def readable(self):
        return True
