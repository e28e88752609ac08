"""torch.utils.bottleneck runs a script twice, once for each of its tables."""

import subprocess
import sys

from tests.alias.fresh import ROOT

SCRIPT = """
import os, sys, torch

def slow(x):
    for _ in range(300):
        x = torch.tanh(x)
    return x

assert __name__ == "__main__" and os.path.basename(__file__) == "script.py"
print("run with", sys.argv[1:], slow(torch.ones(64)).sum().item() > 0)
sys.exit(int(sys.argv[2]))
"""


def _bottleneck(folder, *arguments):
    (folder / "script.py").write_text(SCRIPT)
    return subprocess.run(
        [sys.executable, "-m", "torch.utils.bottleneck", *arguments],
        env={"PYTHONPATH": f"{ROOT / 'msadapter/alias/shim'}:{ROOT}", "PATH": "/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_both_tables(tmp_path):
    done = _bottleneck(tmp_path, "script.py", "--steps", "0")
    assert done.returncode == 0, done.stderr
    before, functions, operators = done.stdout.split("run with ['--steps', '0'] True\n")
    assert "PyTorch interface: " in before and before.count("\nPython functions") == 1
    assert "script.py:4(slow)" in functions
    row = next(line for line in operators.splitlines() if "aten::tanh" in line)
    assert row.split()[-1] == "300"


def test_a_script_that_ends_with_an_error_code_is_still_measured(tmp_path):
    done = _bottleneck(tmp_path, "script.py", "--steps", "3")
    assert done.returncode == 0 and done.stderr.count("script.py ended with exit code 3") == 2
    assert "aten::tanh" in done.stdout


def test_a_script_that_is_not_there(tmp_path):
    done = _bottleneck(tmp_path, "other.py")
    assert done.returncode == 2 and done.stderr.endswith("error: there is no file other.py\n")
