"""The backend "static": each node is given its rank, and all meet at the store of rank 0."""

from __future__ import annotations

from datetime import timedelta

from ...store import PrefixStore
from ...tcp_store import TCPStore
from .api import RendezvousHandler, RendezvousInfo, RendezvousParameters, RendezvousStoreInfo
from .utils import parse_rendezvous_endpoint

__all__ = ["StaticTCPRendezvous", "create_rdzv_handler"]

_default_timeout_seconds = 600


class StaticTCPRendezvous(RendezvousHandler):
    """A rendezvous of ``world_size`` nodes at a TCPStore, which rank 0 makes. ``timeout`` is in seconds."""

    def __init__(
        self, master_addr: str, master_port: int, rank: int, world_size: int, run_id: str, timeout: int
    ):
        self.master_addr, self.master_port = master_addr, master_port
        self.rank, self.world_size, self.run_id = rank, world_size, run_id
        self.timeout = timedelta(seconds=timeout)
        self._store: TCPStore | None = None

    def get_backend(self) -> str:
        """ "static"."""
        return "static"

    @property
    def use_agent_store(self) -> bool:
        """True: the training processes use this store too."""
        return True

    def next_rendezvous(self) -> RendezvousInfo:
        """Waits for the others at the first call. Later calls return the same."""
        if self._store is None:
            self._store = TCPStore(
                self.master_addr,
                self.master_port,
                self.world_size,
                self.rank == 0,
                self.timeout,
                multi_tenant=True,
            )
        place = RendezvousStoreInfo(self.master_addr, self.master_port)
        return RendezvousInfo(PrefixStore(self.run_id, self._store), self.rank, self.world_size, place)

    def is_closed(self) -> bool:
        """False: such a rendezvous is never closed."""
        return False

    def set_closed(self) -> None:
        """Does nothing."""

    def num_nodes_waiting(self) -> int:
        """0: no further node is admitted."""
        return 0

    def get_run_id(self) -> str:
        """The name of the job."""
        return self.run_id

    def shutdown(self) -> bool:
        """Does nothing, and returns True."""
        return True


def create_rdzv_handler(params: RendezvousParameters) -> RendezvousHandler:
    """Makes a handler. The parameters need ``rank`` and an endpoint with a port, and may have ``timeout`` in seconds."""
    if "rank" not in params.config:
        raise ValueError("rank is absent in RendezvousParameters.Try add --node-rank to the cmd request")
    endpoint = params.endpoint.strip()
    if not endpoint:
        raise ValueError(
            "endpoint is absent in RendezvousParametersTry add --master-port and --master-addr to the cmd request"
        )
    host, port = parse_rendezvous_endpoint(endpoint, -1)
    if port == -1:
        raise ValueError(f"Port is absent in endpoint: {endpoint}. Try launching with --master-port")
    timeout = int(params.get("timeout", _default_timeout_seconds))
    return StaticTCPRendezvous(host, port, params.get("rank"), params.max_nodes, params.run_id, timeout)
