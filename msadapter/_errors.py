"""The classes of errors that accelerators raise."""


class AcceleratorError(RuntimeError):
    """An error of the accelerator."""


class OutOfMemoryError(RuntimeError):
    """The accelerator has not enough memory. (Too little memory for the CPU raises RuntimeError.)"""


class FatalError(Exception):
    """The error that PyTorch's logging raises after a failed check. Nothing raises it here."""


for _error in (AcceleratorError, OutOfMemoryError, FatalError):
    _error.__module__ = "torch"
