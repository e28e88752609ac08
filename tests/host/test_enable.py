"""`python -m msadapter enable` and `disable` in virtual environments that are made here."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CLEAN = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MSADAPTER_DEVICE")}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment that sees the packages of this one, and msadapter."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n{ROOT}\n")
    return folder


@pytest.fixture(autouse=True)
def disabled(environment):
    yield
    run(environment, "-m", "msadapter", "disable")


def run(environment, *words):
    return subprocess.run(
        [environment / "bin/python", *words], cwd=environment, env=CLEAN, capture_output=True, text=True
    )


def place(environment) -> Path:
    return next(environment.glob("lib/python*/site-packages")) / "msadapter_as_torch.pth"


def test_enabled_programs_get_msadapter(environment):
    before = run(environment, "-c", "import torch")
    assert "ModuleNotFoundError: No module named 'torch'" in before.stderr
    told = run(environment, "-m", "msadapter", "enable")
    assert told.returncode == 0 and str(place(environment)) in told.stdout
    done = run(
        environment,
        "-c",
        "import torch, torch.nn as nn; print(torch.__package__, nn.Linear(2, 1)(torch.ones(2)).shape)",
    )
    assert done.stdout == "msadapter torch.Size([1])\n", done.stderr
    assert "already in place" in run(environment, "-m", "msadapter", "enable").stdout
    assert run(environment, "-m", "msadapter", "disable").returncode == 0
    assert run(environment, "-c", "import torch").returncode == 1
    assert "nothing to do" in run(environment, "-m", "msadapter", "disable").stdout


def test_pip_sees_torch(environment):
    metadata = place(environment).parent / "needs_torch-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: needs-torch\nVersion: 1.0\nRequires-Dist: torch>=2.0\n"
    )
    (metadata / "RECORD").write_text("")
    assert (
        "needs-torch 1.0 requires torch, which is not installed"
        in run(environment, "-m", "pip", "check").stdout
    )
    run(environment, "-m", "msadapter", "enable")
    assert "needs-torch" not in run(environment, "-m", "pip", "check").stdout
    listed = json.loads(run(environment, "-m", "pip", "list", "--format=json").stdout)
    assert [p["version"] for p in listed if p["name"] == "torch"] == ["2.13.0"]


def test_files_of_others_are_left(environment):
    place(environment).write_text("/somewhere\n")
    for word in ("enable", "disable"):
        told = run(environment, "-m", "msadapter", word)
        assert told.returncode == 2 and "did not write it" in told.stderr
    assert place(environment).read_text() == "/somewhere\n"
    place(environment).unlink()


def test_another_torch_is_not_hidden(environment):
    other = place(environment).parent / "torch-2.9.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.9.0\n")
    told = run(environment, "-m", "msadapter", "enable")
    (other / "METADATA").unlink()
    other.rmdir()
    assert (
        told.returncode == 2 and "torch 2.9.0 is installed" in told.stderr and not place(environment).exists()
    )


def test_only_virtual_environments_are_changed():
    code = "import sys; sys.prefix = sys.base_prefix; from msadapter._host.enable import main; sys.exit(main('enable', []))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 2 and "is not a virtual environment" in done.stderr


def test_mindspore_need_not_be_there(tmp_path):
    """Both commands use the standard library alone: the environment has nothing but msadapter."""
    venv.create(tmp_path, with_pip=False)
    (next(tmp_path.glob("lib/python*/site-packages")) / "packages.pth").write_text(f"{ROOT}\n")
    assert "No module named 'numpy'" in run(tmp_path, "-c", "import numpy").stderr
    told = run(tmp_path, "-m", "msadapter", "enable")
    assert told.returncode == 0 and place(tmp_path).exists(), told.stderr
    told = run(tmp_path, "-m", "msadapter", "disable")
    assert told.returncode == 0 and not place(tmp_path).exists(), told.stderr
