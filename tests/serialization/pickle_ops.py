"""Writes pickles opcode by opcode, and archives around them, like an attacker who forges a checkpoint."""

from __future__ import annotations

import io
import pickle
import struct

from msadapter._serialization.zip_writer import ZipWriter


class Name:
    """A global, by module and name."""

    def __init__(self, full: str):
        self.module, _, self.name = full.rpartition(".")


class Call:
    """REDUCE: a callable (anything that can be written) and its arguments."""

    def __init__(self, function, *args):
        self.function, self.args = function, args


class New:
    """NEWOBJ: a class and the arguments of its __new__."""

    def __init__(self, cls, *args):
        self.cls, self.args = cls, args


class Build:
    """BUILD: an object and the state that it gets."""

    def __init__(self, obj, state):
        self.obj, self.state = obj, state


class Items:
    """SETITEMS on an object."""

    def __init__(self, obj, *pairs):
        self.obj, self.pairs = obj, pairs


class Stored:
    """BINPERSID of a storage: its type by name, key, location, number of elements."""

    def __init__(self, kind: str = "FloatStorage", key="0", count=12, location="cpu", more=()):
        typed = "torch.storage.UntypedStorage" if kind == "UntypedStorage" else f"torch.{kind}"
        self.pid = ("storage", Name(typed), key, location, count, *more)


def tensor(storage, offset=0, size=(3, 4), stride=(4, 1), *, grad=False, metadata=()):
    """Return a call of _rebuild_tensor_v2."""
    hooks = Call(Name("collections.OrderedDict"))
    return Call(
        Name("torch._utils._rebuild_tensor_v2"), storage, offset, size, stride, grad, hooks, *metadata
    )


def dumps(obj) -> bytes:
    """Return the pickle in protocol 2."""
    return b"\x80\x02" + _ops(obj) + b"."


def _ops(obj) -> bytes:
    if isinstance(obj, Name):
        return b"c" + f"{obj.module}\n{obj.name}\n".encode()
    if isinstance(obj, Call):
        return _ops(obj.function) + _ops(tuple(obj.args)) + pickle.REDUCE
    if isinstance(obj, New):
        return _ops(obj.cls) + _ops(tuple(obj.args)) + pickle.NEWOBJ
    if isinstance(obj, Build):
        return _ops(obj.obj) + _ops(obj.state) + pickle.BUILD
    if isinstance(obj, Items):
        return _ops(obj.obj) + b"(" + b"".join(_ops(x) for pair in obj.pairs for x in pair) + pickle.SETITEMS
    if isinstance(obj, Stored):
        return _ops(obj.pid) + pickle.BINPERSID
    if isinstance(obj, tuple):
        return b"(" + b"".join(map(_ops, obj)) + b"t"
    if isinstance(obj, list):
        return b"](" + b"".join(map(_ops, obj)) + b"e"
    if isinstance(obj, dict):
        return b"}(" + b"".join(_ops(x) for pair in obj.items() for x in pair) + b"u"
    return pickle.dumps(obj, 2)[2:-1]  # numbers, strings, None: without PROTO and STOP


def archive(obj, records=(("0", b"\0" * 48),), *, byteorder: bytes | None = b"little") -> bytes:
    """Return a zip checkpoint with the pickle and these storages."""
    stream = io.BytesIO()
    writer = ZipWriter(stream, "archive")
    writer.write_record("data.pkl", dumps(obj))
    if byteorder is not None:
        writer.write_record("byteorder", byteorder)
    for key, content in records:
        writer.write_record(f"data/{key}", content)
    writer.write_record("version", b"3\n")
    writer.finish()
    return stream.getvalue()


def legacy(obj, records=(("0", 12, b"\0" * 48),)) -> bytes:
    """Return a checkpoint of the format before 1.6.

    A record is (key, announced number of elements, bytes).
    """
    head = [0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}]
    found = b"".join(pickle.dumps(part, 2) for part in head) + dumps(obj)
    found += pickle.dumps([key for key, _, _ in records], 2)
    return found + b"".join(struct.pack("<q", count) + content for _, count, content in records)
