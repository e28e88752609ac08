"""torch.cuda.amp.autocast and decorators."""

from ... import amp
from ..._host.warn import warn_of_old_amp


class autocast(amp.autocast):
    """torch.amp.autocast('cuda', ...)."""

    def __init__(self, enabled: bool = True, dtype=None, cache_enabled: bool = True):
        warn_of_old_amp("cuda", "autocast", "'cuda', args...")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """torch.amp.custom_fwd for ``device_type='cuda'``."""
    warn_of_old_amp("cuda", "custom_fwd", "args..., device_type='cuda'")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """torch.amp.custom_bwd for ``device_type='cuda'``."""
    warn_of_old_amp("cuda", "custom_bwd", "args..., device_type='cuda'")
    return amp.custom_bwd(bwd, device_type="cuda")
