"""The classes of errors that accelerators raise, and the error for what msadapter does not support."""

from __future__ import annotations


def unsupported(name: str, why: str = "") -> NotImplementedError:
    """Return the error for something of PyTorch that msadapter does not support.

    Args:
        name: what the user called, with its module, as in ``torch.hub.load``.
        why: what of it is not supported, and how to do without it. The default is the whole of it.
    """
    return NotImplementedError(
        f"{name}: {why} (docs/coverage.md)" if why else f"{name} is not supported (docs/coverage.md)"
    )


def unsupported_function(name: str, why: str = "", doc: str = "Not supported: raises NotImplementedError."):
    """Return a function of the last part of this name that raises the error of :func:`unsupported`.

    Its attribute ``unsupported`` is the reason. The coverage page is made from it.
    """

    def refused(*args, **kwargs):
        raise unsupported(name, why)

    refused.__module__, _, refused.__name__ = name.rpartition(".")
    refused.__qualname__ = refused.__name__
    refused.__doc__ = doc
    refused.unsupported = why or "is not supported"
    return refused


class AcceleratorError(RuntimeError):
    """An error of the accelerator."""


class OutOfMemoryError(RuntimeError):
    """The accelerator has not enough memory. (Too little memory for the CPU raises RuntimeError.)"""


class FatalError(Exception):
    """The error that PyTorch's logging raises after a failed check. Nothing raises it here."""


for _error in (AcceleratorError, OutOfMemoryError, FatalError):
    _error.__module__ = "torch"
