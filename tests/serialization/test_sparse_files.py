"""Sparse tensors in files: PyTorch's (tests/golden/files/sparse.pt), msadapter's, and files with false
indices.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

import msadapter as torch
from tests.serialization import file_cases as cases

FILE = Path(__file__).resolve().parents[1] / "golden" / "files" / "sparse.pt"


@pytest.mark.parametrize("weights_only", [True, False])
def test_file_of_torch(weights_only):
    cases.check_sparse(torch, torch.load(FILE, weights_only=weights_only))


@pytest.mark.parametrize("options", [{}, {"_use_new_zipfile_serialization": False}])
def test_a_sparse_tensor_is_loaded_as_it_was_saved(options):
    stream = io.BytesIO()
    torch.save(cases.make_sparse(torch), stream, **options)
    stream.seek(0)
    cases.check_sparse(torch, torch.load(stream))


def test_the_bytes_name_what_torch_names():
    """A file of msadapter contains the same calls as PyTorch's file, so PyTorch can read it."""
    import pickletools
    import zipfile

    stream = io.BytesIO()
    torch.save(cases.make_sparse(torch), stream)

    def names(file):
        archive = zipfile.ZipFile(file)
        text = archive.read(next(n for n in archive.namelist() if n.endswith("data.pkl")))
        return {value for code, value, _ in pickletools.genops(text) if code.name == "GLOBAL"}

    assert names(stream) == names(FILE)


def test_indices_outside_of_the_size_are_refused():
    stream = io.BytesIO()
    torch.save(torch.sparse_coo_tensor(torch.tensor([[0, 9]]), torch.ones(2), (3,)), stream)
    stream.seek(0)
    with pytest.raises(Exception, match="size is inconsistent with indices"):
        torch.load(stream)
    rows = torch.sparse_csr_tensor([0, 1, 2], [0, 9], [1.0, 2.0], (2, 3))
    stream = io.BytesIO()
    torch.save(rows, stream)
    stream.seek(0)
    with pytest.raises(Exception, match="col_indices < ncols"):
        torch.load(stream)
