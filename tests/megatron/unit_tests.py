"""Runs Megatron-LM's own unit tests on 1, 2 and 4 ranks, and writes what became of them.

    python -m tests.megatron.unit_tests CHECKOUT --ranks 1 2 4 --json results.json --table docs/megatron_unit_tests.md

CHECKOUT is core_v0.12.1, or core_v0.19.0 with the Python 3.12 of an environment that `auto_convert.sh core --release 0.19.0
--tests` has made. It is copied, its files stay as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import patches
from megatron_ms.convert.upstream import is_newer
from tests.megatron import lm_checkout
from tests.megatron import unit_tests_report as report
from tests.megatron.unit_tests_jobs import PLUGINS, RESUME, FileRun, Finished, counts, python_path

ROOT = Path(__file__).resolve().parents[2]

# Of core_v0.12.1; of later releases all folders are run.
GROUPS = (
    "tensor_parallel",
    "pipeline_parallel",
    "distributed",
    "transformer",
    "dist_checkpointing",
    "data",
    "models",
    "fusions",
    "ssm",
    "inference",
)

LARGE = ("models/test_heterogeneous_gpt_model.py",)  # 5 GB a rank: on one rank only


def arguments(argv=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "checkout",
        type=Path,
        nargs="?",
        default=os.environ.get("MSADAPTER_MEGATRON"),
        help="Megatron-LM core_v0.12.1 or core_v0.19.0 (default: MSADAPTER_MEGATRON)",
    )
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--only", default="", help="files whose path contains this")
    parser.add_argument("--limit", type=float, default=60, help="seconds a test may take")
    parser.add_argument(
        "--file-limit", type=float, default=900, help="seconds the jobs of a file may take together"
    )
    parser.add_argument(
        "--json", type=Path, help="results: read first, entries of files that run are replaced"
    )
    parser.add_argument("--resume", action="store_true", help=RESUME)
    parser.add_argument("--table", type=Path, help="write the Markdown page here")
    parser.add_argument("--note", default="", help="a paragraph about this run for the page")
    parser.add_argument(
        "--tree", type=Path, help="a tree that was prepared before, instead of a copy of the checkout"
    )
    args = parser.parse_args(argv)
    if not (args.checkout or args.tree):
        parser.error("name a checkout of Megatron-LM (or MSADAPTER_MEGATRON)")
    return args


def release(tree: Path) -> str:
    """The release of a tree, such as "0.12.1"."""
    return patches.discover("megatron_core")[0].version_of(tree)


def files(tree: Path) -> list[str]:
    """The test files, as paths in the tree."""
    top = tree / "tests/unit_tests"
    groups = (
        GROUPS if release(tree).startswith("0.12.") else sorted(p.name for p in top.iterdir() if p.is_dir())
    )
    found = sorted(top.glob("test_*.py")) + sorted(p for g in groups for p in (top / g).rglob("test_*.py"))
    return [str(path.relative_to(tree)) for path in found if path.name != "test_utilities.py"]


def job(tree: Path, name: str, ranks: int, args: argparse.Namespace) -> FileRun:
    """Runs the file on a number of ranks under torchrun."""
    newer = is_newer(release(tree))
    environment = {
        "PYTHONPATH": python_path(),
        "MSADAPTER_DEVICE": "cuda",
        "MSADAPTER_TRANSFORMER_ENGINE": "1",
        "MSADAPTER_TRITON": str(int(newer)),
        "TRITON_INTERPRET": str(int(newer)),  # Triton's kernels of later releases run on the CPU
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "OMP_NUM_THREADS": "1",
    }
    command = [
        sys.executable,
        ROOT / "msadapter/distributed/_torchrun.py",
        "--standalone",
        "--nproc-per-node",
        ranks,
        "-m",
        "pytest",
        *PLUGINS.split(),
        "--rootdir",
        tree,
        name,
    ]
    return FileRun(tree, name, command, environment, ranks, args.limit, args.file_limit)


def main() -> int:
    args = arguments()
    results = json.loads(args.json.read_text()) if args.json and args.json.exists() else {}
    finished = Finished(args.json, args.resume)
    with tempfile.TemporaryDirectory() as folder:
        tree = (
            args.tree.resolve()
            if args.tree
            else lm_checkout.scratch_copy(args.checkout, Path(folder), tests=True)
        )
        version, known = release(tree), files(tree)
        for name in (name for name in known if args.only in name):
            for ranks in args.ranks if not name.endswith(LARGE) else [n for n in args.ranks if n == 1]:
                if (job_name := f"{name} on {ranks}") in finished:
                    continue
                begin = time.monotonic()
                outcomes = job(tree, name, ranks, args).run()
                results.setdefault(name.removeprefix("tests/unit_tests/"), {})[str(ranks)] = outcomes
                print(f"{job_name}: {counts(outcomes)} in {time.monotonic() - begin:.0f} s", flush=True)
                if args.json:
                    args.json.write_text(json.dumps(results, indent=0, sort_keys=True) + "\n")
                finished.add(job_name)
    finished.end()
    if args.table:
        names = [name.removeprefix("tests/unit_tests/") for name in known]
        args.table.write_text(report.markdown(results, version, args.table, names, args.note))
    return 0


if __name__ == "__main__":
    sys.exit(main())
