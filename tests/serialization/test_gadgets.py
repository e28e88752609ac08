"""Calls that a checkpoint may not make: torch.load(weights_only=True) only rebuilds tensors."""

from __future__ import annotations

import io
import pickle
import sys
import types

import pytest

import msadapter as torch

from .pickle_ops import Build, Call, Items, Name, New, Stored, archive, dumps, legacy, tensor

LAYOUT = Name("torch.serialization._get_layout")
FROM_TYPE = Name("torch._tensor._rebuild_from_type_v2")
REFUSED = (pickle.UnpicklingError, RuntimeError)


def _refused(obj) -> None:
    for content in (archive(obj), legacy(obj)):
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(content), weights_only=True)


@pytest.mark.parametrize(
    "name",
    [
        "torch.load",
        "torch.save",
        "torch.builtins",
        "load",
        "os",
        "torch.__dict__",
        "__dict__",
        "torch.float32",
        3,
        (),
    ],
)
def test_only_layouts_are_found_by_the_name_of_a_layout(name):
    _refused(Call(LAYOUT, name))


def test_a_layout_is_found():
    assert torch.load(io.BytesIO(archive(Call(LAYOUT, "torch.sparse_coo")))) is torch.sparse_coo


def test_a_rebuilder_calls_rebuilders_only(tmp_path):
    target = tmp_path / "written"
    save = Call(LAYOUT, "torch.save")
    for function in (
        save,
        Name("torch.Size"),
        Name("collections.Counter"),
        Name("torch.device"),
        LAYOUT,
        FROM_TYPE,
    ):
        _refused(Call(FROM_TYPE, function, Name("torch.Tensor"), ([1], str(target)), {}))
    assert not target.exists()


ODICT = Name("collections.OrderedDict")
REBUILD = Name("torch._utils._rebuild_tensor_v2")


def _nested_key():
    """Return the opcodes of a tuple with 2**60 leaves: every level contains the one before it twice."""
    return b"\x80\x02)" + b"".join(b"2\x86" for _ in range(60))


@pytest.mark.parametrize(
    "call",
    [
        Call(Name("builtins.bytearray"), 10**13),
        Call(Name("builtins.bytearray"), "\u4e00" * 60_000, "punycode"),
        Call(Name("builtins.bytearray"), "a", "utf-16"),
        Call(Name("builtins.complex"), "1"),
        Call(Name("torch.Tensor"), 1000),
        Call(Name("torch.Tensor"), 10**13),
        New(Name("torch.Tensor"), 1000),
        New(Name("torch.nn.parameter.Parameter"), None),
        Call(Name("torch.nn.parameter.Parameter"), [1]),
        Call(Name("torch.Size"), ("a",)),
        Call(Name("torch.Size"), (1.5,)),
        Call(Name("torch.device"), 3, 4),
        Call(Name("torch.float32"), 1),
        Call(Name("torch.FloatStorage"), 10**12),
        Call(Name("torch.storage.UntypedStorage"), 10**12),
        Call(Name("_codecs.encode"), "a", "utf-16"),
        Call(Name("_codecs.encode"), b"a", "latin1"),
        Call(ODICT, tensor(Stored())),
        Call(Name("collections.Counter"), tensor(Stored())),
        Call(Name("torch._utils._rebuild_tensor_v2"), 1, 0, (1,), (1,), False, Call(ODICT)),
        Call(Name("torch._utils._rebuild_parameter"), [1], False, Call(ODICT)),
        Call(
            Name("torch._utils._rebuild_device_tensor_from_numpy"), [1], Name("torch.float32"), "cpu", False
        ),
        Call(Name("torch._utils._rebuild_sparse_tensor"), "torch.sparse_coo", (1, 2, 3)),
        Call(Name("torch._utils._rebuild_meta_tensor_no_storage"), Name("torch.float32"), (-1,), (1,), False),
        Call(
            Name("torch._utils._rebuild_meta_tensor_no_storage"),
            Name("torch.float32"),
            (2**62, 4),
            (4, 1),
            False,
        ),
    ],
    ids=lambda call: f"{getattr(call.function if isinstance(call, Call) else call.cls, 'name', '')}",
)
def test_arguments_that_no_file_of_pytorch_has(call):
    _refused(call)


