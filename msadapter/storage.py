"""torch.storage: the classes of storages."""

from .tensor.storage import UntypedStorage
from .tensor.typed_storage import TypedStorage, _LegacyStorage

__all__ = ["TypedStorage", "UntypedStorage", "_LegacyStorage"]
