"""torch.save and torch.load against files of real PyTorch, damage, and what must not be executed."""

import argparse
import io
import os
import pickle
import pickletools
import subprocess
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from tests.serialization import file_cases as cases

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests/golden/files"


@pytest.mark.parametrize(
    "options",
    [{}, {"weights_only": False}, {"mmap": True}, {"map_location": "cpu"}],
    ids=lambda o: "-".join(o) or "default",
)
def test_reads_pytorchs_file(options):
    cases.check(torch, torch.load(FILES / "zip.pt", **options))


@pytest.mark.parametrize("weights_only", [True, False])
def test_reads_pytorchs_legacy_file(weights_only):
    cases.check(torch, torch.load(FILES / "legacy.pt", weights_only=weights_only), legacy=True)


class Slots(torch.Tensor):
    """A subclass whose attributes have slots, one of them private."""

    __slots__ = ("elem", "__own")

    def put(self, value):
        self.__own = value
        return self

    def own(self):
        return self.__own


@pytest.mark.parametrize("weights_only", [True, False])
def test_attributes_of_a_subclass_are_saved(weights_only):
    stream = io.BytesIO()
    saved = torch.ones(2).as_subclass(Slots).put(4)
    saved.elem, saved.other, saved._private = 3, 5, 6
    torch.save(saved, stream)
    stream.seek(0)
    with torch.serialization.safe_globals([Slots]):
        found = torch.load(stream, weights_only=weights_only)
    assert type(found) is Slots and (found.elem, found.own(), found.other, found._private) == (3, 4, 5, 6)


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_round_trip(legacy, protocol):
    stream = io.BytesIO()
    torch.save(
        cases.make(torch, legacy), stream, pickle_protocol=protocol, _use_new_zipfile_serialization=not legacy
    )
    stream.seek(0)
    cases.check(torch, torch.load(stream), legacy)


def test_pytorch_reads_our_files(torch_python, tmp_path):
    torch.save(cases.make(torch), tmp_path / "zip.pt")
    torch.save(cases.make(torch, True), tmp_path / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(torch.nn.Linear(2, 1), tmp_path / "module.pt")
    program = """
import os, sys, torch
from tests.serialization import file_cases as cases
os.chdir(sys.argv[1])
for options in ({}, {"mmap": True}, {"weights_only": False}):
    cases.check(torch, torch.load("zip.pt", **options))
cases.check(torch, torch.load("legacy.pt"), legacy=True)
assert torch.load("module.pt", weights_only=False)(torch.ones(1, 2)).shape == (1, 1)
"""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MSADAPTER_DEVICE")}
    command = [str(torch_python), "-c", program, str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=clean, check=True, timeout=120)


def test_module_of_pytorch():
    module = torch.load(FILES / "module.pt", weights_only=False)
    assert type(module) is torch.nn.Linear
    assert module(torch.ones(1, 2)).shape == (1, 1)


def test_optimizer_state_of_pytorch():
    p = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([p])
    optimizer.load_state_dict(torch.load(FILES / "optimizer.pt"))
    assert optimizer.state[p]["step"].item() == 1.0


def test_mmap_does_not_write_to_the_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.zeros(64), path)
    before = path.read_bytes()
    torch.load(path, mmap=True).add_(1)
    assert path.read_bytes() == before


