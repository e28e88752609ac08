"""The command line: python -m benchmarks [names] --torch-python PATH, or with one of operators, collectives, scaling, npu."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from . import collectives, npu, operators, report, scaling
from .sides import LIMITS, ROOT, Pair, limit

RANKS = (1, 2, 4)  # numbers of ranks of the data-parallel step


def arguments(argv=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compares the speed of msadapter with real PyTorch."
    )
    parser.add_argument(
        "names", nargs="*", help="names of works or groups, or parts of these names (default: all)"
    )
    parser.add_argument(
        "--torch-python", default=os.environ.get("MSADAPTER_TORCH_PYTHON"), help="python with real PyTorch"
    )
    parser.add_argument("--rounds", type=int, default=15, help="turns of each side per work")
    parser.add_argument("--slice", type=float, default=0.02, help="approximate seconds per turn")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--instructions", choices=sorted(LIMITS), help="let both sides use no wider vectors than these"
    )
    parser.add_argument("--json", type=Path, help="write all numbers here")
    parser.add_argument(
        "--update",
        type=Path,
        help="an earlier --json file, whose results are kept for works that are not named",
    )
    parser.add_argument("--table", type=Path, help="write the Markdown page here (docs/benchmarks.md)")
    parser.add_argument("--plot", type=Path, help="write the picture of the ratios here (needs matplotlib)")
    parser.add_argument(
        "--summary-plot", type=Path, help="write the README's picture here: one bar for each kind of work"
    )
    parser.add_argument("--growth-plot", type=Path, help="write the picture of how the step time grows here")
    parser.add_argument(
        "--megatron",
        type=Path,
        default=os.environ.get("MSADAPTER_MEGATRON"),
        help="Megatron-LM checkout (core_v0.12.1) for its steps, which are left out without it",
    )
    parser.add_argument("--list", action="store_true", help="list the works and exit")
    args = parser.parse_args(argv)
    if not args.torch_python:
        parser.error(
            "give the path of a python with real PyTorch: --torch-python PATH (or MSADAPTER_TORCH_PYTHON)"
        )
    limit(args.instructions)
    if args.megatron:
        os.environ["MSADAPTER_MEGATRON"] = str(Path(args.megatron).resolve())
    return args


def catalog(python: str) -> dict[str, dict]:
    """Name -> description of every work. A child process reads them, so this process need not import torch."""
    code = (
        "import json; from benchmarks.works import WORKS; "
        "print(json.dumps({n: {k: v for k, v in vars(w).items() if k != 'prepare'} for n, w in WORKS.items()}))"
    )
    done = subprocess.run([python, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def wanted(name: str, group: str, args: argparse.Namespace) -> bool:
    return not args.names or any(part in name or part in group for part in args.names)


def measure(args: argparse.Namespace) -> dict:
    works = {n: w for n, w in catalog(args.torch_python).items() if wanted(n, w["group"], args)}
    pair = Pair(args.torch_python, args.threads)
    results = {}

    def note(name: str, entry: dict, kind: str, group: str, **more) -> None:
        results[name] = {**entry, "kind": kind, "group": group, **more}
        print(report._row(name, results[name]), flush=True)

    for name, about in works.items():
        note(name, pair.compare(name, args.rounds, args.slice), "time", **about)
    for ranks in RANKS:
        if wanted(f"GPT, ranks {ranks}", "growth", args):
            note(
                f"GPT, ranks {ranks}",
                collectives.step_times(args.torch_python, ranks, args.rounds),
                "time",
                "growth",
            )
    for name, about in works.items():
        if about["memory"] and "ratio" in results[name]:
            note("peak memory of " + name, pair.memory(name), "memory", "process", target=0.9)
    if wanted("start of python with torch", "process", args):
        note("start of python with torch", pair.import_time(), "time", "process", target=1 / 1.5)
        note("memory of python with torch", pair.import_memory(), "memory", "process", target=1 / 1.5)
    pair.close()
    about = pair.circumstances(args.rounds, os.getloadavg()[0])
    return {"about": about, "results": results, "roofline": report.roofline(results)}


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the exit handlers terminate the workers
    if sys.argv[1:2] == ["operators"]:
        return operators.main(sys.argv[2:])
    if sys.argv[1:2] == ["collectives"]:
        return collectives.main(sys.argv[2:])
    if sys.argv[1:2] == ["scaling"]:
        return scaling.main(sys.argv[2:])
    if sys.argv[1:2] == ["npu"]:
        return npu.main(sys.argv[2:])
    args = arguments()
    if args.list:
        for name, about in catalog(args.torch_python).items():
            print(f"{about['group']:30} {name}")
        return 0
    run = measure(args)
    if args.update:
        earlier = json.loads(args.update.read_text())
        run["results"] = {**earlier["results"], **run["results"]}
        turns = [int(n) for about in (earlier, run) for n in str(about["about"]["rounds"]).split(" to ")]
        run["about"]["rounds"] = " to ".join(map(str, sorted({min(turns), max(turns)})))
        run["roofline"] = report.roofline(run["results"])
    if args.json:
        args.json.write_text(json.dumps(run, indent=1) + "\n")
    if args.table:
        kept = report.npu_section_of(args.table.read_text()) if args.table.exists() else ""
        args.table.write_text(report.markdown(run) + (f"\n{kept}" if kept else ""))
    if args.plot:
        report.plot(run, args.plot)
    if args.summary_plot:
        report.plot_summary(run, args.summary_plot)
    if args.growth_plot:
        report.plot_growth(run, args.growth_plot)
    failed = [name for name, entry in run["results"].items() if "error" in entry]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
