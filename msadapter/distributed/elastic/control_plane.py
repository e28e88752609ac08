"""torch.distributed.elastic.control_plane: a worker's entry point, with its errors in the error file.

PyTorch's workers also answer questions at a socket if the environment variable TORCH_WORKER_SERVER_SOCKET names one. That server
is part of PyTorch's C++ library and is not supported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from ..._errors import unsupported
from .multiprocessing.errors import record

__all__ = ["worker_main"]

TORCH_WORKER_SERVER_SOCKET = "TORCH_WORKER_SERVER_SOCKET"


@record
@contextmanager
def worker_main() -> Iterator[None]:
    """A context, or with ``@worker_main()`` a decorator, of the main function of a worker.

    NotImplementedError if the environment asks for a server at a socket.
    """
    if TORCH_WORKER_SERVER_SOCKET in os.environ:
        why = f"the server at a worker's socket ({TORCH_WORKER_SERVER_SOCKET}) is not supported"
        raise unsupported("torch.distributed.elastic.control_plane.worker_main", why)
    yield
