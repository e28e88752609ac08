"""What composites of torch.nn.functional share: the table's functions of that namespace, and code without gradients."""

from __future__ import annotations

import contextlib

from ._declare import _C, namespaces


class _Functional:
    """``functional.softmax``: the table's function of torch.nn.functional, which may differ from torch's of that name."""

    def __getattr__(self, name: str):
        found = namespaces["nn.functional"].get(name)
        if found is None:
            raise AttributeError(f"the op table has no operator nn.functional.{name}")
        setattr(self, name, found)
        return found


functional = _Functional()


@contextlib.contextmanager
def without_grad():
    """A block in which nothing is recorded for gradients."""
    before = _C.is_grad_enabled()
    _C.set_grad_enabled(False)
    try:
        yield
    finally:
        _C.set_grad_enabled(before)
