"""Checkpoints with false sizes: a tensor never reaches beyond its storage, or a storage beyond its file."""

from __future__ import annotations

import io
import pickle
import struct

import pytest

import msadapter as torch

from .pickle_ops import Call, Name, Stored, archive, legacy, tensor

REFUSED = (RuntimeError, pickle.UnpicklingError, EOFError)
HUGE = 2**62
VIEWS = [
    (0, (100_000_000,), (1,)),
    (0, (13,), (1,)),
    (1, (12,), (1,)),
    (12, (1,), (1,)),
    (0, (3, 4), (5, 1)),
    (0, (2, 2), (11, 1)),
    (-1, (1,), (1,)),
    (-(2**63), (1,), (1,)),
    (2**63 - 1, (1,), (1,)),
    (2**64, (1,), (1,)),
    (0, (-1,), (1,)),
    (0, (-5, -5), (1, 1)),
    (11, (2,), (-1,)),
    (0, (3, 4), (4, -1)),
    (0, (HUGE, 8), (1, 1)),
    (0, (2, 2), (HUGE, HUGE)),
    (0, (5,), (2**62 + 1,)),
    (0, (2**32, 2**32), (0, 0)),
    (0, (2**63,), (1,)),
    (0, (3, 4), (4,)),
    (0, (3,), (4, 1)),
    (0, (1.5,), (1,)),
    (0, "12", (1,)),
    ("0", (1,), (1,)),
    (None, (1,), (1,)),
    (0, None, None),
]
HOOKS = Call(Name("collections.OrderedDict"))


def _v2(offset, size, stride):
    return tensor(Stored(), offset, size, stride)


def _v3(offset, size, stride):
    storage = Stored("UntypedStorage", count=48)
    dtype = Name("torch.uint32")
    return Call(Name("torch._utils._rebuild_tensor_v3"), storage, offset, size, stride, False, HOOKS, dtype)


def _v1(offset, size, stride):
    return Call(Name("torch._utils._rebuild_tensor"), Stored(), offset, size, stride)


def _parameter(offset, size, stride):
    return Call(Name("torch._utils._rebuild_parameter"), _v2(offset, size, stride), True, HOOKS)


def _subclass(offset, size, stride):
    made = (Stored(), offset, size, stride, False, HOOKS)
    function = Name("torch._utils._rebuild_tensor_v2")
    return Call(Name("torch._tensor._rebuild_from_type_v2"), function, Name("torch.Tensor"), made, {"a": 1})


def _storages_of_legacy_files(obj):
    """Return the same call for legacy files, in which a persistent id has one more field."""
    if isinstance(obj, Stored):
        obj.pid = (*obj.pid[:5], None)
    for part in obj if isinstance(obj, (tuple, list)) else getattr(obj, "args", ()):
        _storages_of_legacy_files(part)
    return obj


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("rebuild", [_v1, _v2, _v3, _parameter, _subclass])
def test_views_that_leave_the_storage(rebuild, weights_only):
    records = [("0", 48 if rebuild is _v3 else 12, b"\0" * 48)]
    for view in VIEWS:
        obj = rebuild(*view)
        for make in (archive, lambda x: legacy(_storages_of_legacy_files(x), records)):
            with pytest.raises((*REFUSED, TypeError, OverflowError)):
                torch.load(io.BytesIO(make(obj)), weights_only=weights_only)
    sound = rebuild(2, (2, 2), (4, 1))
    assert torch.load(io.BytesIO(archive(sound)), weights_only=weights_only).tolist() == [[0, 0], [0, 0]]
    content = legacy(_storages_of_legacy_files(sound), records)
    assert torch.load(io.BytesIO(content), weights_only=weights_only).shape == (2, 2)


def test_the_error_is_that_of_pytorch():
    with pytest.raises(
        RuntimeError, match="requiring a storage size of 52 are out of bounds for storage of size 48"
    ):
        torch.load(io.BytesIO(archive(_v2(0, (13,), (1,)))))


