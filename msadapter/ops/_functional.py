"""Helpers for composites of torch.nn.functional: access to other functions of this namespace, and no_grad."""

from __future__ import annotations

import contextlib

from ._declare import _C, namespaces


class _Functional:
    """Gives access to the table's functions of torch.nn.functional, for example ``functional.softmax``.

    A function of the same name in torch may take other arguments.
    """

    def __getattr__(self, name: str):
        found = namespaces["nn.functional"].get(name)
        if found is None:
            raise AttributeError(f"the op table has no operator nn.functional.{name}")
        setattr(self, name, found)
        return found


functional = _Functional()


@contextlib.contextmanager
def without_grad():
    """A block in which autograd records nothing."""
    before = _C.is_grad_enabled()
    _C.set_grad_enabled(False)
    try:
        yield
    finally:
        _C.set_grad_enabled(before)
