"""torch.backends.xnnpack: XNNPACK is not used."""

import sys
import types


class _Settings(types.ModuleType):
    @property
    def enabled(self) -> bool:
        """False, because XNNPACK is not used."""
        return False

    @enabled.setter
    def enabled(self, value) -> None:
        raise RuntimeError("Assignment not supported")


sys.modules[__name__].__class__ = _Settings
