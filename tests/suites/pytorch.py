"""Reads the results of PyTorch's own tests, so that they stand on the page of suites.

PyTorch's tests need changes before they can run here: its private test helpers import names that only a build of PyTorch
has. A runner outside of this repository makes these changes and writes, for each file of tests, ``real/FILE.json`` and
``project/FILE.json``: a dict with ``status``, the outcome of each test, and ``info``, the first lines of its error.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.suites import page

TITLE = "PyTorch 2.7.1, its own tests"
SOURCE = (
    "pytorch/pytorch, tag v2.7.1: files of test/ and test/nn that test the CPU, with private helpers that a build of PyTorch has "
    "replaced; the outcomes of PyTorch are those of 2.13.0"
)
LEFT_OUT = {  # part of a test's name: why it says nothing about msadapter
    "test_numpy_array_binary_ufunc_promotion": "expects that numpy and torch do not work together",
    "lazy_clone": "tests copy-on-write storages through private functions",
    "resurrect": "tests reference counts of PyTorch's C++ objects",
    "zombie": "tests reference counts of PyTorch's C++ objects",
    "fix_weakref": "tests reference counts of PyTorch's C++ objects",
    "test_terminate_handler_on_crash": "tests a handler of PyTorch's C++ library",
    "_large": "needs more memory than the machine has",
    "buffer_overflow": "needs more memory than the machine has",
}
REASONS = (  # pattern in a failing test's name and error: why it fails, in place of the error
    (
        r"quantize_per|_empty_affine_quantized|ao\.nn|QInt|torch\.ao' has no|'msadapter\.ao' has no",
        "quantised tensors are missing",
    ),
    (r"nested_tensor|attribute 'nested'|_nested_tensor", "torch.nested is missing"),
    (
        r"_neg_view|conj_imag_view|conj_neg_view|check_conj|conj_bit|neg_bit",
        "conjugates and negatives are copies, not views",
    ),
    (
        r"ForwardMode|fwad|forward_ad|forward_mode",
        "batched tangents, and what forward mode checks, are in part missing",
    ),
    (r"profiler|record_function", "the profiler has fewer private names and columns"),
    (r"_saved_|saved_self", "attributes of nodes for saved tensors have fewer names"),
    (r"mkldnn", "tensors in oneDNN's layout are missing"),
    (r"more than 16 dimensions", "MindSpore's kernels take 16 dims"),
    (
        r"_force_original_view_tracking|_unsafe_preserve_version_counter|_vmap_internals",
        "a private name is missing",
    ),
    (r"has no attribute '_|module 'torch\._C", "a private name is missing"),
)
OUTCOMES = {"pass": "passed", "skip": "skipped"}


def _line(name: str, status: str | None, info: dict) -> dict:
    for part, reason in LEFT_OUT.items():
        if part in name:
            return {"outcome": "left out", "reason": reason}
    outcome = OUTCOMES.get(status or "", "failed")
    if outcome == "passed":
        return {"outcome": outcome, "reason": ""}
    return {"outcome": outcome, "reason": _reason(name, status, info.get("msg", ""))}


def _reason(name: str, status: str | None, message: str) -> str:
    for pattern, reason in REASONS:
        if re.search(pattern, f"{name} {message}"):
            return reason
    first = message.split("\n")[0] or status or "not collected"
    return re.sub(r"0x[0-9a-f]+", "0x...", re.sub(r" from '[^']*'", "", first))[:140]


def read(folder: Path) -> dict:
    """Return the result of all files that both sides have run, as docs/suites.json has it.

    Raises:
        FileNotFoundError: the folder has no file of both sides.
    """
    families = {}
    for file in sorted((folder / "real").glob("*.json")):
        ours = folder / "project" / file.name
        if not ours.exists():
            continue
        sides = {"torch": json.loads(file.read_text()), "msadapter": json.loads(ours.read_text())}
        lines = {
            side: {
                name: _line(name, status, found["info"].get(name, {}))
                for name, status in found["status"].items()
            }
            for side, found in sides.items()
        }
        row = page.compare(lines["msadapter"], lines["torch"])
        row["failed on both"] = {}  # these are tests of devices and builds that are not there
        families[file.stem] = row
    if not families:
        raise FileNotFoundError(f"{folder}: no real/FILE.json with a project/FILE.json")
    versions = {"msadapter": {"torch": "2.13.0"}, "torch": {"torch": "2.13.0+cpu"}}
    return {"source": SOURCE, "versions": versions, "families": families}


def write(folder: Path) -> int:
    """Put the result of PyTorch's tests into docs/suites.json, and write the page."""
    results = page.load()
    results["suites"][TITLE] = read(folder)
    return page.save(results)
