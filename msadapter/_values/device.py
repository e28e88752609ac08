"""torch.device, and the default device of new tensors."""

from __future__ import annotations

import functools
import re
import threading

from .._host.accelerator import current_device, require
from .._host.accelerator import kind as accelerator
from .._host.native import load

ACCELERATORS = ("cuda", "npu", "privateuseone")
KNOWN = ("cpu", *ACCELERATORS, "meta", "mps", "xpu", "hpu", "mkldnn", "xla")
_current = threading.local()


class device:
    """The device of a tensor. It keeps the name that the user wrote, and is also a context manager."""

    __slots__ = ("type", "index", "_previous")

    def __init__(self, type="cpu", index=None):
        if isinstance(type, device):
            type, index = type.type, type.index if index is None else index
        elif isinstance(type, int) and not isinstance(type, bool):
            type, index = accelerator() or "cuda", type
        elif isinstance(type, str) and ":" in type:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            type, _, number = type.partition(":")
            if not re.fullmatch("0|[1-9][0-9]*", number):
                raise RuntimeError(f"Invalid device string: '{type}:{number}'")
            index = int(number)
        elif not isinstance(type, str):
            raise TypeError(
                f"device(): argument 'type' (position 1) must be str, not {type.__class__.__name__}"
            )
        if type not in KNOWN:
            if not type:
                raise RuntimeError("Device string must not be empty")
            if not re.fullmatch("[A-Za-z_]+", type):
                raise RuntimeError(f"Invalid device string: '{type}'")
            raise RuntimeError(
                f"Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, "
                f"vulkan, mps, meta, hpu, mtia, privateuseone device type at start of device string: {type}"
            )
        self.type, self.index, self._previous = type, index, None

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')"
            if self.index is None
            else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self):
        return device, ((self.type,) if self.index is None else (self.type, self.index))

    def __enter__(self):
        stack = _stack()
        stack.append(self)
        _tell()
        return self

    def __exit__(self, *exc):
        _stack().pop()
        _tell()

    def __call__(self, function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapper


device.__module__ = "torch"


def _stack() -> list:
    if not hasattr(_current, "stack"):
        _current.stack = []
        _current.default = None
    return _current.stack


CPU, META = device("cpu"), device("meta")
META_TAG = 32767  # the same number as in csrc/device/bridge.h


def default_device() -> device:
    """Return the device of new tensors for which no device is given.

    In the code of an operator this is the device of the operands, if an accelerator has memory of its own.
    """
    tag = load().own_code_tag()
    if tag >= 0:
        return device(accelerator() or "cuda", tag - 1) if tag else CPU
    return _chosen()


def _chosen() -> device:
    """Return the default device that the program has chosen in this thread."""
    stack = _stack()
    return stack[-1] if stack else (_current.default or CPU)


def set_default_device(value) -> None:
    _stack()
    _current.default = None if value is None else device(value)
    _tell()


def _tell() -> None:
    """Pass the default device of this thread to the C++ functions."""
    kind = _chosen().type
    load().set_default_device(0 if kind == "cpu" else 2 if kind == "meta" else 1)


def resolve(value) -> device:
    """Convert a ``device=`` argument to a device for a tensor. A missing index becomes that of the current accelerator.

    Raises RuntimeError for an accelerator if this run has none.
    """
    d = default_device() if value is None else value if isinstance(value, device) else device(value)
    if d.type not in ACCELERATORS:
        return d
    require()
    return device(d.type, current_device()) if d.index is None else d
