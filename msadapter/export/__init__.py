"""torch.export is refused: programs here are run, not traced for other runtimes. Its classes exist for annotations and checks."""

from __future__ import annotations

__all__ = ["Dim", "ExportedProgram", "export", "load", "save", "unflatten"]


def _refuse(name: str):
    raise NotImplementedError(f"torch.export.{name} is not supported (docs/coverage.md)")


class ExportedProgram:
    """An exported program; none can be made here."""

    def __init__(self, *args, **kwargs):
        _refuse("ExportedProgram")


class Dim:
    """A dimension that may vary in an exported program."""

    def __init__(self, *args, **kwargs):
        _refuse("Dim")


def export(mod, args, kwargs=None, **options) -> ExportedProgram:
    """Refused."""
    _refuse("export")


def save(ep, f, **options) -> None:
    """Refused."""
    _refuse("save")


def load(f, **options) -> ExportedProgram:
    """Refused."""
    _refuse("load")


def unflatten(module, flat_args_adapter=None):
    """Refused."""
    _refuse("unflatten")
