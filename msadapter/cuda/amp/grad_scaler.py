"""torch.cuda.amp.GradScaler."""

from ... import amp
from ..._host.warn import warn_of_old_amp
from ...amp.grad_scaler import OptState, _MultiDeviceReplicator, _refresh_per_optimizer_state

__all__ = ["GradScaler", "OptState", "_MultiDeviceReplicator", "_refresh_per_optimizer_state"]


class GradScaler(amp.GradScaler):
    """torch.amp.GradScaler('cuda', ...)."""

    def __init__(
        self, init_scale=2.0**16, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True
    ):
        warn_of_old_amp("cuda", "GradScaler", "'cuda', args...")
        super().__init__(
            "cuda",
            init_scale=init_scale,
            growth_factor=growth_factor,
            backoff_factor=backoff_factor,
            growth_interval=growth_interval,
            enabled=enabled,
        )
