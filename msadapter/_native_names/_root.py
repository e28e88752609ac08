"""Functions of torch._C that programs call directly."""

from __future__ import annotations

import os
import sys

_logged: set[str] = set()


def _get_privateuse1_backend_name() -> str:
    """Return "npu", the name of the device type that is not built into PyTorch."""
    return "npu"


def _log_api_usage_once(event: str) -> None:
    """If PYTORCH_API_USAGE_STDERR=1 is set, print a line to stderr at the first use of ``event``."""
    if os.environ.get("PYTORCH_API_USAGE_STDERR") == "1" and event not in _logged:
        _logged.add(event)
        print(f"PYTORCH_API_USAGE {event}", file=sys.stderr)


def _get_accelerator(check: bool | None = None):
    """Return the torch.device of the accelerator, or of the CPU if there is none."""
    from ..accelerator import current_accelerator
    from ..tensor import device

    return current_accelerator() or device("cpu")


FUNCTIONS = {f.__name__: f for f in (_get_accelerator, _get_privateuse1_backend_name, _log_api_usage_once)}