def test_records_are_aligned_and_stored(tmp_path):
    path = tmp_path / "a.b.pt"
    torch.save({"x": torch.ones(3), "y": torch.ones(5)}, path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            assert info.filename.startswith("a.b/")
            assert info.compress_type == zipfile.ZIP_STORED
            with open(path, "rb") as stream:
                stream.seek(info.header_offset + 26)
                name, extra = (int.from_bytes(stream.read(2), "little") for _ in range(2))
            assert (info.header_offset + 30 + name + extra) % 64 == 0


@pytest.mark.parametrize(
    "location", ["cpu", {"cpu": "cpu"}, lambda storage, tag: storage], ids=["name", "mapping", "function"]
)
def test_map_location(location):
    assert torch.load(FILES / "zip.pt", map_location=location)["base"].device.type == "cpu"


def _saved(obj) -> io.BytesIO:
    stream = io.BytesIO()
    torch.save(obj, stream)
    stream.seek(0)
    return stream


class _Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_nothing_is_executed_by_default(tmp_path):
    target = str(tmp_path / "touched")
    with pytest.raises(pickle.UnpicklingError, match="open"):
        torch.load(_saved(_Evil(target)))
    assert not os.path.exists(target)
    assert torch.serialization.get_unsafe_globals_in_checkpoint(_saved(_Evil(target))) == ["io.open"]


@pytest.mark.parametrize(
    "program",
    [
        b"cos\nsystem\n(S'true'\ntR.",  # a call of os.system
        b"c__builtin__\neval\n(S'1'\ntR.",
        b"\x80\x04\x8c\x08builtins\x8c\x04eval\x93\x8c\x011\x85R.",
        b"ccollections\nOrderedDict\n(dcollections\nOrderedDict\nb.",  # state for a class, not for an object
        b"ctorch\nfloat32\n)R.",  # a call of something that is not callable
        b"(lp0\n(I1\nI2\ntR.",  # a call of a list
        b"\x82\x01.",
        b"(ios\nsystem\n.",
    ],
)
def test_hostile_pickles_are_refused(program):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("archive/data.pkl", program)
        archive.writestr("archive/version", "3\n")
    stream.seek(0)
    with pytest.raises((pickle.UnpicklingError, RuntimeError)):
        torch.load(stream)


def test_an_allowed_class_whose_name_is_not_in_the_file():
    """Trainer of transformers allows what it needs for numpy's random state, which is an array of uint32."""
    state = numpy.arange(3, dtype=numpy.uint32)
    file = io.BytesIO()
    torch.save({"state": state}, file)
    allowed = [numpy.core.multiarray._reconstruct, numpy.ndarray, numpy.dtype]
    with (
        torch.serialization.safe_globals(allowed),
        pytest.raises(pickle.UnpicklingError, match="UInt32DType"),
    ):
        file.seek(0)
        torch.load(file, weights_only=True)
    with torch.serialization.safe_globals([*allowed, type(numpy.dtype(numpy.uint32))]):
        file.seek(0)
        assert (torch.load(file, weights_only=True)["state"] == state).all()


def test_safe_globals():
    stream = _saved(argparse.Namespace(a=1))
    with pytest.raises(pickle.UnpicklingError, match="argparse.Namespace was not an allowed global"):
        torch.load(stream)
    with torch.serialization.safe_globals([argparse.Namespace]):
        stream.seek(0)
        assert torch.load(stream).a == 1
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError):
        torch.load(stream)


def test_ordered_dict_keeps_its_attributes():
    state = torch.nn.Linear(1, 1).state_dict()
    loaded = torch.load(_saved(state))
    assert type(loaded) is OrderedDict
    assert loaded._metadata == state._metadata


def test_every_truncation_is_noticed(tmp_path):
    for legacy in (False, True):
        stream = io.BytesIO()
        torch.save(torch.ones(3), stream, _use_new_zipfile_serialization=not legacy)
        whole = stream.getvalue()
        for length in range(0, len(whole) - 1, 7):
            with pytest.raises((RuntimeError, EOFError, pickle.UnpicklingError)):
                torch.load(io.BytesIO(whole[:length]))


def test_damaged_data_is_noticed_and_the_file_named(tmp_path):
    path = tmp_path / "damaged.pt"
    torch.save(torch.arange(100.0), path)
    data = bytearray(path.read_bytes())
    place = data.index(torch.arange(100.0).numpy().tobytes()[:64]) + 40
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(RuntimeError, match=r"(?s)checksum.*damaged\.pt"):
        torch.load(path)


