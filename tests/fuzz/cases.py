"""One checkpoint a number: well-formed, but for a few values that lie."""

from __future__ import annotations

import dataclasses
import json
import pickle
import random
import struct

from tests.serialization.pickle_ops import Build, Call, Items, Name, New, Stored, archive, dumps, legacy

KINDS = ["zip"] * 10 + ["legacy"] * 4 + ["folder"] * 3 + ["safetensors"] * 2 + ["tar"]
INTEGERS = [
    0,
    1,
    2,
    3,
    4,
    7,
    12,
    13,
    48,
    49,
    -1,
    -2,
    -12,
    255,
    2**15,
    2**31 - 1,
    2**31,
    2**32,
    2**33 + 1,
    10**9,
    10**12,
]
INTEGERS += [
    2**53,
    2**60,
    2**61,
    2**62,
    2**62 + 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
    2**64,
    -(2**31),
    -(2**62),
    -(2**63),
    2**200,
]
DTYPES = (
    "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 uint16 uint32 float8_e4m3fn"
)
STORAGES = "Float Double Half BFloat16 Long Int Short Char Byte Bool ComplexDouble ComplexFloat"
LAYOUTS = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged load save os __dict__ Tensor"
CALLABLES = """torch._utils._rebuild_tensor torch._utils._rebuild_tensor_v2 torch._utils._rebuild_tensor_v3
torch._utils._rebuild_parameter torch._utils._rebuild_parameter_with_state torch._utils._rebuild_sparse_tensor
torch._utils._rebuild_meta_tensor_no_storage torch._utils._rebuild_device_tensor_from_cpu_tensor
torch._utils._rebuild_device_tensor_from_numpy torch._utils._rebuild_qtensor torch._utils._rebuild_nested_tensor
torch._utils._rebuild_wrapper_subclass torch._tensor._rebuild_from_type_v2 torch.serialization._get_layout torch.Tensor
torch.nn.parameter.Parameter torch.Size torch.device collections.OrderedDict collections.Counter builtins.bytearray
builtins.set builtins.complex _codecs.encode torch.FloatStorage torch.storage.UntypedStorage torch.float32"""
GADGETS = """os.system posix.system builtins.eval builtins.exec builtins.open builtins.getattr builtins.__import__ io.open
subprocess.Popen torch.load torch.save torch.hub.load torch.serialization.save torch._utils._set_obj_state
torch.nn.Linear torch.from_file torch.zeros numpy.load operator.attrgetter functools.partial types.CodeType
torch.serialization.os.system torch.distributed.checkpoint.filesystem.FileSystemWriter runpy.run_path"""
ATTRIBUTES = """a _metadata data grad __class__ __dict__ __setstate__ requires_grad items shape _i _v _extent _outer
_backward_hooks _wrapper_device _untyped_storage _holder dtype"""
PATHS = ["0.distcp", "../0.distcp", "/etc/hostname", "a/../../x", "", ".", "0.distcp\0", "x" * 300]
DESCRIPTIONS = "torch.distributed.checkpoint.metadata."


@dataclasses.dataclass
class Case:
    """A case: the content of a file, or the files of a folder by name, and how to load it."""

    kind: str
    content: bytes | dict
    weights_only: bool = True
    mmap: bool = False


