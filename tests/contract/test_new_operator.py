"""One declaration in one new file is all that an operator needs: every form of it is found (CONTRIBUTING.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FAMILY = '''
from ._declare import composite, op, raw, t


@op(
    "add_square(Tensor self, Tensor other) -> Tensor",
    promote="default",
    forms="fmio",
    pointwise=True,
    autocast="lower",
    grad={"self": lambda g: g, "other": lambda g, other: g * other * 2},
    foreach=True,
    backward="plain",
)
def add_square(self, other):
    """Return `self + other * other`."""
    return raw.AddExt(self, raw.Mul(other, other), 1)


op("magnitude(Tensor self) -> Tensor", ms="Abs", forms="fi", pointwise=True, keeps_zeros=True, grad=None, float8="any")


@op("copied(Tensor self) -> Tensor", forms="f", pointwise=True, linear=("self",), copies=True, grad=None)
def copied(self):
    return raw.Muls(self, 1)


@op("total_of_all(Tensor self) -> Tensor", forms="f", whole=True, grad=None)
def total_of_all(self):
    return t.sum(self)


@op("noise_like(Tensor self, bool train=True) -> Tensor", forms="f", random="each", grad=None)
def noise_like(self, train):
    return t.rand_like(self)


@composite("sum_of_image(Tensor self) -> Tensor", forms="f", sample_rank=1)
def sum_of_image(self):
    return t.sum(self, -1, True)
'''

# Runs with a copy of the package that has one file more.
USE = """
import os
import torch
from torch.distributed.tensor import DeviceMesh, DTensor, Partial, Replicate, Shard, distribute_tensor

x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0], requires_grad=True)
want = [10.0, 18.0]
assert torch.add_square(x, y).tolist() == want and x.add_square(y).tolist() == want
torch.add_square(x, y).sum().backward()
assert y.grad.tolist() == [6.0, 8.0]
y = y.detach()
assert x.clone().add_square_(y).tolist() == want
out = torch.empty(0)
assert torch.add_square(x, y, out=out) is out and out.tolist() == want
assert torch.add_square(x.int(), y).dtype == torch.float32

from torch.func import _looped

def alone(*args):
    raise AssertionError("one element after the other, although the operator is pointwise")

from torch.func import _rules
looped, _rules.looped = _rules.looped, alone
assert torch.func.vmap(torch.add_square)(x, y).tolist() == want
image = torch.arange(6.0).reshape(3, 2)
assert torch.func.vmap(torch.sum_of_image)(image).tolist() == image.sum(1, keepdim=True).tolist()
_rules.looped = looped

try:
    torch.func.vmap(torch.noise_like)(x)
except RuntimeError as error:
    assert "called random operation while in randomness error mode" in str(error)
else:
    raise AssertionError("vmap does not know that the operator is random")
torch.func.vmap(lambda x: torch.noise_like(x, train=False))(x)
first, second = torch.func.vmap(torch.noise_like, randomness="different")(torch.ones(2, 100))
assert (first != second).any()

assert [r.tolist() for r in torch._foreach_add_square([x, y], [y, x])] == [want, [4.0, 8.0]]
listed = [x.clone()]
assert torch._foreach_add_square_(listed, [torch.tensor(2.0)]) is listed and listed[0].tolist() == [5.0, 6.0]
assert torch.ops.aten.add_square_backward(torch.ones(2), x, y).tolist() == [1.0, 1.0]
sparse = torch.magnitude(torch.tensor([0.0, -3.0]).to_sparse())
assert sparse.is_sparse and sparse.to_dense().tolist() == [0.0, 3.0]
small = torch.tensor([2.0]).to(torch.float8_e5m2)
assert torch.magnitude(small).dtype == torch.float8_e5m2

with torch.autocast("cpu", dtype=torch.bfloat16):
    assert torch.add_square(x, y).dtype == torch.bfloat16

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29571", RANK="0", WORLD_SIZE="1")
torch.distributed.init_process_group("gloo")
mesh = DeviceMesh("cpu", [0])
cut = torch.add_square(distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(y, mesh, [Shard(0)]))
assert cut.placements == (Shard(0),) and cut.full_tensor().tolist() == want
parts = DTensor.from_local(x, mesh, [Partial("max")])
assert torch.copied(parts).placements == (Partial("max"),)
assert torch.magnitude(parts).placements == (Replicate(),)
rows = distribute_tensor(x, mesh, [Shard(0)])
assert torch.total_of_all(rows).placements == (Replicate(),)
assert torch.noise_like(rows).placements == (Shard(0),)
torch.distributed.destroy_process_group()

from tests.contract import coverage
row = {r.name: r for r in coverage.operators()}["add_square"]
assert row.forms == "function, method, in place, out=" and {*row.mindspore, *row.ours} == {"AddExt", "Mul"}
print("every form is there")
"""


@pytest.fixture
def package(tmp_path) -> Path:
    """A folder with the package: links to its files, and a copy of ``ops``."""
    here = tmp_path / "msadapter"
    ops = here / "ops"
    ops.mkdir(parents=True)
    for source, target in ((ROOT / "msadapter", here), (ROOT / "msadapter" / "ops", ops)):
        for path in source.iterdir():
            if path.name not in ("ops", "__pycache__") or source.name == "ops":
                (target / path.name).symlink_to(path)
    names = (ops / "__init__.py").read_text(encoding="utf-8")
    (ops / "__init__.py").unlink()
    (ops / "__init__.py").write_text(
        names.replace("FAMILIES = (", 'FAMILIES = (\n    "throw_away",'), encoding="utf-8"
    )
    return tmp_path


def _run(package: Path, family: str) -> subprocess.CompletedProcess:
    (package / "msadapter" / "ops" / "throw_away.py").write_text(family, encoding="utf-8")
    path = os.pathsep.join(
        [
            str(ROOT / "msadapter" / "alias" / "shim"),
            str(package),
            str(ROOT),
            os.environ.get("PYTHONPATH", ""),
        ]
    )
    return subprocess.run(
        [sys.executable, "-c", USE],
        env=os.environ | {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=package,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_one_file_declares_every_form(package):
    done = _run(package, FAMILY)
    assert done.stdout.strip().endswith("every form is there"), done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("add_square(", "add("), "operator add is declared twice"),
        (("add_square(", "linalg.add("), None),
        (("add_square(", "nn.functional.add("), "t.add is declared twice"),
        (
            ("pointwise=True", 'native="body"'),
            'says native="body", but csrc/dispatch has no entry of that name',
        ),
        (("pointwise=True", 'native="nothing"'), "is none of body, gradient, call"),
        (("pointwise=True", 'along="dim"'), "the schema has no parameter 'dim'"),
        (("pointwise=True", 'reduction="most"'), "reduction 'most' is none of sum, mean, max, min, other"),
        (('autocast="lower"', 'autocast="half"'), "autocast policy 'half' is none of"),
        (
            ("pointwise=True", 'random="often"'),
            "random 'often' is none of each, values, sizes, parameters, other",
        ),
        (("pointwise=True", "pointwize=True"), "'pointwize' is not a fact"),
    ],
)
def test_mistakes_are_found_when_it_is_loaded(package, change, message):
    done = _run(package, FAMILY.replace(*change, 1))
    assert done.returncode != 0
    if message is not None:
        assert message in done.stderr