@pytest.mark.parametrize(
    "end", [b"Ns}.", b"(Nu}.", b"\x85.", b"a.", b"\x90.", b"\x91.", b"R.", b"Q.", b"b."], ids=str
)
@pytest.mark.parametrize(
    "start", [b"\x80\x02}", b"\x80\x02]", b"\x80\x04\x8f(", b"\x80\x02N", b"\x80\x04("], ids=str
)
def test_a_key_that_takes_for_ever_to_hash(start, end):
    program = start + _nested_key()[2:] + end
    try:
        _load_pickle(program)
    except (*REFUSED, EOFError):
        pass  # the test is that the call returns


@pytest.mark.parametrize("length", [6, 10**9])
def test_a_rebuilder_takes_its_arguments_from_a_tuple(length):
    """A tensor is iterable, and an expanded one of a few bytes would be unpacked into any number of tensors."""
    args = tensor(Stored(), 0, (length,), (0,))
    with pytest.raises(pickle.UnpicklingError, match="takes a tuple of arguments"):
        torch.load(io.BytesIO(archive(Call(FROM_TYPE, REBUILD, Name("torch.Tensor"), args, None))))


@pytest.mark.parametrize("name", ["collections.OrderedDict", "collections.Counter", "builtins.set"])
def test_a_key_inside_of_a_call_that_takes_for_ever_to_hash(name):
    module, _, qualified = name.rpartition(".")
    wrap = b"N\x86" if name.endswith("OrderedDict") else b""
    program = f"c{module}\n{qualified}\n".encode() + b"](" + _nested_key()[2:] + wrap + b"e\x85R."
    with pytest.raises(REFUSED, match="too large"):
        _load_pickle(b"\x80\x02" + program)
    for call in (
        b"ctorch.serialization\n_get_layout\n",
        b"c_codecs\nencode\n",
        b"ctorch\ndevice\n",
        b"ctorch\nSize\n",
    ):
        with pytest.raises(REFUSED):
            _load_pickle(b"\x80\x02" + call + _nested_key()[2:] + b"\x85R.")


def _load_pickle(program: bytes):
    from msadapter._serialization.zip_writer import ZipWriter

    stream = io.BytesIO()
    writer = ZipWriter(stream, "archive")
    writer.write_record("data.pkl", program)
    writer.finish()
    return torch.load(io.BytesIO(stream.getvalue()))


# ---- state that an object gets
def test_attributes_of_an_ordered_dict():
    made = torch.load(io.BytesIO(archive(Build(Call(ODICT), {"_metadata": {"version": 1}}))))
    assert made._metadata == {"version": 1}
    for name in ("items", "keys", "__class__", "__reduce__", "popitem", "__missing__"):
        _refused(Build(Call(ODICT), {name: Name("torch.Size")}))
    for state in ([1], 3, {3: 4}, ({}, {"items": 1}), tensor(Stored())):
        _refused(Build(Call(ODICT), state))


@pytest.mark.parametrize("build", ["state", "parameter", "build", "build parameter"])
@pytest.mark.parametrize(
    "name",
    [
        "data",
        "__class__",
        "__dict__",
        "grad",
        "requires_grad",
        "shape",
        "detach",
        "_backward_hooks",
        "_wrapper_device",
    ],
)
def test_attributes_that_a_tensor_does_not_get_from_a_file(build, name):
    inner = tensor(Stored())
    state = {name: Name("torch.Tensor")}
    if build == "state":
        made = (Stored(), 0, (3, 4), (4, 1), False, Call(ODICT))
        obj = Call(FROM_TYPE, Name("torch._utils._rebuild_tensor_v2"), Name("torch.Tensor"), made, state)
    elif build == "parameter":
        obj = Call(Name("torch._utils._rebuild_parameter_with_state"), inner, True, Call(ODICT), state)
    elif build == "build":
        obj = Build(inner, state)
    else:
        obj = Build(Call(Name("torch._utils._rebuild_parameter"), inner, True, Call(ODICT)), state)
    with pytest.raises(REFUSED):
        torch.load(io.BytesIO(archive(obj)))


