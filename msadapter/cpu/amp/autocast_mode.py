"""torch.cpu.amp.autocast."""

from ... import amp
from ..._host.warn import warn_of_old_amp

__all__ = ["autocast"]


class autocast(amp.autocast):
    """Same as torch.amp.autocast('cpu', ...). ``dtype`` is that of lower precision, bfloat16 if it is None."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        warn_of_old_amp("cpu", "autocast", "'cpu', args...")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
