"""Files of tests/serialization from real PyTorch 2.13.0: python -m tests.golden.make_files."""

import io
import zipfile
from pathlib import Path

from tests.serialization import file_cases as cases
from tests.serialization import module_cases

FOLDER = Path(__file__).resolve().parent / "files"


def golden_files(torch) -> None:
    FOLDER.mkdir(exist_ok=True)
    torch.save(cases.make(torch), FOLDER / "zip.pt")
    torch.save(cases.make(torch, legacy=True), FOLDER / "legacy.pt", _use_new_zipfile_serialization=False)
    torch.save(cases.make_sparse(torch), FOLDER / "sparse.pt")
    torch.save(torch.nn.Linear(2, 1), FOLDER / "module.pt")
    p = torch.nn.Parameter(torch.ones(3))
    p.grad = torch.ones(3)
    optimizer = torch.optim.Adam([p])
    optimizer.step()
    torch.save(optimizer.state_dict(), FOLDER / "optimizer.pt")
    with zipfile.ZipFile(FOLDER / "modules.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for case in module_cases.CASES:
            stream = io.BytesIO()
            module_cases.store(torch, case, stream)
            archive.writestr(zipfile.ZipInfo(case), stream.getvalue(), zipfile.ZIP_DEFLATED)