def _rewritten(changes: dict) -> bytes:
    """A checkpoint of a few tensors with changed records: name -> (new name, new contents)."""
    stream, out = io.BytesIO(), io.BytesIO()
    torch.save({"a": torch.arange(6.0).view(2, 3), "b": [torch.ones(2).t(), 1.5]}, stream)
    with zipfile.ZipFile(stream) as old, zipfile.ZipFile(out, "w") as new:
        for record in old.namelist():
            name, contents = changes.get(record.partition("/")[2], (record, None))
            new.writestr(name, old.read(record) if contents is None else contents)
    return out.getvalue()


REFUSED = (RuntimeError, EOFError, pickle.UnpicklingError)


@pytest.mark.parametrize(
    "name", ["../../data/0", "/etc/passwd", "archive/data/../../../x", "archive\\data\\0"]
)
def test_paths_in_the_archive_lead_nowhere(tmp_path, name, monkeypatch):
    path = tmp_path / "inner" / "tricks.pt"
    path.parent.mkdir()
    path.write_bytes(_rewritten({"data/0": (name, b"x" * 24)}))
    monkeypatch.chdir(path.parent)
    with pytest.raises(REFUSED, match=r"(?s)tricks\.pt"):
        torch.load(path)
    assert [p.name for p in sorted(tmp_path.rglob("*"))] == ["inner", "tricks.pt"]


def test_sizes_are_not_believed(tmp_path):
    path = tmp_path / "sizes.pt"
    whole = bytearray(_rewritten({}))
    at = whole.index(b"PK\x01\x02")
    while whole[at : at + 4] == b"PK\x01\x02":  # every record claims 3 GB
        whole[at + 20 : at + 28] = (3 << 30).to_bytes(4, "little") * 2
        at += (
            46
            + int.from_bytes(whole[at + 28 : at + 30], "little")
            + int.from_bytes(whole[at + 30 : at + 32], "little")
        )
    path.write_bytes(whole)
    with pytest.raises(REFUSED, match=r"(?s)sizes\.pt"):
        torch.load(path)


@pytest.mark.parametrize("part", ["pickle", "archive", "legacy"])
def test_changed_bytes_run_nothing(tmp_path_factory, part, monkeypatch):
    """For any changed bytes there is a result, or an error that names the file. Nothing in the file is executed."""
    path = tmp_path_factory.mktemp("fuzz") / "changed.pt"
    stream = io.BytesIO()
    torch.save(
        {"a": torch.arange(6.0), "b": [torch.ones(2, 2).t()]},
        stream,
        _use_new_zipfile_serialization=part != "legacy",
    )
    whole = stream.getvalue()
    with zipfile.ZipFile(io.BytesIO(_rewritten({}))) as archive:
        pickled = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
    for function in ("system", "popen", "remove", "execv"):
        monkeypatch.setattr(os, function, lambda *a: pytest.fail("executed"))

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(
        st.lists(
            st.tuples(st.integers(0, 10**6), st.integers(0, 255), st.sampled_from("srdi")),
            min_size=1,
            max_size=4,
        )
    )
    def check(changes):
        data = bytearray(pickled if part == "pickle" else whole)
        for at, byte, how in changes:
            at %= len(data)
            if how == "d":
                del data[at]
            elif how == "i":
                data.insert(at, byte)
            else:
                data[at] = byte if how == "s" else data[at] ^ (1 << byte % 8)
        path.write_bytes(
            _rewritten({"data.pkl": ("archive/data.pkl", bytes(data))}) if part == "pickle" else data
        )
        try:
            torch.load(path)
        except REFUSED as error:
            assert "changed.pt" in str(error)

    check()