@pytest.mark.parametrize("view", VIEWS[:19], ids=str)
def test_the_primitives_check_for_themselves(view):
    offset, size, stride = view
    x = torch.zeros(12)
    with pytest.raises((RuntimeError, OverflowError)):
        torch.Tensor._from_storage(x.untyped_storage(), torch.float32, offset, size, stride)
    with pytest.raises((RuntimeError, OverflowError, TypeError, ValueError)):
        x.as_strided(size, stride, offset)
    if any(n < 0 for n in (offset, *size, *stride)) or max(offset, *size, *stride) >= 2**40:
        # Numbers beyond 64 bits are ValueErrors and TypeErrors in PyTorch.
        with pytest.raises((RuntimeError, OverflowError, TypeError, ValueError)):
            torch.empty(0).set_(x.untyped_storage(), offset, size, stride)
    assert x.shape == (12,) and x.untyped_storage().nbytes() == 48


@pytest.mark.parametrize("size", [(-3,), (2**62, 2**62), (2**61,)])
def test_sizes_that_resize_refuses(size):
    x = torch.zeros(12)
    with pytest.raises(RuntimeError):
        x.resize_(size)
    assert x.tolist() == [0] * 12


# ---- storages
@pytest.mark.parametrize("count", [13, 2**40, 2**62, -1, -(2**62), 2**64, 1.0, None, "12"])
def test_a_storage_that_is_larger_than_its_record(count):
    obj = tensor(Stored(count=count), 0, (2,), (1,))
    with pytest.raises(REFUSED):
        torch.load(io.BytesIO(archive(obj)))
    for announced in (12, count):
        if isinstance(announced, int) and abs(announced) < 2**63:
            with pytest.raises(REFUSED):
                torch.load(io.BytesIO(legacy(_storages_of_legacy_files(obj), [("0", announced, b"\0" * 48)])))


@pytest.mark.parametrize(
    "place",
    [("storage", Name("torch.Size"), "0", "cpu", 12), ("storage", Name("torch.float32"), "0", "cpu", 12)],
)
def test_a_storage_whose_class_is_none(place):
    obj = Stored()
    obj.pid = place
    with pytest.raises(REFUSED):
        torch.load(io.BytesIO(archive(tensor(obj))))


@pytest.mark.parametrize("key", ["1", "../data.pkl", "../../etc/passwd", "/etc/passwd", 0, ("0",), None])
def test_a_storage_under_another_name(key):
    with pytest.raises(REFUSED):
        torch.load(io.BytesIO(archive(tensor(Stored(key=key)))))


def test_storages_that_a_legacy_file_has_no_data_for():
    obj = _storages_of_legacy_files([tensor(Stored(key="0")), tensor(Stored(key="1"))])
    for records in (
        [("0", 12, b"\0" * 48)],
        [("0", 12, b"\0" * 48)] * 2,
        [("0", 12, b"\0" * 48), ("2", 12, b"")],
    ):
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(legacy(obj, records)))
    many = _storages_of_legacy_files([tensor(Stored(key=str(i), count=2**20)) for i in range(50)])
    with pytest.raises(REFUSED):
        torch.load(io.BytesIO(legacy(many)))


# ---- the container
def test_records_that_stand_twice_or_on_one_another(tmp_path):
    with pytest.raises(REFUSED, match="twice"):
        torch.load(io.BytesIO(archive(tensor(Stored()), [("0", b"\0" * 48), ("0", b"\1" * 48)])))
    content = bytearray(
        archive([tensor(Stored(key="0")), tensor(Stored(key="1"))], [("0", b"\0" * 48), ("1", b"\1" * 48)])
    )
    for wrong in (47, 2**30):  # the sizes in the directory
        changed = bytearray(content)
        at = changed.rindex(b"archive/data/0") - 46
        changed[at + 20 : at + 28] = struct.pack("<II", wrong, wrong)
        (tmp_path / "x.pt").write_bytes(changed)
        for mmap in (False, True):
            with pytest.raises(REFUSED):
                torch.load(tmp_path / "x.pt", mmap=mmap)


