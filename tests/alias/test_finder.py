"""Tests of the alias with a small package that is made here. They do not need MindSpore."""

import importlib
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest

from patches import toml

FINDER = Path(__file__).resolve().parents[2] / "msadapter" / "alias" / "finder.py"
SHIM = FINDER.parent / "shim"
# The alias in a package that has nothing else, so that MindSpore is not needed.
_ALONE = sys.modules["alias_alone"] = types.ModuleType("alias_alone")
_ALONE.__path__ = [str(FINDER.parents[1])]
FINDER_MODULE = importlib.import_module("alias_alone.alias.finder")
_ALIAS = sys.modules["alias_alone.alias"]


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A package `msadapter` with the real alias, and a few modules that stand for torch's."""
    package = tmp_path / "msadapter"
    files = {
        "__init__.py": "from .alias import install, uninstall\nLOADED = []\n__version__ = '2.7.1'\n",
        "nn/__init__.py": "from . import functional\nfrom .. import LOADED\nLOADED.append('nn')\n",
        "nn/functional.py": "def relu(x):\n    return max(x, 0)\n",
        "utils/__init__.py": "",
        "utils/checkpoint.py": "from . import helper\nfrom .. import LOADED\nLOADED.append('checkpoint')\n",
        "utils/helper.py": "",
        "_host/__init__.py": "",
        "_host/troubleshooting.py": (FINDER.parents[1] / "_host" / "troubleshooting.py").read_text(),
        "broken.py": "import a_module_that_is_not_there\n",
        "distributed/__init__.py": "",
        "distributed/run.py": "import sys\nfrom . import __name__ as parent\nprint('run', __name__, parent, sys.argv[1:])\n",
    }
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    alias = package / "alias"
    alias.mkdir()
    for name in ("__init__.py", "absent.py", "absent_names.json", "finder.py", "submodules.py", "waiting.py"):
        (alias / name).write_text((FINDER.parent / name).read_text())
    shutil.copytree(SHIM / "torch.dist-info", alias / "shim" / "torch.dist-info")
    shutil.copytree(SHIM.parent / "older", alias / "older")
    return tmp_path


def python(folder: Path, program: str, *more_path: Path, arguments: tuple[str, ...] = ()) -> str:
    """Run a program in a new python that finds only folder and more_path, and return what it prints.

    -S keeps an editable install of the project away, and the working directory other modules.
    """
    path = ":".join(str(entry) for entry in (*more_path, folder))
    command = [sys.executable, "-S", *(arguments or ("-c", program))]
    answer = subprocess.run(
        command, env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"}, cwd=folder, capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    assert "Warning" not in answer.stderr
    return answer.stdout.strip()


def test_every_form_of_import_gives_the_same_module_objects(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import msadapter, sys
msadapter.install()
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import helper
from torch import nn as again
import msadapter.nn.functional, msadapter.utils.checkpoint
assert torch is msadapter is sys.modules['torch']
assert nn is again is msadapter.nn and F is msadapter.nn.functional
assert sys.modules['torch.utils.checkpoint'] is sys.modules['msadapter.utils.checkpoint']
assert F.relu(-3) == 0
print(torch.LOADED)
""",
        )
        == "['nn', 'checkpoint']"
    )


def test_modules_keep_their_own_name_and_spec(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import msadapter; msadapter.install()
import torch.nn.functional as F, torch
assert F.__name__ == F.__spec__.name == 'msadapter.nn.functional', (F.__name__, F.__spec__)
assert torch.__name__ == 'torch' and torch.__spec__.name == torch.__package__ == 'msadapter'  # pyro compares the name
assert F.__package__ == F.__spec__.parent == 'msadapter.nn'
import importlib; assert importlib.reload(torch.nn) is torch.nn
print('kept')
""",
        )
        == "kept"
    )


def test_importing_alone_changes_nothing(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import sys
before = list(sys.meta_path)
import msadapter
assert sys.meta_path == before
try:
    import torch
except ModuleNotFoundError as error:
    print(error.name)
""",
        )
        == "torch"
    )


def test_install_twice_is_install_once_and_uninstall_takes_it_away(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import msadapter, sys
length = len(sys.meta_path)
msadapter.install(); msadapter.install()
assert len(sys.meta_path) == length + 2  # the first and the last
import torch.nn
msadapter.uninstall(); msadapter.uninstall()
assert len(sys.meta_path) == length
assert not [name for name in sys.modules if name.split('.')[0] == 'torch']
try:
    import torch
except ModuleNotFoundError:
    msadapter.install()
import torch
assert torch is msadapter
print('ok')
""",
        )
        == "ok"
    )


@pytest.mark.parametrize(
    "missing", ["torch.nothing", "torch.nn.functional.deeper", "torch.nothing.deeper", "torch_npu"]
)
def test_what_is_not_there_is_not_found(toy: Path, missing: str) -> None:
    assert python(
        toy,
        f"""
import msadapter; msadapter.install()
try:
    import {missing}
except ModuleNotFoundError as error:
    print(error.name)
""",
    ).startswith("torch")


def test_modules_made_at_run_time(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import msadapter, sys, types; msadapter.install()
made = sys.modules['msadapter.ops'] = types.ModuleType('msadapter.ops')
import torch.ops
print(sys.modules['torch.ops'] is made, torch.ops is made, made.__spec__)
""",
        )
        == "True True None"
    )


def test_an_error_inside_a_module_is_not_taken_for_its_absence(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import msadapter, sys; msadapter.install()
try:
    import torch.broken
except ModuleNotFoundError as error:
    print(error.name, 'torch.broken' in sys.modules)
""",
        )
        == "a_module_that_is_not_there False"
    )


