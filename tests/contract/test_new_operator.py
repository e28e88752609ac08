"""One declaration in one new file is all that an operator needs: every form of it is found (CONTRIBUTING.md)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

FAMILY = '''
from ._declare import op, raw


@op(
    "add_square(Tensor self, Tensor other) -> Tensor",
    promote="default",
    forms="fmio",
    pointwise=True,
    autocast="lower",
    grad={"self": lambda g: g, "other": lambda g, other: g * other * 2},
)
def add_square(self, other):
    """Return `self + other * other`."""
    return raw.AddExt(self, raw.Mul(other, other), 1)
'''

# Runs with a copy of the package that has one file more.
USE = """
import os
import torch
from torch.distributed.tensor import DeviceMesh, Shard, distribute_tensor

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
_rules.looped = alone
assert torch.func.vmap(torch.add_square)(x, y).tolist() == want

with torch.autocast("cpu", dtype=torch.bfloat16):
    assert torch.add_square(x, y).dtype == torch.bfloat16

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29571", RANK="0", WORLD_SIZE="1")
torch.distributed.init_process_group("gloo")
mesh = DeviceMesh("cpu", [0])
cut = torch.add_square(distribute_tensor(x, mesh, [Shard(0)]), distribute_tensor(y, mesh, [Shard(0)]))
assert cut.placements == (Shard(0),) and cut.full_tensor().tolist() == want
torch.distributed.destroy_process_group()

from msadapter._host import coverage
row = {r.name: r for r in coverage.operators()}["add_square"]
assert row.forms == "function, method, in place, out=" and {*row.mindspore, *row.ours} == {"AddExt", "Mul"}
print("every form is there")
"""


@pytest.fixture
def package(tmp_path) -> Path:
    """A folder with the package: links to its files, an ``ops`` of its own."""
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
        [str(ROOT / "msadapter" / "alias" / "shim"), str(package), os.environ.get("PYTHONPATH", "")]
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
    ],
)
def test_mistakes_are_found_when_it_is_loaded(package, change, message):
    done = _run(package, FAMILY.replace(*change, 1))
    assert done.returncode != 0
    if message is not None:
        assert message in done.stderr
