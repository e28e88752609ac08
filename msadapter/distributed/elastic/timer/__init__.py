"""torch.distributed.elastic.timer: ends workers that are stuck.

A worker asks for a timer before what might never end, and gives it back afterwards. A server in another process of the machine
kills the worker whose timer has expired:

    server = timer.LocalTimerServer(queue)  # a queue of multiprocessing that the workers have too
    server.start()

    timer.configure(timer.LocalTimerClient(queue))  # in a worker
    with timer.expires(after=60):  # seconds
        step()
"""

from .api import TimerClient, TimerRequest, TimerServer, configure, expires
from .file_based_local_timer import FileTimerClient, FileTimerRequest, FileTimerServer
from .local_timer import LocalTimerClient, LocalTimerServer

__all__ = [
    "FileTimerClient",
    "FileTimerRequest",
    "FileTimerServer",
    "LocalTimerClient",
    "LocalTimerServer",
    "TimerClient",
    "TimerRequest",
    "TimerServer",
    "configure",
    "expires",
]
