"""Timers whose requests go through a named pipe. They need no queue that server and workers share."""

from __future__ import annotations

import contextlib
import json
import os
import select
import threading
import time
from collections.abc import Callable
from signal import SIGKILL

from ..utils.logging import get_logger
from .api import TimerClient, TimerRequest
from .debug_info_logging import log_debug_info_for_expired_timers
from .local_timer import Timers, end_process

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer"]

logger = get_logger(__name__)
_TRIES, _PAUSE = 10, 0.1  # how often a client tries to reach the server, and the seconds between two tries


class FileTimerRequest(TimerRequest):
    """A request for a timer of a process. ``signal`` is what the server sends to the process; 0 or less means nothing."""

    __slots__ = ["signal", "version"]

    def __init__(self, worker_pid: int, scope_id: str, expiration_time: float, signal: int = 0) -> None:
        super().__init__(worker_pid, scope_id, expiration_time)
        self.version, self.signal = 1, signal

    @property
    def worker_pid(self) -> int:
        return self.worker_id

    def __eq__(self, other) -> bool:
        if not isinstance(other, FileTimerRequest):
            return False
        return super().__eq__(other) and (self.version, self.signal) == (other.version, other.signal)

    def to_json(self) -> str:
        """The request as a JSON object on one line."""
        return json.dumps(
            {
                "version": self.version,
                "pid": self.worker_pid,
                "scope_id": self.scope_id,
                "expiration_time": self.expiration_time,
                "signal": self.signal,
            }
        )


def _request(line: bytes) -> FileTimerRequest | None:
    """The request of a line of JSON. None, which is logged, if it is something else."""
    try:
        read = json.loads(line)
        return FileTimerRequest(read["pid"], read["scope_id"], read["expiration_time"], read["signal"])
    except (ValueError, LookupError, TypeError):
        logger.warning("FileTimerServer: %r is not a request", line)
        return None


def _write(path: str, text: str) -> None:
    """Writes a line to a named pipe. OSError if nobody reads it, or if it is full."""
    pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(pipe, f"{text}\n".encode())
    finally:
        os.close(pipe)


class FileTimerClient(TimerClient):
    """A worker's side of a FileTimerServer in another process of this machine.

    ``file_path`` is that of the server. ``signal`` is what ends this process when a timer expires; 0 or less means that nothing
    does. BrokenPipeError if no server reads the pipe within a second.
    """

    def __init__(self, file_path: str, signal=SIGKILL) -> None:
        super().__init__()
        self._file_path, self.signal = file_path, signal

    def _send_request(self, request: FileTimerRequest) -> None:
        text = request.to_json()
        if len(text) >= select.PIPE_BUF:  # more would not be written at once, and mix with what others write
            raise RuntimeError(
                f"FileTimerRequest larger than {select.PIPE_BUF} bytes is not supported: {text}"
            )
        for left in reversed(range(_TRIES)):
            try:
                _write(self._file_path, text)
                return
            except OSError as error:
                if not left:
                    raise BrokenPipeError(
                        "Could not send the FileTimerRequest because FileTimerServer is not available."
                    ) from error
                time.sleep(_PAUSE)

    def acquire(self, scope_id: str, expiration_time: float) -> None:
        """Asks for a timer that expires at a time of `time.time()`."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, expiration_time, self.signal))

    def release(self, scope_id: str) -> None:
        """Gives a timer back."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, -1))