def test_a_record_at_an_odd_address(tmp_path):
    from msadapter._serialization import zip_writer

    class Unaligned(zip_writer.ZipWriter):
        def _padding(self, header_end):
            return b"FB" + struct.pack("<H", 1 + -(header_end + 5) % 2) + b"Z" * (1 + -(header_end + 5) % 2)

    from . import pickle_ops

    before, pickle_ops.ZipWriter = pickle_ops.ZipWriter, Unaligned
    try:
        content = archive(tensor(Stored()), [("0", struct.pack("<12f", *range(12)))])
    finally:
        pickle_ops.ZipWriter = before
    (tmp_path / "x.pt").write_bytes(content)
    found = torch.load(tmp_path / "x.pt", mmap=True)
    assert found.data_ptr() % 4 == 0 and found.reshape(-1).tolist() == list(range(12))


# ---- byte order
def test_a_file_of_a_big_endian_machine():
    content = struct.pack(">12f", *range(12))
    typed = tensor(Stored())
    found = torch.load(io.BytesIO(archive([typed, typed], [("0", content)], byteorder=b"big")))
    assert found[0].reshape(-1).tolist() == found[1].reshape(-1).tolist() == list(range(12))
    pair = tensor(Stored("ComplexFloatStorage", count=6), 0, (6,), (1,))
    found = torch.load(io.BytesIO(archive(pair, [("0", content)], byteorder=b"big")))
    assert found.tolist() == [complex(i, i + 1) for i in range(0, 12, 2)]
    plain = tensor(Stored("ByteStorage", count=48), 0, (4,), (1,))
    assert torch.load(io.BytesIO(archive(plain, [("0", content)], byteorder=b"big"))).tolist() == list(
        content[:4]
    )
    for order in (b"middle", b"", b"bigbig"):
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(archive(typed, [("0", content)], byteorder=order)))


def test_big_endian_numbers_that_nothing_turns_round():
    two = [tensor(Stored()), tensor(Stored("DoubleStorage", count=6), 0, (6,), (1,))]
    for obj in (two, _v3(0, (2,), (1,))):
        with pytest.raises(NotImplementedError, match="byte order"):
            torch.load(io.BytesIO(archive(obj, byteorder=b"big")), weights_only=False)


# ---- sparse tensors
def _sparse(layout, *data):
    return Call(
        Name("torch._utils._rebuild_sparse_tensor"),
        Call(Name("torch.serialization._get_layout"), layout),
        data,
    )


def _longs(*values, key="0"):
    return tensor(Stored("LongStorage", key, len(values)), 0, (len(values),), (1,)), struct.pack(
        f"<{len(values)}q", *values
    )


def _coo(indices, size, *, nnz=2, stride=None, coalesced=False, dtype="LongStorage", key="0"):
    count = len(indices)
    at = tensor(Stored(dtype, key, count), 0, (1, nnz), stride or (nnz, 1))
    values = tensor(Stored("FloatStorage", "1", 2), 0, (nnz,), (1 if nnz == 2 else 0,))
    records = [(key, struct.pack(f"<{count}q", *indices)), ("1", b"\0" * 8)]
    return _sparse("torch.sparse_coo", at, values, size, coalesced), records


@pytest.mark.parametrize(
    "indices, size, more",
    [
        ([0, 5], (5,), {}),
        ([-1, 0], (5,), {}),
        ([0, 2**62], (5,), {}),
        ([0, 1], (-5,), {}),
        ([0, 1], (5, 5), {}),
        ([0, 1], (1.5,), {}),
        ([3, 1], (5,), {"coalesced": True}),
        ([1, 1], (5,), {"coalesced": True}),
        ([0], (5,), {"nnz": 10**12, "stride": (0, 0)}),
        ([0, 1], (5,), {"dtype": "DoubleStorage"}),
    ],
)
def test_coordinates_that_lie(indices, size, more):
    obj, records = _coo(indices, size, **more)
    with pytest.raises(REFUSED):
        torch.load(io.BytesIO(archive(obj, records)))


