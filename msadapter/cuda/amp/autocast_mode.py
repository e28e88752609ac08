"""torch.cuda.amp.autocast and decorators."""

import functools

from ... import amp


class autocast(amp.autocast):
    """torch.amp.autocast('cuda', ...)."""

    def __init__(self, enabled: bool = True, dtype=None, cache_enabled: bool = True):
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


custom_fwd = functools.partial(amp.custom_fwd, device_type="cuda")
custom_bwd = functools.partial(amp.custom_bwd, device_type="cuda")