def test_the_parts_of_a_sparse_tensor_are_no_attributes_of_a_file():
    indices = tensor(Stored("LongStorage", count=2), 0, (1, 2), (2, 1))
    values = tensor(Stored("FloatStorage", "1", 2), 0, (2,), (1,))
    data = (indices, values, (5,), False)
    sparse = Call(Name("torch._utils._rebuild_sparse_tensor"), Call(LAYOUT, "torch.sparse_coo"), data)
    records = [("0", b"\0" * 16), ("1", b"\0" * 8)]
    for name in ("_i", "_v", "_extent", "_sorted"):
        state = {name: indices}
        obj = Call(Name("torch._utils._rebuild_parameter_with_state"), sparse, False, Call(ODICT), state)
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(archive(obj, records)))
        obj = Call(FROM_TYPE, sparse.function, Name("torch.Tensor"), tuple(sparse.args), state)
        with pytest.raises(REFUSED):
            torch.load(io.BytesIO(archive(obj, records)))


def test_attributes_that_a_tensor_gets_from_a_file():
    state = {"tag": "a", "_is_hf_initialized": True}
    made = (Stored(), 0, (3, 4), (4, 1), False, Call(ODICT))
    obj = Call(FROM_TYPE, Name("torch._utils._rebuild_tensor_v2"), Name("torch.Tensor"), made, state)
    found = torch.load(io.BytesIO(archive(obj)))
    assert found.tag == "a" and found._is_hf_initialized
    inner = tensor(Stored())
    obj = Call(Name("torch._utils._rebuild_parameter_with_state"), inner, True, Call(ODICT), state)
    found = torch.load(io.BytesIO(archive(obj)))
    assert type(found) is torch.nn.Parameter and found.tag == "a"


def test_hooks_do_not_come_from_a_file():
    hooks = Items(Call(ODICT), (0, Name("torch.Size")))
    made = Call(Name("torch._utils._rebuild_tensor_v2"), Stored(), 0, (3, 4), (4, 1), False, hooks)
    _refused(made)
    _refused(Call(Name("torch._utils._rebuild_parameter"), tensor(Stored()), True, hooks))


def test_items_go_into_dicts_only():
    for target in (Name("torch.Tensor"), tensor(Stored()), Name("collections.OrderedDict"), [1]):
        _refused(Items(target, (0, 1)))


# ---- .metadata of torch.distributed.checkpoint
def _metadata(obj):
    from msadapter.distributed.checkpoint._metadata_file import read_metadata

    return read_metadata(io.BytesIO(dumps(obj)))


DESCRIPTION = "torch.distributed.checkpoint.metadata."


@pytest.mark.parametrize(
    "obj",
    [
        Build(Name(DESCRIPTION + "Metadata"), (None, {"__init__": 1})),
        Build(Name(DESCRIPTION + "TensorProperties"), (None, {"create_from_tensor": 1})),
        Build(Name("torch.Tensor"), (None, {"__add__": 1})),
        Build(Name("torch._utils._rebuild_tensor_v2"), (None, {"__defaults__": (1,)})),
        Build(New(Name(DESCRIPTION + "Metadata")), {"__class__": Name("torch.Tensor")}),
        Build(New(Name(DESCRIPTION + "TensorProperties")), (None, {"__setstate__": 1})),
        Call(Name(DESCRIPTION + "Metadata"), 1, 2, 3),
        Call(Name(DESCRIPTION + "_MEM_FORMAT_ENCODING"), [1]),
        Call(Name("torch.distributed.checkpoint.filesystem.FileSystemWriter"), "x"),
        Call(Call(LAYOUT, "torch.save"), [1], "x"),
        Call(Name("pathlib.PosixPath"), [1]),
        New(Name(DESCRIPTION + "Metadata")),
        Build(New(Name(DESCRIPTION + "Metadata")), {"state_dict_metadata": 3}),
    ],
)
def test_descriptions_of_checkpoints_only_hold_values(obj):
    from msadapter.distributed.checkpoint import metadata

    before = {name: dict(vars(found)) for name, found in vars(metadata).items() if isinstance(found, type)}
    with pytest.raises(pickle.UnpicklingError):
        _metadata(obj)
    assert before == {name: dict(vars(getattr(metadata, name))) for name in before}
    assert torch._utils._rebuild_tensor_v2.__defaults__ == (None,)


