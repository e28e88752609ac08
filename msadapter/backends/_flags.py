"""Settings that are module attributes, with a `flags(...)` context manager."""

from contextlib import contextmanager


def make_flags(module_globals: dict, names: tuple):
    """Return a context manager that sets attributes of a module, given by keyword, inside a block."""

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
