"""mindio_ttp.controller_ttp: the functions that start the controller."""

import logging

from ..board import agent_keeps_store, connect
from ..names import refused
from ..running import running

__all__ = ["tft_destroy_controller", "tft_init_controller", "tft_start_controller", "ttp_logger"]


class ttp_logger:
    """The log of the recovery."""

    LOGGER = logging.getLogger("mindio_ttp")


def tft_init_controller(
    rank: int, world_size: int, enable_local_copy: bool, enable_arf: bool = False, enable_zit: bool = False
) -> None:
    """Check what is asked of the controller.

    enable_arf, enable_zit: only MindCluster starts single ranks again or takes machines away, so a failure is answered as
        without them, and this is said.
    """
    if not 0 <= rank < world_size:
        raise ValueError(f"tft_init_controller: there is no rank {rank} of {world_size}")
    if enable_local_copy:
        raise refused("tft_init_controller(enable_local_copy=True)")
    for asked, what in ((enable_arf, "start a single rank again"), (enable_zit, "train on with fewer ranks")):
        if asked:
            ttp_logger.LOGGER.warning(
                "it is not possible to %s here: after a failure the last checkpoint is written and all ranks end, "
                "and torchrun --max-restarts or megatron_ms train starts all of them again",
                what,
            )


def tft_start_controller(bind_ip: str, port: int, enable_tls: bool = True, tls_info: str = "") -> None:
    """Serve the job's store at an address. Under torchrun the launcher's store is used, and the address is not."""
    if enable_tls:
        raise refused("tft_start_controller(enable_tls=True)")
    if not agent_keeps_store():
        running.server = connect(bind_ip, port, serve=True)


def tft_destroy_controller() -> None:
    """Nothing is decided any more on this rank when its processor is destroyed; the store stays for the others."""
