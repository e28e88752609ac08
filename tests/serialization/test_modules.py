"""Whole modules in files: saved here and loaded by PyTorch, saved by PyTorch and loaded here."""

import io
import os
import subprocess
import zipfile
from pathlib import Path

import pytest

import msadapter as torch
from tests.golden import store
from tests.serialization import module_cases as cases

ROOT = Path(__file__).resolve().parents[2]
FILES = ROOT / "tests/golden/files"


def test_every_class_of_torch_nn_has_a_case():
    names = {n for n in store.load("nn_names").cases["nn"] if n[0].isupper()}
    assert names - cases.NOT_CALLED <= set(cases.CASES)
    assert not cases.NOT_CALLED & set(cases.CASES)


@pytest.mark.parametrize("case", cases.CASES)
def test_a_module_of_pytorch_answers_the_same_here(case):
    with zipfile.ZipFile(FILES / "modules.zip") as archive:
        cases.check(torch, case, io.BytesIO(archive.read(case)))


@pytest.mark.parametrize("case", cases.CASES)
def test_a_module_answers_the_same_after_loading(case):
    stream = io.BytesIO()
    cases.store(torch, case, stream)
    stream.seek(0)
    cases.check(torch, case, stream)


def test_pytorch_loads_every_module_of_ours(torch_python, tmp_path):
    for case in cases.CASES:
        cases.store(torch, case, tmp_path / f"{case}.pt")
    program = "import sys\nfrom tests.serialization import module_cases\nmodule_cases.main(sys.argv[1])"
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MSADAPTER_DEVICE")}
    done = subprocess.run(
        [str(torch_python), "-W", "ignore", "-c", program, str(tmp_path)],
        cwd=ROOT,
        env=clean,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
