"""Timers of workers: a client asks for one, and a server ends the worker whose timer has expired."""

from __future__ import annotations

import abc
import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

logger = logging.getLogger(__name__)


class TimerRequest:
    """Asks for a timer of a worker that expires at a time of `time.time()`. A negative time gives the timer back.

    ``worker_id`` is what client and server know a worker by, and ``scope_id`` names one of the worker's timers.
    """

    __slots__ = ["expiration_time", "scope_id", "worker_id"]

    def __init__(self, worker_id: Any, scope_id: str, expiration_time: float):
        self.worker_id, self.scope_id, self.expiration_time = worker_id, scope_id, expiration_time

    def _contents(self) -> tuple:
        return self.worker_id, self.scope_id, self.expiration_time

    def __eq__(self, other) -> bool:
        return isinstance(other, TimerRequest) and TimerRequest._contents(self) == TimerRequest._contents(
            other
        )


class TimerClient(abc.ABC):
    """A worker's side: asks for timers and gives them back."""

    @abc.abstractmethod
    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Asks for a timer that expires at a time of `time.time()`."""

    @abc.abstractmethod
    def release(self, scope_id: str) -> None:
        """Gives a timer back, so that it no longer expires."""


class RequestQueue(abc.ABC):
    """The requests that a server has not read yet."""

    @abc.abstractmethod
    def size(self) -> int:
        """How many requests there are at least. Only ``get`` makes them fewer."""

    @abc.abstractmethod
    def get(self, size: int, timeout: float) -> list[TimerRequest]:
        """At most ``size`` requests, which it waits for during at most ``timeout`` seconds."""


class TimerServer(abc.ABC):
    """Reads requests in a thread, and ends the workers whose timers have expired.

    ``max_interval`` is how many seconds it waits for a request before it looks at the timers again.
    """

    def __init__(self, request_queue: RequestQueue, max_interval: float, daemon: bool = True):
        super().__init__()
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._watchdog_thread: threading.Thread | None = None
        self._stop_signaled = False

    @abc.abstractmethod
    def register_timers(self, timer_requests: list[TimerRequest]) -> None:
        """Notes the timers of requests. A negative time of expiration gives the timer back."""

    @abc.abstractmethod
    def clear_timers(self, worker_ids: set[Any]) -> None:
        """Forgets all timers of workers."""

    @abc.abstractmethod
    def get_expired_timers(self, deadline: float) -> dict[Any, list[TimerRequest]]:
        """The timers of each worker that have expired at a time of `time.time()`."""

    @abc.abstractmethod
    def _reap_worker(self, worker_id: Any) -> bool:
        """Ends a worker. Returns whether it has ended; if not, the server tries again later."""

    def _reap_worker_no_throw(self, worker_id: Any) -> bool:
        """Ends a worker. One whose end raises an error counts as ended."""
        try:
            return self._reap_worker(worker_id)
        except Exception:
            logger.exception(
                "_reap_worker of worker=[%s] has raised an error; its timers are dropped", worker_id
            )
            return True

    def _watchdog_loop(self) -> None:
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:
                logger.exception("Error running watchdog")

    def _run_watchdog(self) -> None:
        """Reads the requests that are there, and ends the workers whose timers have expired."""
        count = max(1, self._request_queue.size())
        self.register_timers(self._request_queue.get(count, self._max_interval))
        ended = set()
        for worker, timers in self.get_expired_timers(time.time()).items():
            scopes = [timer.scope_id for timer in timers]
            logger.info("Reaping worker_id=[%s]. Expired timers: %s", worker, scopes)
            if self._reap_worker_no_throw(worker):
                ended.add(worker)
            else:
                logger.error("Error reaping worker=[%s]. Will retry on next watchdog.", worker)
        self.clear_timers(ended)

    def start(self) -> None:
        """Starts the thread."""
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self) -> None:
        """Ends the thread. Waits at most ``max_interval`` seconds for it."""
        self._stop_signaled = True
        if self._watchdog_thread:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


_timer_client: TimerClient | None = None


def configure(timer_client: TimerClient | None) -> None:
    """Sets the client that `expires` uses in this process."""
    global _timer_client
    _timer_client = timer_client


@contextmanager
def expires(after: float, scope: str | None = None, client: TimerClient | None = None) -> Iterator[None]:
    """A context with a timer of ``after`` seconds. The server ends this process if the context takes longer.

    ``scope`` names the timer, and a timer of the same name replaces it. As in PyTorch, all timers that are not named have the
    same name. RuntimeError if neither ``client`` nor `configure` gives a client.
    """
    client = client or _timer_client
    if client is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        caller = sys._getframe(1)  # contextlib's, always the same line
        scope = f"{caller.f_code.co_filename}#{caller.f_lineno}"
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)
