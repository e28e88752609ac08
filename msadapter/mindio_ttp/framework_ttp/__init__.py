"""mindio_ttp.framework_ttp: what a training program calls."""

from ..controller_ttp import tft_destroy_controller, tft_init_controller, tft_start_controller
from ..utils import tft_can_do_uce_repair
from . import ttp_decorator
from .ttp_decorator import *  # noqa: F403

__all__ = [
    *ttp_decorator.__all__,
    "tft_can_do_uce_repair",
    "tft_destroy_controller",
    "tft_init_controller",
    "tft_start_controller",
]
