"""torch.package against the recorded answers of PyTorch; archives are exchanged with PyTorch; and attacks on archives."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import msadapter as torch
from msadapter.package import PackageExporter, PackageImporter, PackagingError
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("package")


@pytest.fixture(autouse=True)
def _names(torch_by_name, monkeypatch):
    """Make `import torch` return this project, because the code of the cases imports torch by name."""
    monkeypatch.setattr(sys, "path", list(sys.path))


@together(CASES)
def test_case(case):
    check("package", case, CASES[case], torch)


def test_an_error_leaves_the_old_file_as_it_was(tmp_path):
    path = tmp_path / "a.pt"
    with PackageExporter(path) as e:
        e.save_text("t", "a.txt", "old")
    before = path.read_bytes()
    with pytest.raises(PackagingError), PackageExporter(path) as e:
        e.deny("numpy")
        e.save_source_string("one", "import numpy")
    with pytest.raises(ZeroDivisionError), PackageExporter(path) as e:
        raise ZeroDivisionError
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.pt"]


def test_a_folder_of_source_is_saved_with_what_it_needs(tmp_path):
    """PyTorch ends in an error if a file of the folder needs one that comes later."""
    (tmp_path / "pk_whole/inner").mkdir(parents=True)
    for name, text in {
        "__init__": "from .inner import last\n",
        "inner/__init__": "",
        "inner/last": "import math\nx = 3\n",
    }.items():
        (tmp_path / f"pk_whole/{name}.py").write_text(text)
    file = io.BytesIO()
    with PackageExporter(file) as e:
        e.save_source_file("pk_whole", str(tmp_path / "pk_whole"))
        assert e.interned_modules() == ["pk_whole", "pk_whole.inner", "pk_whole.inner.last"]
        assert e.externed_modules() == ["math"]
    assert PackageImporter(file).import_module("pk_whole").last.x == 3


def _archive(**records: str) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, text in records.items():
            archive.writestr(f"archive/{name}", text)
    file.seek(0)
    return file


def test_what_is_not_named_as_external_is_not_imported():
    """Neither the code nor a pickle of an archive reaches a module that the list does not have."""
    names = {
        ".data/extern_modules": "math\n",
        "one.py": "import os",
        "two.py": "import math.x",
        "three.py": "import torch",
    }
    importer = PackageImporter(_archive(**names))
    for name in ("one", "two", "three"):
        with pytest.raises(ModuleNotFoundError):
            importer.import_module(name)
    for module in ("os", "posix", "subprocess", "torch._utils", "msadapter.hub"):
        pickled = f"c{module}\nsystem\n(S'true'\ntR.".encode()
        with pytest.raises(ModuleNotFoundError):
            PackageImporter(_archive(**{".data/extern_modules": "", "m/x.pkl": pickled})).load_pickle(
                "m", "x.pkl"
            )


def test_an_external_module_covers_what_is_below_it_and_nothing_beside_it():
    importer = PackageImporter(_archive(**{".data/extern_modules": "xml.etree\n", "a.py": ""}))
    assert importer.import_module("xml.etree.ElementTree").__name__ == "xml.etree.ElementTree"
    for name in ("xml.dom", "xmlrpc"):
        with pytest.raises(ModuleNotFoundError):
            importer.import_module(name)


@pytest.mark.parametrize(
    "records",
    [
        {".data/extern_modules": "a\n", "a/b.py": ""},
        {".data/extern_modules": "", "a.py": "", "a/b.py": ""},
        {".data/extern_modules": "", "a/b.py": "", "a.py": ""},
    ],
)
def test_files_that_contradict_each_other_are_refused(records):
    with pytest.raises(ImportError, match="inconsistent module structure"):
        PackageImporter(_archive(**records))


@pytest.mark.parametrize("resource", ["../secret", "/etc/passwd", "a/b", "..\\x", ""])
def test_a_resource_is_a_name_of_a_file_alone(resource, tmp_path):
    (tmp_path / ".data").mkdir()
    (tmp_path / ".data/extern_modules").write_text("")
    (tmp_path / "m").mkdir()
    (tmp_path / "m/__init__.py").write_text("")
    with pytest.raises(ValueError, match="must be only a file name"):
        PackageImporter(tmp_path).load_binary("m", resource)


def test_a_storage_that_is_too_short_is_refused():
    file = io.BytesIO()
    with PackageExporter(file) as e:
        e.save_pickle("m", "x.pkl", torch.ones(4))
    short = io.BytesIO()
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(short, "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name)[:8] if name.endswith(".storage") else old.read(name))
    short.seek(0)
    with pytest.raises(RuntimeError, match="holds 8 bytes where 16 are expected"):
        PackageImporter(short).load_pickle("m", "x.pkl")


def test_an_unpacked_archive_is_read_and_tracebacks_show_its_source(tmp_path):
    file = io.BytesIO()
    with PackageExporter(file) as e:
        e.save_source_string("pk_deep.one", "def fail():\n    raise ValueError('here')\n")
        e.save_pickle("m", "x.pkl", torch.arange(3))
    zipfile.ZipFile(file).extractall(tmp_path)
    importer = PackageImporter(tmp_path / "archive")
    assert importer.load_pickle("m", "x.pkl").tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="here") as caught:
        importer.import_module("pk_deep.one").fail()
    assert str(caught.traceback[-1].statement).strip() == "raise ValueError('here')"


PROGRAM = """
import sys, torch
from torch.package import PackageExporter, PackageImporter
sys.path.insert(0, sys.argv[3])
if sys.argv[1] == "write":
    from pk_exchange import Net
    with PackageExporter(sys.argv[2]) as e:
        e.intern("pk_exchange")
        e.mock("pk_unused")
        net = Net()
        with torch.no_grad():
            for p in net.parameters():
                p.fill_(0.5)
        e.save_pickle("m", "net.pkl", net)
else:
    found = PackageImporter(sys.argv[2])
    print(found.load_pickle("m", "net.pkl")(torch.arange(3.0)).tolist(), found.extern_modules)
"""
MODULE = """
import pk_unused
from torch import nn
class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 2), nn.ReLU())
"""


@pytest.mark.parametrize("writer", ["here", "pytorch"])
def test_archives_are_exchanged_with_pytorch(writer, tmp_path):
    python = os.environ.get("MSADAPTER_TORCH_PYTHON")
    if not python:
        pytest.skip("needs a python with real PyTorch: set MSADAPTER_TORCH_PYTHON to its path")
    (tmp_path / "pk_exchange.py").write_text(MODULE)
    (tmp_path / "pk_unused.py").write_text("")
    (tmp_path / "run.py").write_text(PROGRAM)
    root = Path(torch.__file__).parents[1]
    ours = [sys.executable, "-m", "msadapter"], os.environ | {"PYTHONPATH": str(root)}
    theirs = [python], {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    empty = tmp_path / "empty"
    empty.mkdir()

    def run(side, what, code):
        command, environment = side
        done = subprocess.run(
            [*command, str(tmp_path / "run.py"), what, str(tmp_path / "a.pt"), str(code)],
            env=environment, cwd=empty, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

    first, second = (ours, theirs) if writer == "here" else (theirs, ours)
    run(first, "write", tmp_path)
    found = run(second, "load", empty)
    assert found.startswith("[2.0, 2.0] ") and "torch.nn.modules.linear" in found