def test_every_part_of_a_path_is_text():
    for parts in (([1],), ("a", b"b"), (3, "b")):
        with pytest.raises(pickle.UnpicklingError, match="a path is made of something that is not text"):
            _metadata(Call(Name("pathlib.PosixPath"), *parts))


def _nested_state(kind: str, shared: str) -> bytes:
    """Return the opcodes of an object whose hash visits the same field 2**60 times, at two for each level."""
    if kind == "tuples":
        fields = b")" + b"q\x01h\x01\x86" * 60
        return shared.encode() + b")\x81}X\x03\x00\x00\x00fqn" + fields + b"sb"
    level = b"q\x01\x30" + shared.encode() + b")\x81}(X\x03\x00\x00\x00fqnh\x01X\x06\x00\x00\x00offseth\x01ub"
    return b"N" + level * 60


@pytest.mark.parametrize("kind", ["tuples", "objects"])
def test_an_object_of_metadata_that_takes_for_ever_to_hash(kind):
    index = f"c{DESCRIPTION[:-1]}\nMetadataIndex\n"
    program = b"\x80\x02}" + _nested_state(kind, index) + b"K\x01s."
    from msadapter.distributed.checkpoint._metadata_file import read_metadata

    with pytest.raises(pickle.UnpicklingError, match="too large|contains"):
        read_metadata(io.BytesIO(program))


def test_an_object_of_metadata_that_contains_itself():
    """Directly, or through another one: neither can be hashed."""
    from msadapter.distributed.checkpoint._metadata_file import read_metadata
    from msadapter.distributed.checkpoint.metadata import MetadataIndex

    one, other, alone = MetadataIndex("one"), MetadataIndex("other"), MetadataIndex("alone")
    for inside, outside in ((one, other), (other, one), (alone, alone)):
        object.__setattr__(outside, "fqn", inside)
    for index, said in ((one, "a MetadataIndex contains itself"), (alone, "damaged: RecursionError")):
        state = pickle.dumps(index, 2)[2:-1].replace(b"msadapter.distributed", b"torch.distributed")
        with pytest.raises(pickle.UnpicklingError, match=said):
            read_metadata(io.BytesIO(b"\x80\x02}" + state + b"K\x01s."))


def test_metadata_whose_objects_contain_others(torch_by_name):
    """Plans of Megatron's checkpoints hold items by the thousand, which hold an index."""
    from msadapter.distributed.checkpoint._metadata_file import read_metadata
    from msadapter.distributed.checkpoint.metadata import Metadata, MetadataIndex
    from msadapter.distributed.checkpoint.planner import SavePlan, WriteItem, WriteItemType

    items = [
        WriteItem(MetadataIndex(f"layer.{k}", torch.Size([k])), WriteItemType.SHARD, None)
        for k in range(5000)
    ]
    plan = SavePlan(items)
    written = pickle.dumps(Metadata({}, planner_data=plan), protocol=2)
    named_as_in_files = written.replace(b"cmsadapter.", b"ctorch.")
    assert read_metadata(io.BytesIO(named_as_in_files)).planner_data == plan


def test_metadata_runs_no_code_of_a_module_that_it_names(monkeypatch):
    asked = []
    module = types.ModuleType("lazy_module")
    module.__getattr__ = asked.append
    monkeypatch.setitem(sys.modules, "lazy_module", module)
    with pytest.raises(pickle.UnpicklingError, match="lazy_module.anything"):
        _metadata(New(Name("lazy_module.anything")))
    assert asked == []