class Maker:
    """Makes the parts of one case. `lies` is the probability that a value is wrong."""

    def __init__(self, seed: int, number: int):
        self.random = random.Random(f"{seed}:{number}")
        self.lies = self.random.choice([0.002, 0.01, 0.03, 0.1])
        self.budget = 40  # values that may be replaced by anything
        self.extra = ()  # persistent ids of legacy files have one field more
        self.records = {}
        self.calls_anything = self.random.random() < 0.6

    def lie(self) -> bool:
        return self.budget > 0 and self.random.random() < self.lies

    def pick(self, values):
        return self.random.choice(values.split() if isinstance(values, str) else values)

    # -- values ----------------------------------------------------------------------------------------
    def integer(self, right: int):
        if not self.lie():
            return right
        return self.pick([self.pick(INTEGERS), right + self.pick([-1, 1, 8]), self.odd()])

    def odd(self):
        """A value of an unexpected type."""
        return self.pick(
            [
                None,
                True,
                1.5,
                "1",
                b"1",
                (),
                (1,),
                [],
                {},
                float("nan"),
                "x" * 200,
                ((1,), 2),
                Name("torch.Size"),
            ]
        )

    def value(self, right):
        return self.anything(1) if self.lie() else right

    def name(self, right: str):
        return Name(self.pick(f"{CALLABLES} {GADGETS}") if self.calls_anything and self.lie() else right)

    def dtype(self, right: str):
        return self.name(f"torch.{self.pick(DTYPES) if self.lie() else right}")

    # -- storages and tensors --------------------------------------------------------------------------
    def storage(self, name: str, values: bytes, width: int):
        if self.records and self.lie():
            key = self.pick(list(self.records))
        else:
            key = str(len(self.records))
            self.records[key] = values if not self.lie() else values[: self.random.randrange(len(values) + 1)]
        count = self.integer(len(values) // width)
        if self.lie():
            name = self.pick(STORAGES) + "Storage"
        stored = Stored(name, self.value(key), count, self.value("cpu"), self.extra)
        if self.lie():
            place = self.random.randrange(len(stored.pid))
            stored.pid = (*stored.pid[:place], self.odd(), *stored.pid[place + 1 :])
        return self.value(stored)

    def geometry(self, count: int):
        """(offset, size, stride) within `count` elements, unless a value is wrong."""
        ndim = self.random.choice([0, 1, 1, 2, 2, 3])
        size, left = [], count
        for _ in range(ndim):
            size.append(self.random.randint(1, max(left, 1)))
            left //= size[-1]
        stride = [1] * ndim
        for d in range(ndim - 2, -1, -1):
            stride[d] = stride[d + 1] * size[d + 1]
        size, stride = [self.integer(n) for n in size], [self.integer(n) for n in stride]
        if self.lie():
            stride = stride[:-1] if self.random.random() < 0.5 else [0] * ndim
        return self.integer(0), self.value(tuple(size)), self.value(tuple(stride))

    def hooks(self):
        return self.value(Call(self.name("collections.OrderedDict")))

    def tensor(self):
        width = 4
        values = struct.pack("<12f", *range(12))
        storage = self.storage("FloatStorage", values, width)
        rest = [self.value(self.random.random() < 0.3), self.hooks()]
        version = self.random.randrange(4)
        if version == 0:
            return Call(self.name("torch._utils._rebuild_tensor"), storage, *self.geometry(12))
        if version == 1:
            storage = self.storage("UntypedStorage", values, 1)
            function, rest = self.name("torch._utils._rebuild_tensor_v3"), [*rest, self.dtype("uint32")]
            return Call(function, storage, *self.geometry(12), *rest)
        if self.lie():
            rest.append({self.pick(["conj", "neg", "x"]): self.value(True)})
        return Call(self.name("torch._utils._rebuild_tensor_v2"), storage, *self.geometry(12), *rest)

    def rebuilt(self, stored, size, stride):
        return Call(
            self.name("torch._utils._rebuild_tensor_v2"),
            stored,
            self.integer(0),
            size,
            stride,
            False,
            self.hooks(),
        )

    def longs(self, values, shape):
        stored = self.storage("LongStorage", b"".join(struct.pack("<q", v) for v in values), 8)
        stride = (shape[1], 1) if len(shape) == 2 else (1,)
        size, stride = tuple(map(self.integer, shape)), tuple(map(self.integer, stride))
        return self.rebuilt(stored, size, stride)

    def index(self, right: int) -> int:
        found = self.pick(INTEGERS) if self.lie() else right
        return found if -(2**63) <= found < 2**63 else right

    def values(self, *shape):
        count = 1
        for n in shape:
            count *= n
        stored = self.storage("FloatStorage", b"\0\0\x80\x3f" * count, 4)
        stride, size = [1] * len(shape), tuple(map(self.integer, shape))
        for d in range(len(shape) - 2, -1, -1):
            stride[d] = stride[d + 1] * shape[d + 1]
        stride = tuple(map(self.integer, stride))
        return self.rebuilt(stored, size, stride)

    def sparse(self):
        layout = self.pick("sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc")
        first = self.longs([self.index(0), self.index(1), self.index(2)], (3,))
        second = self.longs([self.index(0), self.index(2)], (2,))
        if layout == "sparse_coo":
            at = self.longs([self.index(v) for v in (0, 1, 2, 0)], (2, 2))
            data = (
                at,
                self.values(2),
                tuple(map(self.integer, (3, 3))),
                self.value(self.random.random() < 0.5),
            )
        elif layout in ("sparse_csr", "sparse_csc"):
            size = (2, 3) if layout == "sparse_csr" else (3, 2)
            data = (first, second, self.values(2), tuple(map(self.integer, size)))
        else:
            size = (4, 6) if layout == "sparse_bsr" else (6, 4)
            data = (first, second, self.values(2, 2, 2), tuple(map(self.integer, size)))
        made = Call(
            self.name("torch.serialization._get_layout"),
            f"torch.{self.pick(LAYOUTS) if self.lie() else layout}",
        )
        return Call(self.name("torch._utils._rebuild_sparse_tensor"), self.value(made), self.value(data))

    def state(self):
        return self.value({self.pick(ATTRIBUTES): self.anything(1)})

    def wrapped(self):
        inner, kind = self.pick([self.tensor, self.tensor, self.sparse])(), self.random.randrange(5)
        if kind == 0:
            return Call(self.name("torch._utils._rebuild_parameter"), inner, self.value(True), self.hooks())
        if kind == 1:
            rest = (self.value(True), self.hooks(), self.state())
            return Call(self.name("torch._utils._rebuild_parameter_with_state"), inner, *rest)
        if kind == 2 and isinstance(inner, Call):
            cls = self.name(self.pick(["torch.Tensor", "torch.nn.parameter.Parameter"]))
            made = self.value(tuple(inner.args))
            return Call(
                self.name("torch._tensor._rebuild_from_type_v2"), inner.function, cls, made, self.state()
            )
        if kind == 3:
            rest = (self.dtype("float32"), self.value("cpu"), False)
            return Call(self.name("torch._utils._rebuild_device_tensor_from_cpu_tensor"), inner, *rest)
        rest = (tuple(map(self.integer, (2, 3))), tuple(map(self.integer, (3, 1))), False)
        return Call(self.name("torch._utils._rebuild_meta_tensor_no_storage"), self.dtype("float32"), *rest)

    # -- anything --------------------------------------------------------------------------------------
    def anything(self, depth: int = 0):
        self.budget -= 1
        if depth > 3 or self.budget < 0:
            return self.odd()
        kind = self.random.randrange(10 if self.calls_anything else 4)
        if kind == 0:
            return self.odd()
        if kind == 1:
            return self.pick(INTEGERS)
        if kind == 2:
            return self.tensor()
        if kind == 3:
            return self.sparse()
        if kind == 4:
            return Name(self.pick(f"{CALLABLES} {GADGETS}"))
        if kind == 5:
            return New(Name(self.pick(CALLABLES)), *self.arguments(depth))
        if kind == 6:
            return Build(self.anything(depth + 1), self.pick([self.state, self.odd])())
        if kind == 7:
            return Items(self.anything(depth + 1), ("a", self.anything(depth + 1)))
        return Call(Name(self.pick(f"{CALLABLES} {GADGETS}")), *self.arguments(depth))

    def arguments(self, depth: int) -> list:
        return [self.anything(depth + 1) for _ in range(self.random.randrange(5))]

    def checkpoint(self):
        makers = [self.tensor, self.tensor, self.sparse, self.wrapped]
        found = {f"key{i}": self.pick(makers)() for i in range(self.random.randint(1, 4))}
        if self.calls_anything and self.random.random() < 0.3:
            found["more"] = self.anything()
        state = {"_metadata": {"": {"version": 1}}} if not self.lie() else self.state()
        return Build(Items(Call(Name("collections.OrderedDict")), *found.items()), state)

    def damaged(self, content: bytes) -> bytes:
        """With some probability, numbers of the container are overwritten, bytes are changed, or the end is missing."""
        if self.random.random() > 0.25 or len(content) < 20:
            return content
        found = bytearray(content)
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(found) - 8)
            kind = self.random.randrange(4)
            if kind == 0:
                found[at] = self.random.randrange(256)
            elif kind == 1:
                found[at : at + 4] = struct.pack("<I", self.pick([0, 1, 2**31, 2**32 - 1, 48]))
            elif kind == 2:
                found[at : at + 8] = struct.pack("<Q", self.pick([0, 2**40, 2**63 - 1, 2**64 - 1]))
            else:
                directory = found.rfind(b"PK\x01\x02")
                if directory > 0 and directory + 46 < len(found):
                    field = directory + self.pick([10, 16, 20, 24, 28, 30, 42])
                    found[field : field + 4] = struct.pack(
                        "<I", self.pick([0, 1, 47, 2**16, 2**31, 2**32 - 1])
                    )
        return bytes(found[: self.random.randrange(len(found))] if self.random.random() < 0.1 else found)


