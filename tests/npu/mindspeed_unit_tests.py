"""Runs MindSpeed's own unit tests (tests_extend/unit_tests) on CPU ranks, and writes what became of them.

    python -m tests.npu.mindspeed_unit_tests MINDSPEED MEGATRON --json results.json --table docs/mindspeed_unit_tests.md

MINDSPEED is 2.3.0_core_r0.12.1, MEGATRON core_v0.12.1; both are copied, their files stay as they are. Each file is a
pytest process, which starts up to eight ranks itself. Upstream's packages (its requirements.txt) come from PYTHONPATH.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.megatron import lm_checkout
from tests.megatron.unit_tests_jobs import PLUGINS, RESUME, FileRun, Finished, counts, python_path
from tests.npu import mindspeed_unit_tests_report as report

HERE = Path(__file__).resolve().parent

TESTS = "tests_extend/unit_tests/"
RANKS = 8  # the most that a file starts
# Numbers to replace in tests that two cores do not finish; what the tests assert stays as it is.
_CONTEXT = "mindspeed/core/context_parallel/test_"
SMALLER = {
    f"{_CONTEXT}adaptive_context_parallel.py": {"8192": "1024", "=1024)": "=128)"},
    f"{_CONTEXT}hybrid_context_parallel.py": {"8192": "1024"},
    f"{_CONTEXT}mla_ringattn_context_parallel.py": {"8192": "1024"},
    f"{_CONTEXT}ringattn_context_parallel_eodbase.py": {"16384": "2048"},
    f"{_CONTEXT}ulysses_context_parallel.py": {"8192": "1024", "8190": "1022"},
    "features/multi_model/test_conv3d_model.py": {
        "epoch = 2000": "epoch = 2",
        "128, 128, 128": "64, 64, 64",
        "2, 2, 2)": "1, 1, 1)",
    },
    "features/moe/test_1f1b_overlap.py": {"4096": "512", "2048": "256"},
}


def arguments(argv=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "mindspeed",
        type=Path,
        nargs="?",
        default=os.environ.get("MSADAPTER_MINDSPEED"),
        help="MindSpeed 2.3.0_core_r0.12.1 (default: MSADAPTER_MINDSPEED)",
    )
    parser.add_argument(
        "megatron",
        type=Path,
        nargs="?",
        default=os.environ.get("MSADAPTER_MEGATRON"),
        help="Megatron-LM core_v0.12.1 (default: MSADAPTER_MEGATRON)",
    )
    parser.add_argument("--only", nargs="*", default=[""], help="files whose path contains one of these")
    parser.add_argument("--limit", type=float, default=300, help="seconds a test may take")
    parser.add_argument(
        "--file-limit", type=float, default=1200, help="seconds the jobs of a file may take together"
    )
    parser.add_argument(
        "--lifted", action="store_true", help="run the tests that their authors skip, those alone"
    )
    parser.add_argument(
        "--smaller", action="store_true", help="run the files of SMALLER, with smaller numbers"
    )
    parser.add_argument(
        "--json", type=Path, help="results: read first, entries of files that run are replaced"
    )
    parser.add_argument("--resume", action="store_true", help=RESUME)
    parser.add_argument("--table", type=Path, help="write the Markdown page here")
    parser.add_argument("--logs", type=Path, help="keep what the jobs print in this folder")
    args = parser.parse_args(argv)
    if not (args.mindspeed and args.megatron):
        parser.error(
            "name checkouts of MindSpeed and Megatron-LM (or MSADAPTER_MINDSPEED and MSADAPTER_MEGATRON)"
        )
    return args


def files(tree: Path, only: list[str]) -> list[str]:
    """The test files, as paths in the tree."""
    names = sorted(str(path.relative_to(tree)) for path in (tree / TESTS).rglob("test_*.py"))
    return [name for name in names if any(word in name for word in only)]


def shrunk(tree: Path, names: list[str]) -> list[str]:
    """Makes the tests that SMALLER names smaller in the copy. Raises RuntimeError if one is missing."""
    names = [name for name in names if name.removeprefix(TESTS) in SMALLER]
    for name in names:
        text = (tree / name).read_text()
        for old, new in SMALLER[name.removeprefix(TESTS)].items():
            if old not in text:
                raise RuntimeError(f"{name} has no {old!r} to make smaller: upstream has changed")
            text = text.replace(old, new)
        (tree / name).write_text(text)
    return names


def copies(args: argparse.Namespace, folder: Path) -> tuple[Path, Path]:
    """Copies of MindSpeed and of Megatron-LM. The latter has the compiled data set helper."""
    tree = folder / "mindspeed"
    shutil.copytree(args.mindspeed, tree, ignore=shutil.ignore_patterns(".git", "__pycache__", "docs"))
    return tree, lm_checkout.scratch_copy(args.megatron, folder)


def job(mindspeed: Path, megatron: Path, name: str, args: argparse.Namespace) -> FileRun:
    """Runs the file as its authors do. pytest's options are in the environment, because MindSpeed parses sys.argv at import."""
    environment = {
        "PYTHONPATH": python_path(HERE, mindspeed, megatron),
        "MSADAPTER_DEVICE": "npu",
        "MSADAPTER_DEVICE_COUNT": str(RANKS),
        "MSADAPTER_DEVICE_NAME": "Ascend910B",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OMP_NUM_THREADS": "1",
        "MSADAPTER_UT_LIFTED": "1" if args.lifted else "",
        "PYTEST_ADDOPTS": f"{PLUGINS} -p mindspeed_unit_tests_plugin --rootdir {mindspeed}",
    }
    return FileRun(
        mindspeed, name, [sys.executable, "-m", "pytest", name], environment, 1, args.limit, args.file_limit
    )


def main() -> int:
    args = arguments()
    results = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    part = results.setdefault(
        "skips lifted" if args.lifted else "made smaller" if args.smaller else "as marked", {}
    )
    finished = Finished(args.json, args.resume)
    with tempfile.TemporaryDirectory() as folder:
        mindspeed, megatron = copies(args, Path(folder))
        known = [name.removeprefix(TESTS) for name in files(mindspeed, [""])]
        chosen = files(mindspeed, args.only)
        for name in shrunk(mindspeed, chosen) if args.smaller else chosen:
            if name in finished:
                continue
            begin = time.monotonic()
            run = job(mindspeed, megatron, name, args)
            part[name.removeprefix(TESTS)] = outcomes = run.run()
            print(f"{name}: {counts(outcomes)} in {time.monotonic() - begin:.0f} s", flush=True)
            if args.json:
                args.json.write_text(json.dumps(results, indent=0, sort_keys=True) + "\n")
            finished.add(name)
            if args.logs:
                args.logs.mkdir(exist_ok=True)
                (args.logs / (name.removeprefix(TESTS).replace("/", ".") + ".log")).write_text(
                    "\n\n".join(run.outputs)
                )
    finished.end()
    if args.table:
        args.table.write_text(report.markdown(results, known))
    return 0


if __name__ == "__main__":
    sys.exit(main())
