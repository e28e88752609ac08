"""Runs tests of other projects through the public API, here and on real PyTorch, and writes docs/suites.md.

    python -m tests.suites run SUITE CHECKOUT --records DIR [--torch PYTHON] [--path FOLDER ...] [--only FAMILY ...] [--every N]
    python -m tests.suites page DIR ...     records to docs/suites.json, and the page from it
    python -m tests.suites page             the page alone
    python -m tests.suites release [--path FOLDER ...]    tests/huggingface against the transformers found there

Without --torch it is this project that answers `import torch`. CHECKOUT is a folder of SUITE's public sources; nothing of
it is kept. --path puts folders of installed packages before the interpreter's own. --every 10 runs a tenth of the tests, chosen by
their names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.suites import page, pytorch
from tests.suites.suites import SUITES

ROOT = Path(__file__).resolve().parents[2]
SHIM = ROOT / "msadapter" / "alias" / "shim"


def _environment(suite, record: Path, limit: int, paths: list[str], ours: bool) -> dict[str, str]:
    own = [str(SHIM), str(ROOT)] if ours else []
    return {
        **os.environ,
        **suite.environment,
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *own, *paths]),
        "MSADAPTER_DEVICE": "cpu",
        "MSADAPTER_SUITE_RECORD": str(record),
        "MSADAPTER_SUITE_LIMIT": str(limit),
        "MSADAPTER_SUITE_LEFT_OUT": json.dumps(suite.left_out),
    }


def _versions(python: str, environment: dict[str, str], packages: tuple[str, ...]) -> dict[str, str]:
    code = (
        "import importlib.metadata as m, json, sys, torch; "
        "print(json.dumps({p: m.version(p) for p in sys.argv[1:]} | {'torch': torch.__version__}))"
    )
    answer = subprocess.run(
        [python, "-c", code, *packages], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(answer.stdout.splitlines()[-1])


def run_file(
    python: str, checkout: Path, file: str, environment: dict[str, str], options: tuple[str, ...]
) -> str:
    """Runs the tests of one file, and after a crash the remaining ones. Returns the last output of pytest."""
    record = Path(environment["MSADAPTER_SUITE_RECORD"])
    record.unlink(missing_ok=True)
    command = [python, "-m", "pytest", "-q", "-p", "recorder", "-p", "no:cacheprovider", *options, file]
    while True:
        before = _begun(record)
        answer = subprocess.run(
            command,
            cwd=checkout,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if (
            0 <= answer.returncode <= 5 or _begun(record) == before
        ):  # pytest ended by itself, or dies before any test
            return answer.stdout[-4000:]


def _begun(record: Path) -> int:
    if not record.exists():
        return 0
    return sum(json.loads(line)["outcome"] == "begun" for line in record.read_text().splitlines())


def outcomes(record: Path) -> dict[str, dict]:
    """Test name -> outcome: passed, failed, skipped or left out. A test that began and did not end has crashed."""
    found: dict[str, dict] = {}
    for line in map(json.loads, record.read_text().splitlines() if record.exists() else []):
        name = line.pop("test")
        if found.get(name, {}).get("outcome") in (None, "begun") or line["outcome"] == "failed":
            found[name] = line
    for line in found.values():
        if line["outcome"] == "begun":
            line.update(outcome="failed", reason="the process died")
    return found


def run(options: argparse.Namespace) -> int:
    """Runs the suite. Returns 1 if a family has no tests, or one fails with msadapter that does not fail on the page."""
    status = 0
    suite, checkout = SUITES[options.suite], Path(options.checkout).resolve()
    python, ours = options.torch or sys.executable, options.torch is None
    folder = Path(options.records).resolve() / options.suite / ("msadapter" if ours else "torch")
    folder.mkdir(parents=True, exist_ok=True)
    for family, file in suite.present(checkout).items():
        if options.only and family not in options.only:
            continue
        record = folder / f"{family}.jsonl"
        environment = _environment(suite, record, options.limit, options.path, ours)
        environment["MSADAPTER_SUITE_EVERY"] = str(options.every)
        output = run_file(python, checkout / suite.folder, file, environment, suite.options)
        found = outcomes(record)
        result = {
            "versions": _versions(python, environment, suite.packages),
            "source": options.source,
            "every": options.every,
            "date": page.today(),
            "tests": found,
        }
        (folder / f"{family}.json").write_text(json.dumps(result, indent=1))
        if not found:
            print(output)
        print(options.suite, family, page.counts(found), flush=True)
        failures = (
            page.new_failures(page.title(options.suite, result["versions"]), family, found) if ours else []
        )
        for line in failures:
            print("not on the page:", line, flush=True)
        status = 1 if failures or not found else status
    return status


def release(options: argparse.Namespace) -> int:
    """Runs the project's own tests of transformers with the release in ``--path``, and writes the numbers to the page."""
    suite = SUITES["transformers"]
    with tempfile.TemporaryDirectory() as folder:
        record = Path(folder) / "record.jsonl"
        environment = _environment(suite, record, options.limit, options.path, ours=True)
        environment["MSADAPTER_SUITE_LEFT_OUT"] = "{}"
        output = run_file(sys.executable, ROOT, "tests/huggingface", environment, ())
        versions = _versions(sys.executable, environment, (*suite.packages, "peft"))
        found = page.counts(outcomes(record))
    print(output, versions, found)
    results = page.load()
    row = {kind: found.get(kind, 0) for kind in ("passed", "failed", "skipped")}
    results["releases"][versions["transformers"]] = {"versions": versions, "date": page.today(), **row}
    return page.save(results)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(required=True)
    runs = verbs.add_parser("run")
    runs.add_argument("suite", choices=SUITES)
    runs.add_argument("checkout")
    runs.add_argument("--records", required=True)
    runs.add_argument("--torch", help="a python that has real PyTorch")
    runs.add_argument("--path", action="append", default=[])
    runs.add_argument("--only", nargs="*")
    runs.add_argument("--limit", type=int, default=120, help="seconds a test may take")
    runs.add_argument(
        "--every", type=int, default=1, metavar="N", help="run a tenth of the tests if it is 10"
    )
    runs.add_argument("--source", default="", help="what the checkout is, for the page")
    runs.set_defaults(act=run)
    releases = verbs.add_parser("release")
    releases.add_argument("--path", action="append", default=[])
    releases.add_argument("--limit", type=int, default=120, help="seconds a test may take")
    releases.set_defaults(act=release)
    pages = verbs.add_parser("page")
    pages.add_argument("records", nargs="*")
    pages.set_defaults(act=lambda options: page.write([Path(r) for r in options.records]))
    own = verbs.add_parser("pytorch", help="PyTorch's own tests: put the results of their runner on the page")
    own.add_argument("results", type=Path, help="a folder with real/FILE.json and project/FILE.json")
    own.add_argument("--release", default="2.7.1", help="the release of PyTorch whose tests these are")
    own.set_defaults(act=lambda options: pytorch.write(options.results, options.release))
    options = parser.parse_args(arguments)
    return options.act(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
