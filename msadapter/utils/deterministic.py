"""torch.utils.deterministic: the attribute ``fill_uninitialized_memory``."""

import sys
import types

from .._values import determinism


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether uninitialised memory is filled while `torch.use_deterministic_algorithms` is on."""
        return determinism.get_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        determinism.set_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
