"""The names of classes and functions in pickles, compared with those of PyTorch (the suite pickle_names)."""

import importlib
import io
import subprocess
import sys
import types
import zipfile

import pytest

import msadapter as torch
from msadapter._serialization import names
from tests.golden import store
from tests.golden.make_pickle_names import name_in_pickle

PYTORCH = store.load("pickle_names").cases  # name in PyTorch's pickles -> public names

# What is not written by one name that PyTorch knows, and why.
NOT_WRITTEN = {
    "torch.hub.tqdm": "the class of the package tqdm, where that is installed",
    "torch.monitor.data_value_t": "a union of types",
}
# Where a name in a pickle of PyTorch means an object here that is not the one of the public name, and why.
READ_AS_ANOTHER = {
    "torch.from_dlpack": "torch.from_dlpack and torch.utils.dlpack.from_dlpack are two functions here",
    "torch.nn.functional.relu_": "torch.relu_ and F.relu_ are two forms of one operator here",
    "torch.nn.functional.rrelu_": "the same",
    "torch.nn.utils.weight_norm.norm_except_dim": "a function of its own here",
    **NOT_WRITTEN,
}


def _split(path: str) -> tuple[str, str]:
    holder, _, name = path.rpartition(".")
    return ("torch", f"Tensor.{name}") if holder == "torch.Tensor" else (holder, name)


KNOWN = {tuple(case.split(":")) for case in PYTORCH if ":" in case} | {
    _split(path) for paths in PYTORCH.values() for path in paths
}


def _value(path: str):
    """The class or function of a public name; None if msadapter does not have it."""
    module, name = _split(path)
    try:
        value = importlib.import_module(names.to_runtime(module))
        for part in name.split("."):
            value = getattr(value, part)
    except (ImportError, AttributeError, NotImplementedError):
        return None
    return None if isinstance(value, types.ModuleType) else value


def _pickled(value) -> bytes:
    stream = io.BytesIO()
    torch.save(value, stream, pickle_protocol=2)
    with zipfile.ZipFile(stream) as archive:
        return archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))


HERE = {path: value for paths in PYTORCH.values() for path in paths if (value := _value(path)) is not None}
SPACES = sorted({path.rpartition(".")[0] for path in HERE})


def test_most_names_are_compared():
    assert len(HERE) > 3500 and len(SPACES) > 150


@pytest.mark.parametrize("space", SPACES)
def test_what_is_saved_is_found_by_pytorch(space):
    wrong = []
    for path, value in HERE.items():
        if path.rpartition(".")[0] != space or path in NOT_WRITTEN:
            continue
        case = next(case for case, paths in PYTORCH.items() if path in paths)
        try:
            written = name_in_pickle(_pickled(value))
        except Exception as error:
            if ":" in case:  # PyTorch can pickle it
                wrong.append((path, repr(error)))
            continue
        if written is None or tuple(written.split(":")) not in KNOWN:
            wrong.append((path, written))
    assert not wrong


def test_what_pytorch_saves_is_found_here():
    wrong = []
    for case, paths in PYTORCH.items():
        here = [path for path in paths if path in HERE and path not in READ_AS_ANOTHER]
        if not here or ":" not in case or names.storage_type(*case.split(":")):
            continue
        try:
            found = names.find(*case.split(":"))
        except (ImportError, AttributeError) as error:
            wrong.append((case, repr(error)))
            continue
        wrong += [(case, path) for path in here if found != HERE[path]]
    assert not wrong


def test_the_listed_exceptions_are_exceptions():
    for path in (*NOT_WRITTEN, *READ_AS_ANOTHER):
        assert path in HERE, path
    for path in NOT_WRITTEN:
        try:
            written = name_in_pickle(_pickled(HERE[path]))
        except Exception:
            continue
        assert written is None or tuple(written.split(":")) not in KNOWN, path


def test_names_of_pytorchs_files_mean_the_same_when_mindspore_is_loaded():
    """MindSpore's Tensor is then a base of ours, and PyTorch's files name methods of the base."""
    code = (
        "import msadapter as torch, mindspore\n"
        "from msadapter._serialization import names\n"
        "assert names.find('torch._C', 'TensorBase.abs') is torch.Tensor.abs\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
