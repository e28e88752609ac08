"""torch.export is not supported, because programs are not traced. Its classes exist for annotations."""

from __future__ import annotations

__all__ = ["Dim", "ExportedProgram", "export", "load", "save", "unflatten"]


def _refuse(name: str):
    raise NotImplementedError(f"torch.export.{name} is not supported (docs/coverage.md)")


class ExportedProgram:
    """An exported program. There are no instances."""

    def __init__(self, *args, **kwargs):
        _refuse("ExportedProgram")


class Dim:
    """A dimension of an exported program that may vary."""

    def __init__(self, *args, **kwargs):
        _refuse("Dim")


def export(mod, args, kwargs=None, **options) -> ExportedProgram:
    """Not supported: raises NotImplementedError."""
    _refuse("export")


def save(ep, f, **options) -> None:
    """Not supported: raises NotImplementedError."""
    _refuse("save")


def load(f, **options) -> ExportedProgram:
    """Not supported: raises NotImplementedError."""
    _refuse("load")


def unflatten(module, flat_args_adapter=None):
    """Not supported: raises NotImplementedError."""
    _refuse("unflatten")
