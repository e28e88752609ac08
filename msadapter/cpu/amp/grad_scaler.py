"""torch.cpu.amp.GradScaler."""

from ... import amp
from ..._host.warn import warn_of_old_amp

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """Same as torch.amp.GradScaler('cpu', ...)."""

    def __init__(
        self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
    ):
        warn_of_old_amp("cpu", "GradScaler", "'cpu', args...")
        super().__init__(
            "cpu",
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
