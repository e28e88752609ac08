# Written by python -m tests.stubs.make_stubs; do not edit.
from typing import Any

def __getattr__(name: str) -> Any: ...
