"""The file arguments of torch.save and torch.load: paths, os.PathLike and open binary files."""

import contextlib
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

    A path is written under a temporary name, synced to disk and renamed. Readers therefore see either the old
    file or the complete new one.
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
    if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
        with open(path, "wb") as stream:  # a device or a pipe cannot be replaced by a file
            yield stream
        return
    with _replacing(path, folder) as stream:
        yield stream


@contextlib.contextmanager
def _replacing(path, folder):
    handle, temporary = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", suffix=".part", dir=folder)
    try:
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
