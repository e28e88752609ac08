"""Errors of the accelerator that have a class of their own."""


class AcceleratorError(RuntimeError):
    """The device failed."""


class OutOfMemoryError(RuntimeError):
    """The device has no memory left. (A host without memory raises RuntimeError.)"""


class FatalError(Exception):
    """An error of PyTorch's that its logging makes of a failed check; nothing here raises it."""


for _error in (AcceleratorError, OutOfMemoryError, FatalError):
    _error.__module__ = "torch"
