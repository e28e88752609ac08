"""Timers whose requests go through a queue of multiprocessing."""

from __future__ import annotations

import logging
import os
import signal
import time
from queue import Empty
from typing import Any

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]

logger = logging.getLogger(__name__)


def end_process(pid: int, number: int = signal.SIGKILL) -> bool:
    """Sends a signal to a process. Returns False, and logs why, if that is not possible; a process that is gone is fine."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        logger.info("Process with pid=%s does not exist. Skipping", pid)
    except Exception:
        logger.exception("Error terminating pid=%s", pid)
        return False
    return True


class Timers(dict):
    """The timers of processes: {(process, scope): request}."""

    def note(self, requests: list) -> None:
        """Notes the timers of requests. A negative time of expiration gives the timer back."""
        for request in requests:
            key = (request.worker_id, request.scope_id)
            if request.expiration_time < 0:
                self.pop(key, None)
            else:
                self[key] = request

    def expired(self, deadline: float) -> dict[Any, list]:
        """The timers of each process that have expired at a time of `time.time()`."""
        found: dict[Any, list] = {}
        for request in self.values():
            if request.expiration_time <= deadline:
                found.setdefault(request.worker_id, []).append(request)
        return found

    def forget(self, gone) -> None:
        """Forgets the timers of each process for which ``gone(process)`` is true."""
        for key in [key for key in self if gone(key[0])]:
            del self[key]


class LocalTimerClient(TimerClient):
    """A worker's side of a LocalTimerServer in another process of this machine. Workers are known by their process id."""

    def __init__(self, mp_queue):
        super().__init__()
        self._mp_queue = mp_queue

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Asks for a timer that expires at a time of `time.time()`."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id: str) -> None:
        """Gives a timer back."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """The requests in a queue of multiprocessing."""

    def __init__(self, mp_queue):
        super().__init__()
        self._mp_queue = mp_queue

    def size(self) -> int:
        """How many requests there are."""
        return self._mp_queue.qsize()

    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """At most ``size`` requests, which it waits for during at most ``timeout`` seconds."""
        requests, end = [], time.time() + timeout
        left = timeout
        while len(requests) < size and (left > 0 or not requests):
            try:
                requests.append(self._mp_queue.get(block=True, timeout=left))
            except Empty:
                break
            left = end - time.time()
        return requests


class LocalTimerServer(TimerServer):
    """Kills the processes of this machine whose timers have expired."""

    def __init__(self, mp_queue, max_interval: float = 60, daemon: bool = True):
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers = Timers()

    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Notes the timers of requests."""
        self._timers.note(timer_requests)

    def clear_timers(self, worker_ids: set[int]) -> None:
        """Forgets all timers of processes."""
        self._timers.forget(worker_ids.__contains__)

    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """The timers of each process that have expired at a time of `time.time()`."""
        return self._timers.expired(deadline)

    def _reap_worker(self, worker_id: int) -> bool:
        return end_process(worker_id)
