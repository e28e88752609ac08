"""torch.export is not supported, because programs are not traced. Its classes exist for annotations."""

from __future__ import annotations

from .._errors import unsupported

__all__ = ["Dim", "ExportedProgram", "export", "load", "save", "unflatten"]


class ExportedProgram:
    """An exported program. There are no instances."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.export.ExportedProgram")


class Dim:
    """A dimension of an exported program that may vary."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.export.Dim")


def export(mod, args, kwargs=None, **options) -> ExportedProgram:
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.export.export")


def save(ep, f, **options) -> None:
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.export.save")


def load(f, **options) -> ExportedProgram:
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.export.load")


def unflatten(module, flat_args_adapter=None):
    """Not supported: raises NotImplementedError."""
    raise unsupported("torch.export.unflatten")