class FileTimerServer:
    """Ends the processes of this machine whose timers have expired, and then its own process by the same signal.

    Args:
        file_path: the named pipe, which the server makes. Only processes of its user can write to it.
        run_id: the name of the job, for the log.
        max_interval: the seconds that it waits for requests before it looks at the timers again.
        daemon: whether its thread may be left behind when the program ends.
        log_event: called with what happens, and with the request that it concerns or None.
    """

    def __init__(
        self,
        file_path: str,
        run_id: str,
        max_interval: float = 10,
        daemon: bool = True,
        log_event: Callable[[str, FileTimerRequest | None], None] | None = None,
    ) -> None:
        self._file_path, self._run_id, self._max_interval, self._daemon = (
            file_path,
            run_id,
            max_interval,
            daemon,
        )
        self._log_event = log_event or (lambda name, request: None)
        self._timers, self._request_count, self._unread = Timers(), 0, b""
        self._stop_signaled, self._run_once, self._is_client_started = False, False, False
        self._watchdog_thread: threading.Thread | None = None
        self._last_progress_time = int(time.time())
        with contextlib.suppress(FileNotFoundError):
            os.remove(file_path)
        os.mkfifo(file_path, 0o600)

    def start(self) -> None:
        """Starts the thread."""
        # opened for writing too, so that the pipe does not end when the last client closes it
        pipe = os.open(self._file_path, os.O_RDWR | os.O_NONBLOCK)
        self._watchdog_thread = threading.Thread(
            target=self._watchdog_loop, args=(pipe,), daemon=self._daemon
        )
        self._watchdog_thread.start()
        self._log_event("watchdog started", None)

    def stop(self) -> None:
        """Ends the thread and removes the pipe. Waits at most ``max_interval`` seconds for the thread."""
        self._stop_signaled = True
        self._end(self._max_interval)
        self._log_event("watchdog stopped", None)

    def run_once(self) -> None:
        """Ends the thread after all requests that have been sent, and removes the pipe."""
        self._run_once = True
        self._end(None)

    def _end(self, patience: float | None) -> None:
        with contextlib.suppress(OSError):  # nobody reads any more
            _write(self._file_path, "")  # wakes the thread
        if self._watchdog_thread:
            self._watchdog_thread.join(patience)
            self._watchdog_thread = None
        with contextlib.suppress(FileNotFoundError):
            os.remove(self._file_path)

    @staticmethod
    def is_process_running(pid: int) -> bool:
        """Whether there is such a process, and it may be sent a signal."""
        try:
            os.kill(pid, 0)
            return True
        except OSError:
            return False

    def get_last_progress_time(self) -> int:
        """When the thread has last looked at the timers, in seconds since 1970. The time now if there was no request yet."""
        return self._last_progress_time if self._is_client_started else int(time.time())

    def register_timers(self, timer_requests: list[FileTimerRequest]) -> None:
        """Notes the timers of requests."""
        self._request_count += len(timer_requests)
        self._timers.note(timer_requests)

    def clear_timers(self, worker_pids: set[int]) -> None:
        """Forgets all timers of these processes, and of those that have ended."""
        self._timers.forget(lambda pid: pid in worker_pids or not self.is_process_running(pid))

    def get_expired_timers(self, deadline: float) -> dict[int, list[FileTimerRequest]]:
        """The timers of each process that have expired at a time of `time.time()`."""
        return self._timers.expired(deadline)

    def _watchdog_loop(self, pipe: int) -> None:
        try:
            last = False
            while not (self._stop_signaled or last):
                last = self._run_once  # asked first, so that all that was sent before is read
                try:
                    self._run_watchdog(pipe)
                except Exception:
                    logger.exception("Error running watchdog")
                self._last_progress_time = int(time.time())
        finally:
            os.close(pipe)

    def _run_watchdog(self, pipe: int) -> None:
        """Reads the requests that are there, and ends the processes whose timers have expired."""
        self.register_timers(self._get_requests(pipe, self._max_interval))
        expired = self.get_expired_timers(time.time())
        texts = {pid: [timer.to_json() for timer in timers] for pid, timers in expired.items()}
        log_debug_info_for_expired_timers(self._run_id, texts)
        sent = [self._reap_expired(pid, timers) for pid, timers in expired.items()]
        if any(sent):
            number = [number for number in sent if number][-1]
            logger.info("The server process %s ends too, by signal %s", os.getpid(), number)
            self._reap_worker(os.getpid(), number)
        self.clear_timers(set(expired))

    def _reap_expired(self, pid: int, timers: list[FileTimerRequest]) -> int:
        """Ends a process by the signal of the first expired timer that has one. Returns the signal; 0 if none was sent."""
        for timer in sorted(timers, key=lambda timer: timer.expiration_time):
            self._log_event("timer expired", timer)
            if timer.signal > 0:
                if not self._reap_worker(pid, timer.signal):
                    return 0
                logger.info(
                    "Timer %s of process %s has expired: signal %s", timer.scope_id, pid, timer.signal
                )
                self._log_event("kill worker process", timer)
                return timer.signal
        return 0

    def _reap_worker(self, worker_pid: int, signal: int) -> bool:
        return end_process(worker_pid, signal)

    def _get_requests(self, pipe: int, max_interval: float) -> list[FileTimerRequest]:
        """All requests that are there. Waits at most ``max_interval`` seconds for the first one."""
        select.select([pipe], [], [], max_interval)
        with contextlib.suppress(BlockingIOError):
            while piece := os.read(pipe, 1 << 16):
                self._unread += piece
        *lines, self._unread = self._unread.split(b"\n")
        requests = [request for line in lines if line and (request := _request(line))]
        self._is_client_started |= bool(requests)
        return requests
