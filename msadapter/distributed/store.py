"""Key-value stores for the processes of a job: in memory, in a file, and with a prefix. tcp_store.py has TCPStore."""

import fcntl
import os
import struct
import threading
import time
import weakref
from datetime import timedelta

from .errors import DistStoreError

_DEFAULT_TIMEOUT = timedelta(seconds=300)


def _seconds(timeout) -> float:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def _bytes(value) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


class Store:
    """Base class of stores. Subclasses implement the storage (`_read`, `_write`, `_transaction`)."""

    def __init__(self):
        self._timeout = _DEFAULT_TIMEOUT

    @property
    def timeout(self) -> timedelta:
        return self._timeout

    def set_timeout(self, timeout) -> None:
        """Sets the timeout of get and wait."""
        self._timeout = timeout

    def _update(self, change):
        """Runs `change(dict of bytes)` atomically, stores the changed dict, and returns the function's result."""
        raise NotImplementedError

    def set(self, key: str, value) -> None:
        """Sets the value of a key, a str or bytes."""
        self._update(lambda data: data.__setitem__(key, _bytes(value)))

    def get(self, key: str) -> bytes:
        """Waits until the key exists and returns its value."""
        self.wait([key])
        return self._update(lambda data: data[key])

    def add(self, key: str, amount: int) -> int:
        """Adds to a counter, which starts at 0, and returns the sum."""

        def change(data):
            total = int(data.get(key, b"0")) + int(amount)
            data[key] = str(total).encode()
            return total

        return self._update(change)

    def append(self, key: str, value) -> None:
        """Appends to the value of a key."""
        self._update(lambda data: data.__setitem__(key, data.get(key, b"") + _bytes(value)))

    def check(self, keys) -> bool:
        """True if all keys exist."""
        return self._update(lambda data: all(key in data for key in keys))

    def compare_set(self, key: str, expected_value, desired_value) -> bytes:
        """Sets `desired_value` if the current value is `expected_value`. Returns the resulting value.

        An empty `expected_value` also matches a missing key.
        """

        def change(data):
            if key not in data:
                if _bytes(expected_value):
                    return _bytes(expected_value)
                data[key] = _bytes(desired_value)
            elif data[key] == _bytes(expected_value):
                data[key] = _bytes(desired_value)
            return data[key]

        return self._update(change)

    def delete_key(self, key: str) -> bool:
        """Deletes a key. Returns True if it existed."""
        return self._update(lambda data: data.pop(key, None) is not None)

    def num_keys(self) -> int:
        """The number of keys."""
        return self._update(len)

    def multi_get(self, keys) -> list:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values) -> None:
        """Sets several values."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def wait(self, keys, timeout=None) -> None:
        """Waits until all keys exist. Raises DistStoreError after the timeout."""
        patience = _seconds(timeout or self._timeout)
        end, pause = time.monotonic() + patience, 0.001
        while not self.check(keys):
            if time.monotonic() >= end:
                self._give_up(keys, patience)
            time.sleep(pause)
            pause = min(pause * 1.5, 0.1)  # frequent reads would block the writers of the file

    def _give_up(self, keys, patience: float):
        missing = [key for key in keys if not self.check([key])]
        raise DistStoreError(f"wait timeout after {int(patience * 1000)}ms, keys: {', '.join(missing)}")

    def has_extended_api(self) -> bool:
        """Returns True: append, multi_get and multi_set are supported."""
        return True


class HashStore(Store):
    """A store in the memory of this process."""

    def __init__(self):
        super().__init__()
        self._data, self._changed = {}, threading.Condition(threading.RLock())

    def _update(self, change):
        with self._changed:
            before = len(self._data)
            result = change(self._data)
            if len(self._data) != before:
                self._changed.notify_all()
            return result

    def wait(self, keys, timeout=None) -> None:
        patience = _seconds(timeout or self._timeout)
        with self._changed:
            if not self._changed.wait_for(lambda: all(key in self._data for key in keys), patience):
                self._give_up(keys, patience)


class FileStore(Store):
    """A store in a file that all processes can access. Each operation locks the file.

    The file is removed when all of ``world_size`` processes have given up the store, so that the next job under this path begins
    anew. It stays if the number of processes is not given.
    """

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        self._path = os.fspath(file_name)
        self.add(_USERS, 1)
        weakref.finalize(self, _leave, self._path, world_size, os.getpid())

    @property
    def path(self) -> str:
        return self._path

    def _update(self, change):
        return _update_file(self._path, change)


# Keys of a FileStore itself: how many objects use the file, and how many have given it up.
_USERS, _GONE = "\0users", "\0gone"


def _update_file(path: str, change):
    with open(path, "a+b") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        stream.seek(0)
        before = stream.read()
        data = _unpack(before)
        result = change(data)
        after = _pack(data)
        if after != before:
            stream.truncate(0)
            stream.write(after)
        return result


def _leave(path: str, world_size: int, process: int) -> None:
    """Give up a FileStore. The last one removes the file."""
    if os.getpid() != process or not os.path.exists(path):  # a forked child has only inherited the object
        return

    def change(data):
        users, gone = int(data.get(_USERS, b"1")) - 1, int(data.get(_GONE, b"0")) + 1
        data[_USERS], data[_GONE] = str(users).encode(), str(gone).encode()
        return users == 0 and 0 <= world_size <= gone

    if _update_file(path, change):
        os.unlink(path)


def _pack(data: dict) -> bytes:
    parts = []
    for key, value in data.items():
        encoded = key.encode()
        parts += [struct.pack("<II", len(encoded), len(value)), encoded, value]
    return b"".join(parts)


def _unpack(raw: bytes) -> dict:
    data, place = {}, 0
    while place < len(raw):
        key_size, value_size = struct.unpack_from("<II", raw, place)
        place += 8
        key = raw[place : place + key_size].decode()
        data[key] = raw[place + key_size : place + key_size + value_size]
        place += key_size + value_size
    return data


class PrefixStore(Store):
    """A view of another store that adds a prefix to every key."""

    def __init__(self, prefix: str, store: Store):
        super().__init__()
        self._prefix, self._store = prefix, store
        self._timeout = store.timeout

    @property
    def underlying_store(self) -> Store:
        return self._store

    def _key(self, key):
        return f"{self._prefix}/{key}"

    def set(self, key, value):
        self._store.set(self._key(key), value)

    def add(self, key, amount):
        return self._store.add(self._key(key), amount)

    def append(self, key, value):
        self._store.append(self._key(key), value)

    def get(self, key):
        return self._store.get(self._key(key))

    def check(self, keys):
        return self._store.check([self._key(key) for key in keys])

    def compare_set(self, key, expected_value, desired_value):
        return self._store.compare_set(self._key(key), expected_value, desired_value)

    def delete_key(self, key):
        return self._store.delete_key(self._key(key))

    def num_keys(self):
        return self._store.num_keys()

    def multi_get(self, keys):
        return self._store.multi_get([self._key(key) for key in keys])

    def wait(self, keys, timeout=None):
        self._store.wait([self._key(key) for key in keys], timeout or self._timeout)