# ---- the containers
def _zip(m: Maker) -> Case:
    obj = m.checkpoint()
    records = list(m.records.items())
    if m.lie() and records:
        records.append((records[0][0], b"\1" * 48))
    if m.lie():
        records.append((m.pick(["../x", "/x", "0/../../x", "x\0y"]), b"1"))
    order = m.pick([b"little"] * 8 + [b"big", b"big", b"other", None])
    content = m.damaged(archive(obj, records, byteorder=order))
    return Case("zip", content, m.calls_anything or m.random.random() < 0.7, m.random.random() < 0.3)


def _legacy(m: Maker) -> Case:
    m.extra = (None,)
    obj = m.checkpoint()
    records = []
    for key, content in list(m.records.items()):
        count = len(content) // m.pick([4, 4, 4, 8, 1])
        records.append((m.value(key), count, content))
    records = [(k if isinstance(k, str) else "x", _int64(m.integer(n)), c) for k, n, c in records]
    return Case("legacy", m.damaged(legacy(obj, records)), m.calls_anything or m.random.random() < 0.7)


def _int64(value) -> int:
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else -1


def _tar(m: Maker) -> Case:
    import io
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name in ("sys_info", "pickle", "tensors", "storages", m.pick(["x", "../x", "/tmp/x"])):
            content = dumps(m.checkpoint())
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return Case("tar", m.damaged(stream.getvalue()))


