"""Switches as module attributes, with a `flags(...)` context manager."""

from contextlib import contextmanager


def make_flags(module_globals: dict, names: tuple):
    """A context manager that sets switches of a module (given by keyword) for a block."""

    @contextmanager
    def flags(**values):
        unknown = set(values) - set(names)
        if unknown:
            raise TypeError(f"flags() got an unexpected keyword argument {sorted(unknown)[0]!r}")
        before = {name: module_globals[name] for name in names}
        module_globals.update(values)
        try:
            yield
        finally:
            module_globals.update(before)

    return flags
