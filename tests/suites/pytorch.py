"""Reads the results of PyTorch's own tests, so that they stand on the page of suites.

PyTorch's tests need changes before they can run here: its private test helpers import names that only a build of PyTorch
has. A runner outside of this repository makes these changes and writes, for each file of tests, ``real/FILE.json`` and
``project/FILE.json``: a dict with ``status``, the outcome of each test, and ``info``, the first lines of its error. A dict
with ``step`` is a sample, chosen by the names of the tests: one of that many tests was run, on both sides.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.suites import page

TITLE = "PyTorch {release}, its own tests"
SOURCE = (
    "pytorch/pytorch, {release}: files of test/ that test the CPU, with private helpers that a build of PyTorch has replaced; "
    "the outcomes of PyTorch are those of 2.13.0. Rows with 'one test of' are samples, chosen by the names of the tests. The "
    "helpers are those of 2.7.1 here and those of 2.13.0 for PyTorch, and tests that only the latter make count as failed. "
    "Without a row are files that do not load here: test_maskedtensor, test_proxy_tensor, test_custom_ops"
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
        r"quantized|several numbers in a byte|test_ravel|QInt",
        "operators and storages of quantised tensors, and those of 2 and 4 bits, are missing",
    ),
    (r"_test_autograd_multiple_dispatch", "an operator that PyTorch has for its tests alone is missing"),
    (
        r"per_dispatch_key_input_saving",
        "the sum of a nested tensor does not save its input, which may be changed",
    ),
    (r"fn_input_metadata", "the node of a nested tensor is that of its values, and describes them"),
    (
        r"_neg_view|conj_imag_view|conj_neg_view|check_conj|conj_bit|neg_bit",
        "conjugates and negatives are copies, not views",
    ),
    (r"seq_nr", "the profiler's operators do not name the nodes that they record"),
    (r"more than 16 dimensions", "MindSpore's kernels take 16 dims"),
    (
        r"_force_original_view_tracking",
        "the history of a view that was written is as_strided of its base, and cannot be replayed as the view's own operators",
    ),
    (
        r"grad_fn_attr_bindings|inplace_on_view_backward",
        "nodes keep what their formulas need, under fewer names than PyTorch's, and formulas consist of other operators",
    ),
    (
        r"no_unnecessary_unwrapping|ressurecting_clear",
        "a saved tensor is not the Python object that was saved: nodes hold MindSpore's tensor",
    ),
    (
        r"inplace_views_cross_dtype",
        "transpose_ of a view has the gradient of transpose here; PyTorch transposes it once more, which its test calls unexpected",
    ),
    (
        r"storage_base|tensor_base_init|subclass_tensors|via_slots|slot_dealloc|fail_slots|swap_basic",
        "Tensor is a Python class: subclasses with slots, and bases in C, are laid out in another way",
    ),
    (r"set_early_stop_no_recompution", "modes see an operator before autograd saves its operands"),
    (
        r"check_batched_grad",
        "PyTorch refuses a batch of gradients of a sparse tensor, and they are computed here",
    ),
    (
        r"inplace_on_view_same_layout",
        "the tangent of a view that covers its base is a view of the base's tangent",
    ),
    (
        r"preserve_nonhermetic|torch\._C|has no attribute '_|not in the project: torch[.\w]*\._",
        "a private name is missing",
    ),
    (
        r"backward_mul_by_grad_output|copy_sparse|save_on_cpu|accumulate_grad_tensor_reference",
        "the engine carries dense gradients: those of a sparse tensor are the gradients of its values",
    ),
    (r"mem_overlap|accumulate_empty|non_promoting|forward_grad", "PyTorch refuses these arguments"),
    (r"normal_shape|byte_mask|typed_storage_deprecation", "a warning is missing"),
    (r'parsing_intlist|cummax_cummin|does not match "', "the error has another text"),
    (r"booleans|nonzero_astuple", "an old form of the call is missing"),
    (r"thnn_nhwc|strides_propagation", "the result has other strides"),
    (r"TestDecompCPU", "needs torch._dispatch.python.enable_python_dispatcher, a private name"),
    (r"FakeTensor", "fake tensors are not supported"),
    (
        r"Caused by (sample|reference|error) input",
        "an operator raises an error for a sample (the runner keeps no more of it)",
    ),
    (r"test_to_empty", "to_empty with swapped tensors keeps the addresses of the Python objects"),
    (r"_test_python_registration", "namespaces of torch.ops cannot be deleted"),
    (r"functionalize", "torch.func.functionalize is not supported in a traced graph"),
    (r"Error not raised", "PyTorch refuses these arguments"),
    (r"upsampling_bfloat16", "takes longer than the runner waits"),
    (r"test_doc_template", "reads a file of PyTorch's sources"),
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
    first = re.sub(r" from '[^']*'| \(/[^)]*\)", "", first)  # where the file was is of no interest
    return re.sub(r"0x[0-9a-f]+", "0x...", first)[:140]


def _step(file: str, sides: dict[str, dict]) -> int:
    """Return N where one test of N was run. Both sides must have run the same sample, to the end."""
    ours, theirs = sides["msadapter"], sides["torch"]
    steps = {side.get("step", 1) for side in (ours, theirs)}
    if len(steps) > 1:
        raise ValueError(f"{file}: the two sides ran other samples, one test of {sorted(steps)}")
    if ours.get("stop") or theirs.get("stop"):
        raise ValueError(f"{file}: was stopped before its end ({ours.get('stop') or theirs['stop']})")
    return steps.pop()


def read(folder: Path, release: str = "2.7.1") -> dict:
    """Return the result of all files that both sides have run, as docs/suites.json has it.

    Raises:
        FileNotFoundError: the folder has no file of both sides.
        ValueError: the sides of a file ran other samples, or one was stopped before its end.
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
        for name in (name for name, reason in row["failed"].items() if reason == "not collected"):
            row["failed"][name] = _reason(name, "not collected", "")
        row["failed on both"] = {}  # these are tests of devices and builds that are not there
        row["date"] = page.today()
        row["every"] = _step(file.stem, sides)
        families[file.stem] = row
    if not families:
        raise FileNotFoundError(f"{folder}: no real/FILE.json with a project/FILE.json")
    versions = {"msadapter": {"torch": "2.13.0"}, "torch": {"torch": "2.13.0+cpu"}}
    return {"source": SOURCE.format(release=release), "versions": versions, "families": families}


def write(folder: Path, release: str = "2.7.1") -> int:
    """Put the results of the files in a folder into docs/suites.json, beside those of other files, and write the page."""
    results, found, title = page.load(), read(folder, release), TITLE.format(release=release)
    before = results["suites"].get(title, {"families": {}})
    results["suites"][title] = found | {"families": before["families"] | found["families"]}
    return page.save(results)