def test_files_that_are_no_checkpoints_are_errors(tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(EOFError, match="empty"):
        torch.load(tmp_path / "empty")
    (tmp_path / "text").write_bytes(b"hello")
    with pytest.raises(pickle.UnpicklingError, match="text"):
        torch.load(tmp_path / "text")
    with tarfile.open(tmp_path / "tar", "w") as archive:
        archive.add(tmp_path / "text", "text")
    with pytest.raises(RuntimeError, match="legacy .tar format"):
        torch.load(tmp_path / "tar", weights_only=False)
    with pytest.raises(FileNotFoundError):
        torch.load(tmp_path / "missing")
    with pytest.raises(RuntimeError, match="Parent directory .* does not exist"):
        torch.save(1, tmp_path / "no" / "file")
    with pytest.raises(RuntimeError, match="mmap can only be used"):
        torch.load(FILES / "legacy.pt", mmap=True)


def test_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.pt"
    torch.save(torch.ones(2), path)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        torch.save({"t": torch.zeros(2), "f": lambda: 0}, path)
    assert torch.load(path).tolist() == [1.0, 1.0]
    assert os.listdir(tmp_path) == ["a.pt"]


def test_without_checksums(tmp_path):
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(torch.ones(2), tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(True)
    assert torch.load(tmp_path / "a.pt").tolist() == [1.0, 1.0]


def test_behind_other_data():
    stream = io.BytesIO()
    stream.write(b"header")
    torch.save(torch.ones(2), stream)
    stream.seek(6)
    assert torch.load(stream).tolist() == [1.0, 1.0]


def test_megatron_checkpoint(reference):
    path = reference / "init_gpt" / "iter_0000001" / "mp_rank_00" / "model_optim_rng.pt"
    names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    assert "argparse.Namespace" in names


def _globals_of(stream) -> set:
    with zipfile.ZipFile(stream) as archive:
        pickled = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
    words = [argument for _, argument, _ in pickletools.genops(pickled) if isinstance(argument, str)]
    return {word.replace(" ", ".") for word in words}


def test_functions_are_saved_under_the_names_of_pytorch():
    functions = [torch.nn.functional.relu, torch.add, torch.linalg.norm, torch.fft.fft, torch.Tensor.add_]
    stream = io.BytesIO()
    torch.save(functions, stream)
    found = _globals_of(stream)
    assert {"torch.nn.functional.relu", "torch.add", "torch.linalg.norm", "torch.fft.fft"} <= found
    assert not any("msadapter" in word or "_declare" in word for word in found)
    stream.seek(0)
    assert torch.load(stream, weights_only=False) == functions


def test_a_function_of_a_file_must_be_allowed_by_name():
    stream = io.BytesIO()
    torch.save([torch.nn.functional.relu], stream)
    stream.seek(0)
    with pytest.raises(pickle.UnpicklingError, match="torch.nn.functional.relu was not an allowed global"):
        torch.load(stream)
    stream.seek(0)
    with torch.serialization.safe_globals([torch.nn.functional.relu]):
        assert torch.load(stream)[0] is torch.nn.functional.relu


def test_functions_are_found_where_files_of_pytorch_name_them():
    native = torch._C
    assert native._VariableFunctionsClass.relu is torch.relu
    assert native._nn.gelu is torch.nn.functional.gelu
    assert native._linalg.linalg_norm is torch.linalg.norm
    assert native._fft.fft_rfft is torch.fft.rfft
    with pytest.raises(AttributeError, match="_VariableFunctionsClass.*no_such"):
        _ = native._VariableFunctionsClass.no_such


class _Made:
    """An object that only a load without weights_only makes."""


@pytest.mark.parametrize("value", ["1", "yes", "True"])
def test_the_environment_overrules_weights_only(monkeypatch, value):
    def load(**options):
        file.seek(0)
        return torch.load(file, **options)

    file = io.BytesIO()
    torch.save(_Made(), file)
    monkeypatch.setenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", value)
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(weights_only=False)
    with pytest.raises(RuntimeError, match="explicit pickle_module"):
        load(pickle_module=pickle)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    with pytest.raises(RuntimeError, match="but both were set"):
        load()
    monkeypatch.delenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD")
    with pytest.warns(UserWarning, match="forcing weights_only=False"):
        assert type(load()) is _Made
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        load(weights_only=True)