def _folder(m: Maker) -> Case:
    def size(*lengths):
        return m.value(Call(m.name("torch.Size"), tuple(map(m.integer, lengths))))

    def described(cls: str, state):
        return m.value(Build(New(Name(cls)), m.value(state)))

    def fields(**state):
        if m.lie():
            state[m.pick(ATTRIBUTES)] = m.odd()
        return {k: v for k, v in state.items() if not m.lie()}

    layout = m.value(Call(Name("torch.serialization._get_layout"), "torch.strided"))
    encoding = m.value(Call(Name(DESCRIPTIONS + "_MEM_FORMAT_ENCODING"), m.integer(0)))
    properties = described(
        DESCRIPTIONS + "TensorProperties", (m.dtype("float32"), layout, False, encoding, False)
    )
    chunk = described(DESCRIPTIONS + "ChunkStorageMetadata", fields(offsets=size(0), sizes=size(4)))
    entry = described(
        DESCRIPTIONS + "TensorStorageMetadata",
        fields(properties=properties, size=size(4), chunks=m.value([chunk])),
    )
    index = described(
        DESCRIPTIONS + "MetadataIndex", fields(fqn=m.value("a"), offset=size(0), index=m.integer(0))
    )
    data = m.damaged(archive(_one(m), list(m.records.items())))
    place = described(
        "torch.distributed.checkpoint.filesystem._StorageInfo",
        fields(
            relative_path=m.value(m.pick(PATHS) if m.lie() else "0.distcp"),
            offset=m.integer(0),
            length=m.integer(len(data)),
        ),
    )
    places = Items(New(Name("collections.OrderedDict")), (index, place))
    state = fields(state_dict_metadata={"a": entry}, planner_data=m.value({"a": ("a",)}), storage_data=places)
    metadata = Build(New(m.name(DESCRIPTIONS + "Metadata")), state)
    return Case("folder", {".metadata": m.damaged(dumps(metadata)), "0.distcp": data})


def _one(m: Maker):
    storage = m.storage("FloatStorage", b"\0" * 16, 4)
    hooks = Call(Name("collections.OrderedDict"))
    size, stride = (m.integer(4),), (m.integer(1),)
    return Call(Name("torch._utils._rebuild_tensor_v2"), storage, m.integer(0), size, stride, False, hooks)


def _safetensors(m: Maker) -> Case:
    header, at = {}, 0
    for i in range(m.random.randint(1, 3)):
        shape = [m.integer(n) for n in (2, 3)]
        kind = m.pick(["F32"] * 6 + ["F64", "I8", "BF16", "XX", "F8_E4M3"])
        header[f"key{i}"] = {
            "dtype": kind,
            "shape": shape,
            "data_offsets": [m.integer(at), m.integer(at + 24)],
        }
        at += 24
    text = json.dumps(header, default=repr).encode()
    length = m.integer(len(text))
    length = length if isinstance(length, int) and 0 <= length < 2**64 else 2**63
    return Case("safetensors", m.damaged(struct.pack("<Q", length) + text + b"\0" * at))


_MAKERS = {"zip": _zip, "legacy": _legacy, "tar": _tar, "folder": _folder, "safetensors": _safetensors}


def make(seed: int, number: int) -> Case:
    """Case `number` of the sequence that belongs to `seed`."""
    maker = Maker(seed, number)
    kind = maker.pick(KINDS)
    try:
        return _MAKERS[kind](maker)
    except (OverflowError, TypeError, struct.error, pickle.PicklingError, UnicodeEncodeError):
        return make(seed, number + 10**9)  # a lie that this container cannot even be written with
