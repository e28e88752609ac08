"""Every name of torch and torch_npu that training programs use exists (tests/golden/symbols.json)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_PROGRAM = """
import importlib, json, sys, warnings
warnings.simplefilter("ignore")
import msadapter
msadapter.install()
from tests.golden import store
from tests.golden.make_symbols import resolve
names = [name for part in store.load("symbols").cases.values() for name in part]
assert len(names) > 900
print(json.dumps([name for name in names if not resolve(name)]))
"""


def test_every_name_resolves():
    """The names are looked up in a new process, through `import torch` and `import torch_npu`."""
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=120, check=True
    )
    assert json.loads(done.stdout) == []