def test_a_torch_that_is_already_imported_is_an_error(toy: Path) -> None:
    other = toy / "other" / "torch"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    assert (
        python(
            toy,
            """
import torch, msadapter
try:
    msadapter.install()
except RuntimeError as error:
    assert 'already imported' in str(error) and 'other/torch' in str(error), error
import sys
print(sys.modules['torch'] is torch, torch is not msadapter)
""",
            toy / "other",
        )
        == "True True"
    )


def test_the_distribution_named_torch(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import msadapter; msadapter.install()
from importlib import metadata
print(metadata.version('torch'), metadata.metadata('Torch')['Name'],
      [d.metadata['Name'] for d in metadata.distributions() if d.metadata['Name'] in ('torch', 'torch_npu')])
try:
    metadata.version('torch_npu')
except metadata.PackageNotFoundError:
    print('no torch_npu')
""",
        )
        == "2.13.0 torch ['torch']\nno torch_npu"
    )


@pytest.mark.parametrize(
    ("wanted", "version"),
    [("", "2.13.0"), ("2", "2.13.0"), ("2.13", "2.13.0"), ("2.7", "2.7.1"), ("2.7.1", "2.7.1")],
)
def test_another_version_is_asked_for(wanted: str, version: str) -> None:
    assert FINDER_MODULE._chosen_version(wanted) == version


@pytest.mark.parametrize("wanted", ["2.8", "2.1", "2.13.", "x"])
def test_a_version_that_is_not_offered(wanted: str) -> None:
    with pytest.raises(ValueError, match=r"set it to one of 2\.13\.0, 2\.7\.1, or unset it"):
        FINDER_MODULE._chosen_version(wanted)


def test_the_variable_decides(toy: Path) -> None:
    program = "import os; os.environ['MSADAPTER_TORCH_VERSION'] = '2.7'\n" + (
        "import msadapter; msadapter.install()\nfrom importlib import metadata\nprint(metadata.version('torch'))"
    )
    assert python(toy, program) == "2.7.1"


def test_find_spec_before_and_after_the_import(toy: Path) -> None:
    assert (
        python(
            toy,
            """
import msadapter, importlib.util; msadapter.install()
before = importlib.util.find_spec('torch')
import torch
assert before is not None and importlib.util.find_spec('torch') is not None
assert importlib.util.find_spec('torch.nn.functional') is not None
print('found')
""",
        )
        == "found"
    )


def test_modules_run_by_name(toy: Path) -> None:
    assert python(toy, "", SHIM, arguments=("-m", "torch.distributed.run", "--a", "b")) == (
        "run __main__ msadapter.distributed ['--a', 'b']"
    )


class TestShim:
    """The folder that env.sh adds to PYTHONPATH."""

    def test_import_torch_alone(self, toy: Path) -> None:
        assert (
            python(
                toy, "import torch, msadapter, sys; print(torch is msadapter is sys.modules['torch'])", SHIM
            )
            == "True"
        )

    def test_import_of_a_submodule_first(self, toy: Path) -> None:
        assert (
            python(
                toy, "import torch.nn.functional as F, msadapter; print(F is msadapter.nn.functional)", SHIM
            )
            == "True"
        )

    def test_version_without_import(self, toy: Path) -> None:
        program = (
            "import importlib.metadata as m, importlib.util as u, sys; print(m.version('torch'), "
            "u.find_spec('torch') is not None, 'msadapter' in sys.modules)"
        )
        assert python(toy, program, SHIM) == "2.13.0 True False"

    def test_install_after_the_shim_was_imported(self, toy: Path) -> None:
        assert (
            python(
                toy,
                "import torch, msadapter; msadapter.install(); import torch as t; print(t is torch)",
                SHIM,
            )
            == "True"
        )

    def test_metadata_is_what_the_finder_answers(self) -> None:
        for folder in (SHIM, *(SHIM.parent / "older").iterdir()):
            metadata = (folder / "torch.dist-info" / "METADATA").read_text()
            assert metadata == FINDER_MODULE.metadata_text("torch", FINDER_MODULE._stated_version(metadata))

    def test_what_torch_requires_comes_with_the_project(self) -> None:
        project = toml.loads((FINDER.parents[2] / "pyproject.toml").read_text())["project"]
        assert {*FINDER_MODULE.REQUIRED} <= {one.partition("==")[0] for one in project["dependencies"]}

    def test_one_file_says_which_torch_is_offered(self) -> None:
        package = FINDER.parents[1]
        stating = [
            path.relative_to(package).as_posix()
            for path in package.rglob("*")
            if path.is_file()
            and path.suffix != ".pyc"
            and FINDER_MODULE.TORCH_VERSION.encode() in path.read_bytes()
        ]
        assert sorted(stating) == ["alias/shim/constraints.txt", "alias/shim/torch.dist-info/METADATA"]

    @pytest.mark.parametrize(
        "folder", [SHIM, *sorted((SHIM.parent / "older").iterdir())], ids=lambda path: path.name
    )
    def test_pip_must_keep_the_stated_version(self, folder: Path) -> None:
        version = FINDER_MODULE._stated_version((folder / "torch.dist-info" / "METADATA").read_text())
        included, torch = (folder / "constraints.txt").read_text().splitlines()
        assert torch.startswith(f"torch=={version} ")
        assert (folder / included.removeprefix("-c ")).resolve() == SHIM.parent / "constraints.txt"

    def test_pip_must_keep_what_the_project_pins(self) -> None:
        project = toml.loads((FINDER.parents[2] / "pyproject.toml").read_text())["project"]
        pinned = {
            *project["dependencies"],
            *(one for more in project["optional-dependencies"].values() for one in more),
        }
        lines = (SHIM.parent / "constraints.txt").read_text().splitlines()
        assert {line.split()[0] for line in lines if not line.startswith("#")} <= pinned
