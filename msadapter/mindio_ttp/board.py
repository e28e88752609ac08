"""What ranks and controller tell each other through the job's store: events, orders, answers and signs of life."""

import json
import os
import time
from datetime import timedelta

from ..distributed.errors import DistStoreError
from ..distributed.meeting import RANKS_PATIENCE
from ..distributed.store import PrefixStore
from ..distributed.tcp_store import TCPStore

_CONNECT = timedelta(seconds=300)


def agent_keeps_store() -> bool:
    """Whether the launcher runs the store, which then outlives every rank."""
    return os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"


def connect(host: str, port: int, serve: bool = False) -> "Board":
    """The board of this job. Under torchrun it is in the launcher's store, elsewhere at an address, where one rank serves it."""
    if agent_keeps_store():
        store = TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), timeout=_CONNECT)
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return Board(PrefixStore(f"mindio_ttp/{attempt}", store), store)
    return Board(
        TCPStore(host, port, is_master=serve, timeout=_CONNECT, wait_for_workers=False, multi_tenant=True)
    )


class Board:
    """The keys of the store."""

    def __init__(self, store, launcher=None):
        self.store, self.launcher = store, launcher

    def ask_patience(self, seconds: float) -> None:
        """Asks the launcher to give the other ranks so much time after a failure, in which they write a checkpoint."""
        if self.launcher is not None:
            self.launcher.set(RANKS_PATIENCE, str(seconds))

    def _append(self, kind: str, content: dict) -> int:
        number = self.store.add(f"{kind}s", 1)
        self.store.set(f"{kind}/{number}", json.dumps(content))
        return number

    def _next(self, kind: str, number: int, seconds: float) -> dict | None:
        key = f"{kind}/{number}"
        try:
            self.store.wait([key], timedelta(seconds=seconds))
        except DistStoreError:
            return None
        return json.loads(self.store.get(key))

    def tell(self, rank: int, kind: str, **facts) -> None:
        """An event of a rank."""
        self._append("event", {"rank": rank, "kind": kind, **facts})

    def event(self, number: int, seconds: float) -> dict | None:
        """The event of this number; None if it does not come in time."""
        return self._next("event", number, seconds)

    def command(self, action: str, ranks, **facts) -> int:
        """An order of the controller. Returns its number."""
        return self._append("order", {"action": action, "ranks": sorted(ranks), **facts})

    def order(self, number: int, seconds: float) -> dict | None:
        """The order of this number; None if it does not come in time."""
        return self._next("order", number, seconds)

    def answer(self, number: int, rank: int, **facts) -> None:
        """What has become of an order on a rank."""
        self.store.set(f"answer/{number}/{rank}", json.dumps(facts))

    def answers(self, number: int, ranks, seconds: float, alive) -> dict[int, dict]:
        """The answers to an order. Those that do not come in time, or of ranks that are not alive(), are missing."""
        found: dict[int, dict] = {}
        end = time.monotonic() + seconds
        left = set(ranks)
        while left and time.monotonic() < end:
            for rank in sorted(left):
                if self.store.check([f"answer/{number}/{rank}"]):
                    found[rank] = json.loads(self.store.get(f"answer/{number}/{rank}"))
                elif alive(rank):
                    continue
                left.discard(rank)
            if left:
                time.sleep(0.02)
        return found

    def set(self, key: str, value) -> None:
        self.store.set(key, json.dumps(value))

    def get(self, key: str):
        """A value, or None."""
        return json.loads(self.store.get(key)) if self.store.check([key]) else None

    def lead(self, before: int, rank: int) -> bool:
        """Makes a rank the leader in the place of another one. False if a third one was faster."""
        return int(self.store.compare_set("leader", str(before), str(rank))) == rank

    def leader(self) -> int:
        return int(self.store.get("leader")) if self.store.check(["leader"]) else 0
