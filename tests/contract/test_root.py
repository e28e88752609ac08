"""The names of this project's own modules are not those of torch, and do not hide the standard library."""

import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import msadapter
from msadapter.alias.submodules import OURS
from tests.golden import store, surface

msadapter.install()
import torch  # noqa: E402

PACKAGE = Path(msadapter.__file__).parent
# What `import torch` loads in PyTorch, what it loads later, and torch.npu, which torch_npu adds.
PYTORCHS = {name.split(".")[1] for name in store.load("modules").cases} | {
    "_dynamo",
    "_inductor",
    "numa",
    "onnx",
    "npu",
}


@pytest.mark.parametrize("name", ["doctor", "launcher", "coverage", "generator", "native", "runtime"])
def test_what_is_ours_is_no_module_of_torch(name):
    assert not hasattr(torch, name)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(f"torch.{name}")


@pytest.mark.parametrize("name", sorted(OURS))
def test_packages_that_pytorch_does_not_have_are_no_modules_of_torch(name):
    for module in (f"torch.{name}", f"torch.{name}.inner"):
        with pytest.raises(ModuleNotFoundError, match=f"No module named 'torch.{name}'"):
            importlib.import_module(module)
        assert module not in sys.modules
    assert importlib.util.find_spec(f"msadapter.{name}") is not None


def test_every_module_of_the_root_is_pytorchs_or_is_named_as_ours():
    folders = (PACKAGE, PACKAGE / "_standard_names")
    found = {
        path.stem for folder in folders for path in folder.iterdir() if path.suffix == ".py" or path.is_dir()
    }
    assert found - OURS - PYTORCHS - {"__init__", "__pycache__"} == set()
    assert set() == PYTORCHS & OURS


def test_no_file_carries_the_name_of_a_standard_module():
    names = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"}
    assert names & set(sys.stdlib_module_names) == set()


def test_python_starts_inside_the_package():
    program = (
        "import enum, random, types, multiprocessing, profile, queue, asyncio, tempfile, os\n"
        "for module in (enum, random, types, multiprocessing, profile, queue, asyncio, tempfile):\n"
        "    assert not module.__file__.startswith(os.getcwd()), module.__file__\n"
        "print(types.SimpleNamespace(sum=sum(random.sample(range(3), 3))))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE, capture_output=True, text=True, timeout=60
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout == "namespace(sum=3)\n"


def test_modules_in_the_other_folder_are_torchs_all_the_same():
    import torch.multiprocessing.reductions
    import torch.random
    import torch.types

    assert torch.random is sys.modules["msadapter.random"] is sys.modules["torch.random"]
    assert torch.random.__name__ == "msadapter.random"
    assert torch.types is importlib.import_module("torch.types")
    assert torch.multiprocessing.reductions.__name__ == "msadapter.multiprocessing.reductions"
    assert pickle.loads(pickle.dumps(torch.random.fork_rng)) is torch.random.fork_rng
    assert pickle.loads(pickle.dumps(torch.types.Storage)) is torch.types.Storage


@pytest.mark.parametrize("name", ["float32", "bool", "float8_e5m2"])
def test_element_types_are_pickled_as_in_pytorch(name):
    value = getattr(torch, name)
    data = pickle.dumps(value, protocol=2)
    assert data == f"\x80\x02ctorch\n{name}\nq\x00.".encode("latin-1")
    assert pickle.loads(data) is value


def test_what_is_ours_is_not_among_the_names_of_torch():
    """The package's own functions can be called as msadapter.install(), but dir(torch) and import * do not show them."""
    names = set(dir(torch))
    assert (
        names & {"alias", "install", "complete_mindspore", "ops_table", "annotations", "get_printoptions"}
        == set()
    )
    assert {"compile", "vmap", "Tensor", "float32", "linalg", "exp_", "clamp_"} <= names
    assert not [name for name in names if name.startswith("_") and not name.startswith("__")]
    for name in (
        "upsample_nearest1d",
        "im2col",
        "max_pool2d_with_indices",
        "ComplexFloatTensor",
        "UInt16Storage",
    ):
        assert not hasattr(torch, name)
    assert torch.ops.aten.im2col is not None and torch.max_pool1d_with_indices is not None
    assert msadapter.install is not None and msadapter.complete_mindspore is not None


def test_in_place_forms_are_functions_only_where_pytorch_has_the_function():
    from msadapter.ops import namespaces

    torchs = surface.names("torch")
    ours = {name for name in namespaces["torch"] if name.endswith("_") and not name.startswith("_")}
    assert ours - set(torchs) == {"absolute_"}  # the only alias of a method without a function
    assert not hasattr(torch, "add_") and hasattr(torch.Tensor, "add_")