def _csr(outer, inner, size, values=None):
    first, content0 = _longs(*outer, key="0")
    second, content1 = _longs(*inner, key="1")
    found = tensor(Stored("FloatStorage", "2", 4), 0, values or (len(inner),), (1,) * len(values or (1,)))
    records = [("0", content0), ("1", content1), ("2", b"\0" * 16)]
    return _sparse("torch.sparse_csr", first, second, found, size), records


@pytest.mark.parametrize(
    "outer, inner, size, values",
    [
        ([0, 1, 2], [0, 3], (2, 3), None),
        ([0, 1, 2], [0, -1], (2, 3), None),
        ([1, 1, 2], [0, 1], (2, 3), None),
        ([0, 5, 2], [0, 1], (2, 3), None),
        ([0, 2**62, 2], [0, 1], (2, 3), None),
        ([0, 1, 3], [0, 1], (2, 3), None),
        ([0, 1, 2], [0, 1], (3, 3), None),
        ([0, 1, 2], [0, 1], (10**12, 3), None),
        ([0, 1, 2], [0, 1], (2,), None),
        ([0, 1, 2], [0, 1], (2, 3, 7), None),
        ([0, 1, 2], [0, 1], (2, 3), (2, 2)),
        ([0, 1, 2], [0, 1], (2, -3), None),
    ],
)
def test_compressed_indices_that_lie(outer, inner, size, values):
    obj, records = _csr(outer, inner, size, values)
    with pytest.raises(REFUSED):
        torch.load(io.BytesIO(archive(obj, records)))


def test_sparse_tensors_that_are_sound():
    obj, records = _coo([1, 4], (5,), coalesced=True)
    assert torch.load(io.BytesIO(archive(obj, records))).to_dense().shape == (5,)
    obj, records = _csr([0, 1, 2], [0, 2], (2, 3))
    assert torch.load(io.BytesIO(archive(obj, records))).to_dense().shape == (2, 3)


# ---- views that are sound and large
@pytest.mark.parametrize("bit", ["conj", "neg"])
def test_an_expanded_view_stays_one(bit):
    expanded = tensor(Stored("ComplexFloatStorage", count=6), 1, (10**10,), (0,), metadata=({bit: True},))
    records = [("0", struct.pack("<12f", *range(12)))]
    found = torch.load(io.BytesIO(archive(expanded, records)))
    assert found.shape == (10**10,) and found.untyped_storage().nbytes() == 48
    assert found[7].item() == {"conj": complex(2, -3), "neg": complex(-2, -3)}[bit]


def test_an_expanded_view_is_not_copied_for_another_device():
    expanded = tensor(Stored(), 0, (10**11,), (0,))
    move = Call(
        Name("torch._utils._rebuild_device_tensor_from_cpu_tensor"),
        expanded,
        Name("torch.float64"),
        "cpu",
        False,
    )
    with pytest.raises(REFUSED, match="no storage"):
        torch.load(io.BytesIO(archive(move)))


# ---- files and buffers that are mapped
def test_files_that_are_smaller_than_what_is_asked(tmp_path):
    (tmp_path / "x").write_bytes(b"\0" * 10)
    for size in (11, 2**40, -1):
        with pytest.raises(RuntimeError, match="x>"):
            torch.UntypedStorage.from_file(str(tmp_path / "x"), False, size)
    with pytest.raises(RuntimeError, match="nothing"):
        torch.UntypedStorage.from_file(str(tmp_path / "nothing"), False, 4)
    assert torch.from_file(str(tmp_path / "x"), size=2).tolist() == [0, 0]
    torch.UntypedStorage.from_file(str(tmp_path / "new"), True, 4).fill_(7)
    assert (tmp_path / "new").read_bytes() == b"\7" * 4


@pytest.mark.parametrize(
    "count, offset", [(-1, -4), (2, 4), (1, 8), (0, 0), (2**61 + 1, 0), (-1, 3), (1, 2**62)]
)
def test_buffers_that_are_smaller_than_what_is_asked(count, offset):
    with pytest.raises(ValueError):
        torch.frombuffer(bytearray(8), dtype=torch.float32, count=count, offset=offset)
