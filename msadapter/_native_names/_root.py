"""Functions of torch._C itself that programs call."""

from __future__ import annotations

import os
import sys

_logged: set[str] = set()


def _get_privateuse1_backend_name() -> str:
    """The name of the device kind that is no part of PyTorch: npu."""
    return "npu"


def _log_api_usage_once(event: str) -> None:
    """With PYTORCH_API_USAGE_STDERR=1 in the environment, one line on stderr for the first use of ``event``."""
    if os.environ.get("PYTORCH_API_USAGE_STDERR") == "1" and event not in _logged:
        _logged.add(event)
        print(f"PYTORCH_API_USAGE {event}", file=sys.stderr)


def _get_accelerator(check: bool | None = None):
    """The accelerator's torch.device, that of the host without one."""
    from ..accelerator import current_accelerator
    from ..tensor import device

    return current_accelerator() or device("cpu")


FUNCTIONS = {f.__name__: f for f in (_get_accelerator, _get_privateuse1_backend_name, _log_api_usage_once)}
