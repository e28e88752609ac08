"""Lets mypy read program.py as a user's mypy does, in an environment that sees what `python -m msadapter enable` puts there.

python -m tests.stubs.check MYPY      # MYPY is the command, such as build/gates/bin/mypy
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("program.py")
SHIM = ROOT / "msadapter" / "alias" / "shim"


def differences(mypy: str) -> list[str]:
    """What mypy reports otherwise than program.py says, as lines for a reader. None is right."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment"
        venv.create(environment, with_pip=False)
        (packages,) = environment.glob("lib/python*/site-packages")
        (packages / "msadapter_as_torch.pth").write_text(f"{SHIM}\n", encoding="utf-8")
        program = Path(folder) / PROGRAM.name
        program.write_text(PROGRAM.read_text(encoding="utf-8"), encoding="utf-8")
        command = [
            mypy,
            "--python-executable",
            str(environment / "bin" / "python"),
            "--config-file=",
        ]
        command += ["--check-untyped-defs", "--cache-dir", f"{folder}/cache", "--no-pretty", program.name]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.stderr:
        return [done.stderr]
    found = set(re.findall(r"^program\.py:(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.M))
    lines = enumerate(PROGRAM.read_text(encoding="utf-8").splitlines(), 1)
    expected = {(str(number), code) for number, line in lines for code in re.findall(r"  # ([a-z-]+)$", line)}
    unreported = [
        f"program.py:{number}: mypy does not report [{code}]" for number, code in sorted(expected - found)
    ]
    extra = [
        line
        for line in done.stdout.splitlines()
        if (match := re.match(r"(?:program\.py:(\d+)|.*): error: .*\[([\w-]+)\]$", line))
        and match.groups() not in expected
    ]
    return unreported + extra


if __name__ == "__main__":
    wrong = differences(str(Path(sys.argv[1]).absolute()))  # mypy runs in another folder
    print(*wrong, sep="\n", end="\n" if wrong else "")
    sys.exit(bool(wrong))
