"""torch.amp: mixed precision."""

from .autocast_mode import TORCH_NAMES, autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

globals().update(TORCH_NAMES)
